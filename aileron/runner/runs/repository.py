"""Writes runs: what is legal, committed, and only then told to those who wait."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from attrs import define, field
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.errors import NotFound, StoreUnavailable
from aileron.interfaces import IAudit, IRuns
from aileron.runner.scheduling import ResultWaiters
from aileron.values import Approval, PendingLimits, Run, RunState, Transition

from .transitions import EventFactory

T = TypeVar("T")

_log = Logger()
_STORE_PAUSE_SECONDS = 1.0


@define(eq=False)
class RunRepository:
    """Holds runs as they stand, the record of them, and who waits for them to settle.

    :ivar table: where runs are kept, for who reads them.
    :ivar audit: the record, for what concerns no change of a run's state.
    :ivar events: makes what is put on record.
    :param pending_limits: how many may wait for a decision at once.
    """

    table: IRuns
    audit: IAudit
    events: EventFactory
    _clock: IReactorTime
    _pending_limits: PendingLimits
    _waiters: ResultWaiters[str, Run] = field(init=False)
    _in_doubt: list[Callable[[Run], None]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self._waiters = ResultWaiters(self._clock)

    def follow(self, told: Callable[[Run], None]) -> None:
        """Have C{told} be called with each run that becomes C{unknown}, after the commit."""
        self._in_doubt.append(told)

    async def receive(self, run: Run, transitions: Sequence[Transition]) -> tuple[Run, bool]:
        """Keep a new run with what it went through, unless as many wait as may; see L{IRuns.receive}."""
        return await self.table.receive(run, transitions, self._pending_limits)

    async def apply(self, *transitions: Transition) -> Run:
        """Apply C{transitions}, then tell who waits for an end.

        :raises StateConflict: somebody else was faster.
        """
        run = await self.table.apply(*transitions)
        if run.state.settled:
            self._waiters.tell(run.id, run)
        if run.state is RunState.UNKNOWN is not transitions[0].start:
            for told in self._in_doubt:
                told(run)
        return run

    async def insist(self, run_id: str, write: Callable[[], Awaitable[T]]) -> T:
        """What C{write} answers, tried again for as long as the database refuses.

        :param run_id: what it is about, for the log.
        """
        while True:
            try:
                return await write()
            except StoreUnavailable:
                _log.warn("what became of run {run} cannot be written yet", run=run_id)
                await deferLater(self._clock, _STORE_PAUSE_SECONDS)

    async def run(self, run_id: str) -> Run:
        """The run.

        :raises NotFound: there is none.
        """
        run = await self.table.get(run_id)
        if run is None:
            raise NotFound("There is no such run.")
        return run

    async def approval(self, run_id: str) -> Approval:
        """The approval.

        :raises NotFound: there is none.
        """
        approval = await self.table.approval(run_id)
        if approval is None:
            raise NotFound("There is no such approval.")
        return approval

    async def settled(self, run_id: str, seconds: float, *, moving: bool = False) -> Run:
        """The run once it is settled, or as it is after C{seconds}.

        :param moving: its end is known to be still to come, so that nobody need look whether it was missed.
        """
        waiter = self._waiters.enlist(run_id)  # before the look, so that nothing falls between the two
        try:
            run = None if moving else await self.run(run_id)
            if run is not None and (run.state.settled or seconds <= 0):
                return run
            news = await self._waiters.first(run_id, waiter, seconds)
        finally:
            self._waiters.dismiss(run_id, waiter)
        return news if news is not None else await self.run(run_id)
