"""Moving: turns the MCP servers in an agent's settings into connectors, and stores their secrets in the vault."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from aileron.features.feature import Feature
from aileron.model.features import Command


class Moving(Feature):
    """The feature with C{aileron import}, which turns an agent's MCP servers into connectors."""

    name = "moving"
    summary = "Moves the MCP servers in an agent's settings behind Aileron."
    needs: ClassVar[tuple[str, ...]] = ("importing", "launch")

    def commands(self) -> Mapping[str, Command]:
        return {"import": Command("aileron.features.moving.commands:import_servers", "Start", 40)}


FEATURE = Moving()
