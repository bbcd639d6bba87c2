"""The start of the daemon: what an earlier life left unfinished."""

from __future__ import annotations

from attrs import define, evolve
from twisted.logger import Logger

from aileron.errors import StateConflict
from aileron.interfaces import IRuns
from aileron.runner.approval.decisions import Decisions
from aileron.runner.approval.expiry import Expiry
from aileron.runner.runs.events import EventFactory
from aileron.runner.runs.repository import RunRepository
from aileron.runner.runs.transitions import transition
from aileron.values import Fault, Run, RunQuery, RunState

from ._scheduler import RunScheduler

_log = Logger()
_PENDING = RunQuery(states=(RunState.PENDING,), limit=1000)
_CRASHED = Fault(
    "outcome_unknown", "The daemon ended while this was being done: it may have happened. Please look, and settle it."
)
_NOT_ASKED = "The run says that nobody had to be asked, and somebody was."


@define(eq=False)
class Recovery:
    """Takes every unfinished run to where it is safe, and starts none that may have happened."""

    _runs: IRuns
    _repository: RunRepository
    _events: EventFactory
    _scheduler: RunScheduler
    _expiry: Expiry
    _decisions: Decisions

    async def recover(self) -> None:
        """Go through them, oldest first."""
        asked = await self._watch_all()
        for run in await self._runs.unfinished():
            try:
                await self._take_up(run, asked)
            except StateConflict:
                _log.warn("run {run} moved while it was being recovered", run=run.id)

    async def _watch_all(self) -> frozenset[str]:
        """Mind what waits for a decision, page by page: thousands may.

        :return: the runs that do.
        """
        asked: set[str] = set()
        query = _PENDING
        while True:
            page = await self._runs.approvals(query)
            for approval in page.items:
                self._expiry.mind(approval)
                asked.add(approval.run.id)
            if page.cursor is None:
                return frozenset(asked)
            query = evolve(query, cursor=page.cursor)

    async def _take_up(self, run: Run, asked: frozenset[str]) -> None:
        if run.state is RunState.EXECUTING:
            await self._in_doubt(run)
        elif run.state is RunState.PENDING:
            if run.id not in asked:  # one damaged row must not keep the daemon from the others
                _log.error("run {run} is gated and nobody was asked; it stays as it is", run=run.id)
        elif run.gated and run.state is not RunState.RECEIVED:
            self._scheduler.start(run)  # approved, or waiting for the vault
        else:
            await self._give_up(run)

    async def _in_doubt(self, run: Run) -> None:
        """Whether it happened, nobody here can say: a person settles it.

        Its decision goes first, whether its row says that it took one or not.
        """
        await self._decisions.give_up(run)
        done = [step.step_id for step in await self._runs.steps(run.id)]
        fault, now = _CRASHED.with_details(steps_done=done), self._events.now()
        begun = [attempt for attempt in await self._runs.attempts(run.id) if attempt.state == "started"]
        attempts = tuple(evolve(attempt, state="unknown", ended_at=now, fault=fault) for attempt in begun)
        event = self._events.of_run("execution.unknown", run, fault=fault)
        await self._repository.apply(transition(run, RunState.UNKNOWN, now, event, fault=fault, attempts=attempts))

    async def _give_up(self, run: Run) -> None:
        """A run that had not begun: whoever asked is told that nothing was sent, and may ask again.

        One that the operator was asked about never stands like this by itself.
        """
        await self._decisions.give_up(run)
        asked = await self._runs.approval(run.id) is not None
        if run.state is RunState.RECEIVED:
            event = self._events.of_run("run.approved", run)
            run = await self._repository.apply(transition(run, RunState.APPROVED, self._events.now(), event))
        reason = "The daemon ended before it began; nothing was sent."
        found = (self._events.of_run("tamper.detected", run, row="runs", found=_NOT_ASKED),) if asked else ()
        event = self._events.of_run("run.cancelled", run, reason=reason)
        await self._repository.apply(
            transition(run, RunState.CANCELLED, self._events.now(), *found, event, reason=reason)
        )
