"""The registry of connectors."""

from __future__ import annotations

from zope.interface import Interface

from aileron.values import Candidate, ConnectorDescription, LoadError

from ._connector import IConnector


class IConnectors(Interface):
    """The registry: every connector by its name."""

    def get(fqn: str) -> IConnector | None:
        """The connector, or L{None} where it is missing or did not load (then L{problems} says why)."""

    def descriptions() -> tuple[ConnectorDescription, ...]:
        """All that loaded, by name."""

    def candidates() -> tuple[Candidate, ...]:
        """What the user's own files hold, by name: each sound one, in use only if its very digest is trusted.

        What is shipped, or comes of a plugin that the configuration names, is not among them.
        """

    def problems() -> tuple[LoadError, ...]:
        """What did not load.

        C{kind} is C{missing}, C{malformed}, C{duplicate} or a parse or validation fault of a file.
        """

    def generation() -> int:
        """Grows whenever what L{get} answers may have changed."""

    def refresh() -> None:
        """Read the home's connector files again; unchanged ones keep their connector."""
