"""Coalesces notices: a burst is one message, and messages that follow each other come ever slower."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field
from twisted.internet.interfaces import IDelayedCall, IReactorTime

from aileron.values import Notice, NoticeKind

GATHER_SECONDS = 2.0
PAUSES_SECONDS = (15.0, 30.0, 60.0, 120.0, 300.0)
"""After each of some messages in a row; the last one holds from then on."""

QUIET_SECONDS = 600.0
"""After so long without a message the row begins anew."""

MOST_NOTICES = 50
"""Of one message; of what comes beyond only the number is kept."""

URGENT = frozenset((NoticeKind.TAMPER, NoticeKind.BROKEN, NoticeKind.FLOOD))


@define(eq=False)
class Coalescer:
    """Keeps notices until it is time for a message, which has all of them.

    :param on_due: called with what was gathered, and how many notices more there were.
    """

    _clock: IReactorTime
    _on_due: Callable[[tuple[Notice, ...], int], None]
    _gathered: dict[Notice, None] = field(factory=dict, init=False)
    _more: int = field(default=0, init=False)
    _told_at: float | None = field(default=None, init=False)
    _in_a_row: int = field(default=0, init=False)
    _due: IDelayedCall | None = field(default=None, init=False)
    _stopped: bool = field(default=False, init=False)

    def add(self, notice: Notice) -> None:
        """Have C{notice} told with whatever comes soon; the same one twice is told once."""
        if self._stopped or notice in self._gathered:
            return
        if len(self._gathered) < MOST_NOTICES:
            self._gathered[notice] = None
        elif notice.kind in URGENT:
            self._gathered.popitem()
            self._gathered[notice] = None
            self._more += 1
        else:
            self._more += 1
        self._plan(notice.kind in URGENT)

    def stop(self) -> None:
        """Tell nothing more."""
        self._stopped = True
        if self._due is not None:
            self._due.cancel()
            self._due = None

    def _plan(self, urgent: bool) -> None:
        seconds = self._wait(urgent)
        if self._due is None:
            self._due = self._clock.callLater(seconds, self._fire)
        elif self._due.getTime() - self._clock.seconds() > seconds:
            self._due.reset(seconds)

    def _wait(self, urgent: bool) -> float:
        """Compute how long from now: what is wrong waits for the shortest pause alone."""
        if self._told_at is None:
            return GATHER_SECONDS
        place = 0 if urgent else min(self._in_a_row, len(PAUSES_SECONDS)) - 1
        free = self._told_at + PAUSES_SECONDS[max(place, 0)] - self._clock.seconds()
        return max(GATHER_SECONDS, min(free, PAUSES_SECONDS[-1]))

    def _fire(self) -> None:
        now, self._due = self._clock.seconds(), None
        quiet = self._told_at is None or abs(now - self._told_at) > QUIET_SECONDS
        self._in_a_row = 1 if quiet else self._in_a_row + 1
        self._told_at = now
        gathered, more = tuple(self._gathered), self._more
        self._gathered, self._more = {}, 0
        self._on_due(gathered, more)
