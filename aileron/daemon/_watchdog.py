"""Notices iterations ("turns") of the reactor that last too long and so delay every other task.

A turn is the time between two polls for events. It is C{busy} if the reactor's own thread computed that long, else
C{blocked}: by a disk, a lock, another thread of this process, an overloaded machine, or a stop of the process. The
clock does not advance while the machine sleeps.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Mapping
from math import inf
from pathlib import PurePath
from traceback import walk_stack
from types import FrameType
from typing import Any

from attrs import define, evolve, field
from twisted.logger import Logger

from aileron.model.reactor import LongTurns

LONGEST_SECONDS = 0.25
"""Longer turns are counted."""

_MOST_FRAMES = 12
_CPU_READ_SECONDS = 0.01  # a read takes half a microsecond, a relayed event fifty
_UNKNOWN = "unknown: it was over before anybody looked"

_log = Logger()


def _all_frames() -> Mapping[int, FrameType]:
    """Return the current frame of each thread. Python documents C{sys._current_frames} despite its underscore."""
    return sys._current_frames()  # noqa: SLF001


@define(eq=False)
class TurnClock:
    """A clock of a reactor's turns. The reactor calls L{end} before it waits for events and L{begin} afterwards.

    :ivar limit: the seconds above which a turn is reported to C{on_long}, with its duration and the time its thread
        computed, exact to a hundredth of a second.
    :ivar began: the start of the current turn, or 0.0 while the reactor waits.
    """

    monotonic: Callable[[], float] = time.monotonic
    thread_time: Callable[[], float] = time.thread_time
    limit: float = inf
    on_long: Callable[[float, float], object] = field(default=lambda lasted, computed: None)
    began: float = 0.0
    _computed: float = 0.0
    _read_again_at: float = 0.0

    def begin(self) -> None:
        """Note that a turn of the reactor begins."""
        now = self.monotonic()
        if now >= self._read_again_at:
            self._computed = self.thread_time()
            self._read_again_at = now + _CPU_READ_SECONDS
        self.began = now

    def end(self) -> None:
        """Record the end of the current turn, and report it if it was long."""
        lasted = self.monotonic() - self.began
        if lasted > self.limit and self.began:
            self.on_long(lasted, self.thread_time() - self._computed)
        self.began = 0.0

    def watch(self, limit: float, on_long: Callable[[float, float], object]) -> None:
        """Start reporting long turns. The current turn is measured from this call."""
        self._read_again_at = 0.0
        self.begin()
        self.limit, self.on_long = limit, on_long


class ReactorWatchdog:
    """A watchdog that counts long turns and logs where in the code the reactor was.

    The reactor's thread measures turns. A second thread wakes four times a second and inspects the reactor's stack.

    :ivar long_turns: the long turns since the watchdog started.
    """

    def __init__(self, turns: TurnClock, frames: Callable[[], Mapping[int, FrameType]] = _all_frames) -> None:
        self.long_turns = LongTurns()
        self._turns, self._frames = turns, frames
        self._watched = 0
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look_on, name="watchdog", daemon=True)
        self._seen: tuple[float, str] = (0.0, "")
        self._told = 0.0

    def start(self) -> None:
        """Start to watch the reactor. Call it in the reactor's thread."""
        self.watch_this_thread()
        self._thread.start()

    def watch_this_thread(self) -> None:
        """Count the turns of this thread. The stack of a long turn is only logged when L{look} is called."""
        self._watched = threading.get_ident()
        self._turns.watch(LONGEST_SECONDS, self._count)

    def stop(self) -> None:
        """Stop watching the reactor."""
        self._turns.limit = inf
        self._stop.set()
        self._thread.join()

    def look(self) -> float:
        """Log the reactor's stack if the current turn has lasted too long.

        :return: the seconds until the next call.
        """
        began = self._turns.began
        if not began or began == self._told:
            return LONGEST_SECONDS
        frame = self._frames().get(self._watched)
        where = "" if frame is None else _where(frame)
        if self._turns.began != began:  # it was the stack of another turn
            return LONGEST_SECONDS
        self._seen = began, where
        lasted = self._turns.monotonic() - began
        if lasted < LONGEST_SECONDS:
            return LONGEST_SECONDS - lasted
        self._told = began
        _log.warn("a turn of the reactor has taken {seconds:.3f} s so far, at {where}", seconds=lasted, where=where)
        return LONGEST_SECONDS

    def _look_on(self) -> None:
        seconds = LONGEST_SECONDS
        while not self._stop.wait(seconds):
            seconds = self.look()

    def _count(self, lasted: float, computed: float) -> None:
        """Count the turn that ends now, and log it with the place in the code at which the watchdog last saw it.

        :param lasted: the duration in seconds.
        :param computed: the seconds that the reactor's thread computed.
        """
        busy = computed >= LONGEST_SECONDS
        before = self.long_turns
        self.long_turns = evolve(
            before,
            busy=before.busy + busy,
            blocked=before.blocked + (not busy),
            longest_seconds=max(before.longest_seconds, lasted),
        )
        began, where = self._seen
        _log.warn(
            "a turn of the reactor took {seconds:.3f} s, of which it computed {computed:.3f} s: {kind}, at {where}",
            seconds=lasted,
            computed=computed,
            kind="busy" if busy else "blocked",
            where=where if began == self._turns.began else _UNKNOWN,
        )


def watchdog_of(reactor: Any) -> ReactorWatchdog | None:
    """Return a new watchdog if C{reactor} measures its turns, as the daemon's own does, else None."""
    turns = getattr(reactor, "turns", None)
    return ReactorWatchdog(turns) if isinstance(turns, TurnClock) else None


def _where(frame: FrameType) -> str:
    """Return the places in the code, the innermost first, without any values."""
    try:
        stack = [
            f"{_short(each.f_code.co_filename)}:{line} {each.f_code.co_qualname}" for each, line in walk_stack(frame)
        ]
    except AttributeError:  # the thread went on meanwhile, and what was a frame is something else
        return _UNKNOWN
    return " < ".join(stack[:_MOST_FRAMES])


def _short(path: str) -> str:
    return "/".join(PurePath(path).parts[-3:])
