"""Takes approved runs from the decision to the effect, and keeps runs from beginning as the operator says."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta
from typing import Any

from attrs import field, frozen
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.base.json import timestamp
from aileron.model.errors import (
    AileronError,
    ApprovalStale,
    Conflict,
    CredentialNeedsYou,
    LimitExceeded,
    Paused,
    StateConflict,
    StoreUnavailable,
)
from aileron.model.reviews import Preview
from aileron.model.runs import AWAITING, NOT_BEGUN, Approval, Run, RunState, Transition

from .approvals import UNUSABLE, ApprovalGate, ApprovalRequests, NotYet, UndoWindow
from .executor import Executor
from .limits import EffectGate, RateLimits
from .plan import Plan, PlanOutline
from .runs import RunRepository, transition
from .tasks import KeyedLocks, Tasks

_log = Logger()
_STORE_PAUSE_SECONDS = 1.0


@frozen(eq=False)
class RunScheduler:
    """Starts gated runs, each in a task of its own.

    :param probe: called with the name of each point that a crash may hit.
    """

    _runs: RunRepository
    _gate: ApprovalGate
    _requests: ApprovalRequests
    _executor: Executor
    _tasks: Tasks
    _effects: EffectGate
    _rates: RateLimits
    _undo: UndoWindow
    _locks: KeyedLocks
    _probe: Callable[[str], None]
    _restarted: set[str] = field(factory=set, init=False)  # runs that were started while they were under way

    def start(self, run: Run) -> None:
        """Schedule an approved or waiting gated run; if its task is running, check the run again after it."""
        self._start(run.id)

    def _start(self, run_id: str) -> None:
        name = f"{run_id}, approved"  # not the run's bare id, which says that its end can no longer be missed
        if not self._tasks.start(name, self._run_until_idle(run_id)) and self._tasks.running(name):
            self._restarted.add(run_id)

    async def _on_time(self, run_id: str) -> None:
        """Begin a run whose start time has come."""
        self._start(run_id)

    async def _run_until_idle(self, run_id: str) -> None:
        """Check the run again for as long as it was scheduled while being checked: the row read may be older."""
        self._restarted.add(run_id)
        while run_id in self._restarted:
            self._restarted.discard(run_id)
            await self._go(run_id)

    async def _go(self, run_id: str) -> None:
        """Start the run if it may begin, and retry for as long as the database refuses."""
        while True:
            try:
                return await self._take_further(await self._runs.run(run_id))
            except StoreUnavailable:
                _log.warn("run {run} cannot be taken further yet: the database refuses", run=run_id)
                await deferLater(self._tasks.clock, _STORE_PAUSE_SECONDS)
            except NotYet as early:  # whatever the run's row says of it
                self._undo.wait(run_id, early.at, self._on_time)
                return None
            except Paused:  # paused since the check; resuming schedules the run again
                return None
            except StateConflict as conflict:
                _log.info("run {run} went {state} before it began", run=run_id, state=conflict.present.state.value)
                return None

    async def _take_further(self, run: Run) -> None:
        """Begin the run, have it wait for its time, the vault or a credential, or request another approval."""
        if self._is_held_back(run):
            return
        unlocked = self._effects.may_act()
        outline = await self._find_outline(run) if unlocked else None
        lacking = None if outline is None else await self._find_lacking(outline)
        if run.state in AWAITING and unlocked and not (lacking and run.state is RunState.AWAITING_CREDENTIAL):
            event = self._runs.event_of_run("run.resumed", run)
            run = await self._runs.apply(transition(run, RunState.APPROVED, self._runs.now(), event))
        if run.state is not RunState.APPROVED:
            return
        if lacking is not None:
            await self._wait(run, RunState.AWAITING_CREDENTIAL, lacking.message)
            return
        try:
            if unlocked and not await self._is_put_off(run, outline):
                await self._begin(run, outline)
        except UNUSABLE:
            unlocked = False
        # guard of promise 4: what met a locked vault waits for it -> KeptTests.test_waits_for_the_vault
        if not unlocked:
            await self._wait(run, RunState.AWAITING_VAULT)

    async def _wait(self, run: Run, state: RunState, reason: str | None = None) -> None:
        why: dict[str, Any] = {} if reason is None else {"reason": reason}
        event = self._runs.event_of_run(f"run.{state.value}", run, **why)
        await self._runs.apply(transition(run, state, self._runs.now(), event))
        self._effects.missed()  # not before it stands there to be found

    async def _find_outline(self, run: Run) -> PlanOutline | None:
        """Find the connectors and credentials that a run with a sound decision will use, or None if there are none."""
        if run.state not in NOT_BEGUN:
            return None
        try:
            return await self._gate.sound_outline(run)
        except AileronError:
            return None  # L{ApprovalGate.ready}, or the attempt itself, finds out what is wrong

    async def _find_lacking(self, outline: PlanOutline) -> CredentialNeedsYou | None:
        """Find the credential that a person must renew before the run can begin."""
        try:
            await self._executor.make_ready(outline)
        except CredentialNeedsYou as lacking:
            return lacking
        except AileronError:
            return None  # as above
        return None

    async def _is_put_off(self, run: Run, outline: PlanOutline | None) -> bool:
        """Postpone the run if a service that it uses has rate-limited us, and return whether it is postponed."""
        if outline is None or not self._rates.are_known():
            return False
        held = max(outline.steps, key=lambda planned: self._rates.seconds_left(planned, run.id))
        seconds = self._rates.put_off(held, run.id)
        if not seconds:
            return False
        now = self._runs.now()
        until, reason = now + timedelta(seconds=seconds), self._rates.explain(held, seconds)
        event = self._runs.event_of_run("run.scheduled", run, reason=reason, begins_at=timestamp(until))
        await self._runs.apply(transition(run, RunState.APPROVED, now, event, start_after=until))
        self._undo.wait(run.id, until, self._on_time)
        return True

    def _is_held_back(self, run: Run) -> bool:
        """Return whether the run is paused or must not begin yet; resuming or its timer schedules it again."""
        # guard of promise 2: a pause holds an approved run -> NoDecisionTests.test_paused_run
        if self._effects.is_paused(run.session_id):
            return True
        return run.state is RunState.APPROVED and self._undo.waits(run, self._on_time)

    async def _begin(self, run: Run, outline: PlanOutline | None) -> None:
        """Verify the decision and have the effect, or request another approval.

        :raises VaultLocked, BindingFailed: the vault cannot be used now; the run stands where it stood.
        :raises NotYet: its decision lets it begin later; likewise.
        """
        preview = await self._gate.seen_before_effect(run)
        if preview is not None and await self._is_put_off(run, outline):  # the answer to it said so
            return
        opened = await self._locks.run(run.id, lambda: self._open(run, preview))
        if opened is not None:
            await self._carry_out(*opened)

    async def _open(self, run: Run, preview: Preview | None) -> tuple[Run, Plan, Transition, Approval] | None:
        """Commit C{executing} and return the run, or None if another approval is requested."""
        ready = await self._gate.ready(run, preview)
        if ready is None:
            return None
        plan, approval = ready
        run = approval.run  # edited since, it may be, and approved again
        verify = self._gate.verification(run, plan, approval)
        try:
            opening = self._executor.opening(run, plan, verify=verify)
            return await self._runs.apply(opening), plan, opening, approval
        except ApprovalStale as found:
            await self._requests.ask_anew(run, found)
        except LimitExceeded as full:
            await self._requests.ask_anew(run, ApprovalStale(self._until_room(full)))
        return None

    def _until_room(self, full: LimitExceeded) -> str:
        """Describe which cap is reached, and when there is room again."""
        left = full.details.get("retry_after")
        if not isinstance(left, int | float):
            return full.message
        return f"{full.message} There is room at {timestamp(self._runs.now() + timedelta(seconds=left))}."

    async def _carry_out(self, run: Run, plan: Plan, opening: Transition, approval: Approval) -> None:
        """Record the use of the decision, then have the effect; if the first fails, send nothing."""
        self._probe("opened")
        try:
            await self._gate.spend(approval)
        except Conflict as error:
            found = self._runs.event_of_run(
                "tamper.detected", run, row="runs", found="The recorded decision was already used."
            )
            await self._executor.abandon(run, plan, opening, error.fault(), found)
        except AileronError as error:
            await self._executor.abandon(run, plan, opening, error.fault())
        else:
            self._probe("spent")
            await self._executor.carry_out(run, plan, opening)
