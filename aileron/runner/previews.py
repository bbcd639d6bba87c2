"""Fetches previews: as soon as one is asked for, again where it was missed, and before anything rests on it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from attrs import define, field, frozen
from twisted.internet.defer import DeferredSemaphore
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger

from aileron.errors import AileronError, ApprovalStale, StateConflict, VaultLocked
from aileron.runner.outcomes import Echoes, find_echoes
from aileron.runner.pauses import EffectGate
from aileron.runner.plan import PlannedStep
from aileron.runner.preview import FETCHING, UNAVAILABLE, Preview, parse_preview, render_preview
from aileron.runner.requests import ApprovalRequests
from aileron.runner.runs import EventFactory, RunRepository
from aileron.runner.scheduling import ResultWaiters, Tasks
from aileron.values import Approval, Outcome, Run, RunState
from aileron.waiting import afterwards

SECONDS = 5.0
"""How long a service has to answer."""

AGAIN_SECONDS = 10.0
"""What has failed is not tried again by looking before so long."""

MOST_IN_BACKGROUND, MOST_FOR_THE_OPERATOR, MOST_BEFORE_EFFECTS = 6, 2, 4
"""How many are fetched at once: what agents ask for never keeps the operator's own decisions waiting."""


@frozen
class Fetched:
    """Holds a preview as it is now, and what is to be put on record of how it came."""

    preview: Preview
    echoes: Echoes


@define(eq=False)
class PreviewFetcher:
    """Asks one service after the other, in three queues.

    :param read: sends the read of a preview, and answers what came of it within so many seconds.
    """

    _requests: ApprovalRequests
    _read: Callable[[PlannedStep, float], Awaitable[Outcome]]
    _clock: IReactorTime
    _events: EventFactory
    _effects: EffectGate
    _background: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_IN_BACKGROUND), init=False)
    _foreground: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_FOR_THE_OPERATOR), init=False)
    _before_effects: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(MOST_BEFORE_EFFECTS), init=False)
    _tried: dict[str, float] = field(factory=dict, init=False)  # by run, when

    def may_be_now(self) -> bool:
        """Return whether a preview can be fetched now, which needs the vault unlocked."""
        return self._effects.may_act()

    def was_tried(self, run_id: str) -> bool:
        """Return whether the service was asked just now for the preview of this run."""
        return run_id in self._recent()

    async def for_the_agent(self, run: Run, wanted: Callable[[], Awaitable[bool]]) -> Fetched | None:
        """Fetch the preview of C{run}, in the turn of those that nobody waits for; L{None} if its action has none.

        :param wanted: asked when its turn has come: many may have been taken back by then.

        :raises VaultLocked, Paused: it cannot be fetched now.
        :raises AileronError: what the run needs is not there.
        """
        return await self._in_turn(run, self._background, wanted)

    async def for_the_operator(self, run: Run) -> Fetched | None:
        """Fetch the same, for a decision or an edit."""
        return await self._in_turn(run, self._foreground)

    async def for_the_effect(self, run: Run) -> Fetched | None:
        """Fetch the same, for a run that is to begin: a standing grant may have allowed very many."""
        return await self._in_turn(run, self._before_effects)

    async def _in_turn(
        self, run: Run, turns: DeferredSemaphore, wanted: Callable[[], Awaitable[bool]] | None = None
    ) -> Fetched | None:
        if self._requests.plan(run).preview is None:
            return None
        return await turns.run(self._fetch_wanted, run, wanted)

    async def _fetch_wanted(self, run: Run, wanted: Callable[[], Awaitable[bool]] | None) -> Fetched | None:
        return await self._fetch(run) if wanted is None or await wanted() else None

    async def _fetch(self, run: Run) -> Fetched | None:
        """Plan by what is there now, and ask the service, once."""
        if not self._effects.may_act():
            raise VaultLocked("The preview cannot be fetched while the vault is locked.")
        self._effects.pauses.refuse(run.session_id)
        self._tried = {**self._recent(), run.id: self._clock.seconds()}
        self._requests.planner.offerings.refresh()
        planned = self._requests.plan(run).preview
        if planned is None:
            return None
        outcome = await self._read(planned.read, SECONDS)
        if outcome.fault is not None and outcome.fault.kind == VaultLocked.kind:
            raise VaultLocked(outcome.fault.message)
        return Fetched(
            render_preview(planned.rule, outcome, planned.carried),
            find_echoes(self._events, run, planned.read, outcome),
        )

    def _recent(self) -> dict[str, float]:
        """Those that were tried just now; a clock that was set back forgets them."""
        now = self._clock.seconds()
        return {run_id: at for run_id, at in self._tried.items() if 0 <= now - at < AGAIN_SECONDS}


_MOST_TRIES = 3  # what is asked anew while its preview is fetched is another question
_log = Logger()


@define(eq=False)
class Previews:
    """Puts previews where they are looked at, and answers whether what is looked at still holds."""

    _runs: RunRepository
    _requests: ApprovalRequests
    _fetcher: PreviewFetcher
    _tasks: Tasks
    _waiters: ResultWaiters[str, None]

    # what is shown ---------------------------------------------------------------------------

    def begin(self, run_id: str, then: Callable[[str], Awaitable[None]] | None = None) -> bool:
        """Have a preview fetched that is not there yet; C{False}: it is being fetched, or cannot be now.

        :param then: what is done with the run once it is there.
        """
        return self._fetcher.may_be_now() and self._tasks.start(_task(run_id), self._show_and_tell(run_id, then))

    async def looked_at(self, approval: Approval) -> Approval:
        """C{approval} as whoever looks at it is shown it: with what was missed, if that comes in time."""
        run_id, task = approval.run.id, _task(approval.run.id)
        if not lacks_preview(approval) or not (self._tasks.running(task) or self._due(approval)):
            return approval
        waiter = self._waiters.enlist(run_id)  # before it is begun: it may end at once
        if self._tasks.running(task) or self.begin(run_id):
            await self._waiters.first(run_id, waiter, SECONDS)
        self._waiters.dismiss(run_id, waiter)
        return await self._requests.shown(await self._runs.approval(run_id))

    async def take_up(self) -> None:
        """Begin with all that was missed."""
        if self._fetcher.may_be_now():
            for run_id in await self._runs.table.unshown():
                self.begin(run_id)

    async def _show_and_tell(self, run_id: str, then: Callable[[str], Awaitable[None]] | None) -> None:
        await afterwards(self._show(run_id, then), lambda: self._waiters.tell(run_id, None))

    async def _show(self, run_id: str, then: Callable[[str], Awaitable[None]] | None) -> None:
        try:
            for _ in range(_MOST_TRIES):
                if await self._shown(run_id):
                    return None if then is None else await then(run_id)
        except StateConflict as conflict:
            _log.info("run {run} went {state} before its preview came", run=run_id, state=conflict.present.state.value)
        except AileronError as error:  # it is looked at again; what it lacks is told there
            _log.info("the preview of run {run} is not shown: {why}", run=run_id, why=error.message)

    async def _shown(self, run_id: str) -> bool:
        """Fetch and store the preview of a run; C{False} if the approval changed meanwhile and needs another try."""
        approval = await self._runs.approval(run_id)
        if not lacks_preview(approval):
            return True
        fetched = await self._fetcher.for_the_agent(approval.run, lambda: self._is_missed(run_id))
        if fetched is None:
            return True
        try:
            await self._requests.previewed(approval, fetched.preview, fetched.echoes)
        except ApprovalStale:
            return False
        return True

    async def _is_missed(self, run_id: str) -> bool:
        return lacks_preview(await self._runs.approval(run_id))

    # what decisions and effects rest on ------------------------------------------------------

    async def afresh(self, run: Run, *, before_effect: bool = False) -> Preview | None:
        """Fetch the preview of C{run} as it is now; L{None} if its action has none.

        :param before_effect: whether it is to begin; else the operator waits for it.

        :raises VaultLocked, Paused: it cannot be fetched now.
        :raises AileronError: what the run needs is not there.
        """
        fetching = self._fetcher.for_the_effect if before_effect else self._fetcher.for_the_operator
        fetched = await fetching(run)
        if fetched is None:
            return None
        if fetched.echoes.events:
            await self._runs.audit.append(*fetched.echoes.events)
        return fetched.preview

    def _due(self, approval: Approval) -> bool:
        """Return whether a preview is to be fetched: it never was, or it failed and not just now."""
        unanswered = parse_preview(approval.review).status == FETCHING
        return unanswered or not self._fetcher.was_tried(approval.run.id)


def lacks_preview(approval: Approval) -> bool:
    """Tell whether what waits for a decision has a preview that is not shown."""
    kept = approval.review.get("preview")
    return (
        approval.run.state is RunState.PENDING
        and kept is not None
        and parse_preview(approval.review).status in (FETCHING, UNAVAILABLE)
    )


def _task(run_id: str) -> str:
    return f"the preview of {run_id}"
