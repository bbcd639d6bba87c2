"""Which actions are switched off."""

from __future__ import annotations

from collections.abc import Sequence

from zope.interface import Interface

from aileron.values import Event


class IOverlay(Interface):
    """Which actions the operator switched off.  An action nobody switched is on."""

    async def disabled() -> frozenset[str]:
        """Names of the actions that are off."""

    async def set_enabled(action: str, enabled: bool, events: Sequence[Event]) -> None:
        """Switch one, with the events that record it, in one transaction."""
