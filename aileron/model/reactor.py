"""The counts of iterations ("turns") of the daemon's reactor that took too long."""

from __future__ import annotations

from attrs import frozen


@frozen
class LongTurns:
    """The iterations ("turns") of the reactor that exceeded the time limit.

    :ivar busy: the number of turns in which the reactor's thread computed for too long.
    :ivar blocked: the number of turns in which the reactor's thread was blocked.
    :ivar longest_seconds: the duration of the longest turn.
    """

    busy: int = 0
    blocked: int = 0
    longest_seconds: float = 0.0
