"""The turns of the daemon's reactor that took too long."""

from __future__ import annotations

from attrs import frozen


@frozen
class LongTurns:
    """Turns of the reactor that took longer than they may.

    :ivar busy: in which its own thread computed for too long.
    :ivar blocked: in which it was kept from it.
    :ivar longest_seconds: of them.
    """

    busy: int = 0
    blocked: int = 0
    longest_seconds: float = 0.0
