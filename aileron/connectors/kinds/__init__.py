"""The kinds of connector, a package each, and the table of them."""

from __future__ import annotations

from typing import Any

from attrs import frozen

from aileron.connectors.kind import ConnectorKind

from .command import COMMAND
from .git import GIT
from .http import HTTP
from .mail import MAIL
from .mcp import MCP

BUILT_IN: tuple[ConnectorKind[Any], ...] = (HTTP, GIT, MAIL, COMMAND, MCP)
"""The kinds that ship with Aileron."""


@frozen
class KindTable:
    """The connector kinds that this process knows, such as C{http} and C{program}, by name."""

    known: tuple[ConnectorKind[Any], ...] = BUILT_IN

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the kinds, as used in connector files."""
        return tuple(each.name for each in self.known)

    def find(self, name: str) -> ConnectorKind[Any]:
        """Return the kind with this name, or the kind C{http} if there is none."""
        return next((each for each in self.known if each.name == name), HTTP)


__all__ = ["BUILT_IN", "KindTable"]
