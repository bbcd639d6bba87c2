"""Several processes go along a record, each along the next leg that nobody has; this process is one of them."""

from __future__ import annotations

import os
import signal
import sys
from collections import deque
from collections.abc import Collection, Generator, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from attrs import define, field

from ._legs import Leg, gone_along
from ._walk import Passage

if TYPE_CHECKING:  # the daemon, which has this at hand, seldom shares the work
    from multiprocessing.connection import Connection
    from multiprocessing.process import BaseProcess

MOST_PROCESSES = 8
_SAFE_PATH, _PATH = "PYTHONSAFEPATH", "PYTHONPATH"
_AHEAD = 2
"""How many legs a helper has in hand, so that it need not wait for us while we go along one."""


class HelperLost(Exception):
    """A process that was to look at a part of the record ended before it had."""


def processes_at_hand() -> int:
    """How many processes may look at a record here: as many as there are cores for us, and not too many."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return min(cores, MOST_PROCESSES)


def passages(legs: Sequence[Leg], marked: Collection[int], processes: int) -> Generator[Passage | None, None, None]:
    """What each of C{legs} is like, in their order.

    Close it when no more are wanted: that ends the helpers.  From the main thread only.

    :param marked: the sequences of the records whose hashes are wanted.
    :param processes: how many look, this one included; each that cannot be started is done without.
    :raises HelperLost: a helper was ended by somebody else.
    """
    with _helpers(min(processes, len(legs)) - 1) as pipes:
        asked: dict[Connection, deque[int]] = {pipe: deque() for pipe in pipes}
        sharing = _Sharing(deque(range(len(legs))), legs, sorted(marked), asked)
        for number in range(len(legs)):
            yield sharing.passage(number)


@define(eq=False)
class _Sharing:
    _left: deque[int]
    _legs: Sequence[Leg]
    _marked: Sequence[int]
    _asked: Mapping[Connection, deque[int]]
    _found: dict[int, Passage | None] = field(factory=dict, init=False)

    def passage(self, number: int) -> Passage | None:
        """What one leg is like; while a helper is at it we go along others."""
        while number not in self._found:
            mine = self._left.popleft() if self._left else None
            try:
                self._hand_out()
                if mine is not None:
                    self._found[mine] = gone_along(*self._task(mine))
                self._collect(0 if mine is not None else None)
            except (EOFError, ConnectionError) as error:
                raise HelperLost from error
        return self._found.pop(number)

    def _task(self, number: int) -> tuple[Leg, Sequence[int]]:
        leg = self._legs[number]
        return leg, [each for each in self._marked if leg.after < each <= leg.until]

    def _hand_out(self) -> None:
        for pipe, numbers in self._asked.items():
            while self._left and len(numbers) < _AHEAD:
                numbers.append(self._left.popleft())
                pipe.send(self._task(numbers[-1]))

    def _collect(self, timeout: float | None) -> None:
        from multiprocessing.connection import wait

        ready = wait([pipe for pipe, numbers in self._asked.items() if numbers], timeout)
        for pipe in [pipe for pipe in self._asked if pipe in ready]:
            self._found[self._asked[pipe].popleft()] = pipe.recv()


@contextmanager
def _helpers(count: int) -> Iterator[list[Connection]]:
    from multiprocessing import get_context

    context, pipes = get_context("spawn"), []
    with ExitStack() as stack, _uninterrupted(), _safe_path() as is_safe:
        for _ in range(count if is_safe else 0):
            ours, theirs = context.Pipe()
            with theirs:
                process = context.Process(target=_help, args=(theirs,), daemon=True)
                try:
                    process.start()
                except OSError:  # no more processes are to be had
                    ours.close()
                    break
            pipes.append(ours)
            stack.callback(_end, process, ours)
        ending = stack.pop_all()
    with ending:
        yield pipes


@contextmanager
def _uninterrupted() -> Iterator[None]:
    """Whoever is started meanwhile leaves Ctrl-C to us, who ends it."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before or signal.SIG_DFL)


@contextmanager
def _safe_path() -> Iterator[bool]:
    """Whoever is started meanwhile finds no module in the directory that we are in, which may be anybody's.

    :return: whether that is so; not where this process, and so each that it starts, is deaf to its environment alone.
    """
    before = {name: os.environ[name] for name in (_SAFE_PATH, _PATH) if name in os.environ}
    parts = before.get(_PATH, "").split(os.pathsep)
    os.environ |= {_SAFE_PATH: "1", _PATH: os.pathsep.join(filter(os.path.isabs, parts))}
    try:
        yield bool(sys.flags.safe_path or not sys.flags.ignore_environment)
    finally:
        del os.environ[_SAFE_PATH], os.environ[_PATH]
        os.environ |= before


def _end(process: BaseProcess, pipe: Connection) -> None:
    pipe.close()
    process.terminate()
    process.join()


def _help(pipe: Connection) -> None:
    """Go along what is asked for, until nobody asks any more: also where who asked was killed."""
    try:
        while True:
            pipe.send(gone_along(*pipe.recv()))
    except (EOFError, ConnectionError):
        return
