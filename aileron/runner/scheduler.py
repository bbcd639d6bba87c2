"""Starts approved runs, or postpones them for a pause, a start time, a rate limit, the vault or a credential."""

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
    AuthorityChanged,
    Conflict,
    CredentialNeedsYou,
    LimitExceeded,
    Paused,
    StateConflict,
    StoreUnavailable,
)
from aileron.model.people import Owner
from aileron.model.reviews import Preview
from aileron.model.runs import AWAITING, NOT_BEGUN, Approval, Run, RunState, Transition

from .approval_requests import ApprovalRequests
from .approvals import ApprovalGate
from .decisions import UNUSABLE, NotYet, UndoWindow
from .effect_gate import EffectGate
from .executor import Executor
from .plan import Plan, PlanOutline
from .rate_limits import RateLimits
from .runs import RunRepository, transition
from .tasks import KeyedLocks, Tasks

_log = Logger()
_STORE_PAUSE_SECONDS = 1.0
_TRIES_AT_ONCE = 3


@frozen(eq=False)
class RunScheduler:
    """Starts gated runs, each in a task of its own.

    :param probe: called with the name of each point at which tests simulate a crash. In production it does nothing.
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
    _restarted: set[str] = field(factory=set, init=False)  # runs that were scheduled while their task was running

    def start(self, run: Run) -> None:
        """Schedule a gated run that is approved or waiting.

        If its task is running, the task checks the run once more.
        """
        self._start(run.id)

    def _start(self, run_id: str) -> None:
        name = f"starting run {run_id}"  # not the bare id: that names tasks of which L{RunRepository.settled} knows
        if not self._tasks.start(name, self._run_until_idle(run_id)) and self._tasks.running(name):
            self._restarted.add(run_id)

    async def _start_at_time(self, run_id: str) -> None:
        """Begin a run whose start time has come."""
        self._start(run_id)

    async def _run_until_idle(self, run_id: str) -> None:
        """Check whether the run may begin, and start it. If it is scheduled again meanwhile, check again.

        Its row may have changed between the two checks.
        """
        self._restarted.add(run_id)
        while run_id in self._restarted:
            self._restarted.discard(run_id)
            await self._execute_or_postpone(run_id)

    async def _execute_or_postpone(self, run_id: str) -> None:
        """Execute the run if it may begin now. Otherwise store what it waits for, or request another approval.

        If the run is paused, do nothing. If the decision allows only a later start, start a timer. If the database
        refuses, retry until it does not. If its state changed meanwhile, do nothing either. If the operator decided
        something on another daemon, which is known then, retry at once.
        """
        at_once = _TRIES_AT_ONCE
        while True:
            try:
                return await self._check_and_execute(await self._runs.run(run_id))
            except StoreUnavailable as error:
                if isinstance(error, AuthorityChanged) and at_once:
                    at_once -= 1
                    continue
                _log.warn("run {run} cannot be started yet: the database refuses", run=run_id)
                await deferLater(self._tasks.clock, _STORE_PAUSE_SECONDS)
            except NotYet as early:  # the signed decision counts, whatever the run's row says
                self._undo.wait(run_id, early.at, self._start_at_time)
                return None
            except Paused:  # paused since the check: resuming schedules the run again
                return None
            except StateConflict as conflict:
                _log.info("run {run} became {state} before it began", run=run_id, state=conflict.present.state.value)
                return None

    async def _check_and_execute(self, run: Run) -> None:
        """Execute the run, or store that it waits for the vault or a credential, or request another approval.

        If the run is paused or must not start yet, do nothing.

        :raises NotYet: if the decision allows only a later start.
        :raises StateConflict, Paused: if the run or the pauses changed meanwhile.
        :raises StoreUnavailable: if the database cannot be read or written.
        """
        if self._is_held_back(run):
            return
        unlocked = self._effects.may_act()
        outline = await self._find_outline(run) if unlocked else None
        lacking = None if outline is None else await self._find_lacking(outline, run.owner)
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
        # guard of promise 4: a run that needs the locked vault waits -> KeptTests.test_waits_for_the_vault
        if not unlocked:
            await self._wait(run, RunState.AWAITING_VAULT)

    async def _wait(self, run: Run, state: RunState, reason: str | None = None) -> None:
        why: dict[str, Any] = {} if reason is None else {"reason": reason}
        event = self._runs.event_of_run(f"run.{state.value}", run, **why)
        await self._runs.apply(transition(run, state, self._runs.now(), event))
        self._effects.note_waiting()  # after the write, so that the next look finds the run

    async def _find_outline(self, run: Run) -> PlanOutline | None:
        """Return the connectors and credentials that the run will use.

        Return None if the run has begun or ended, if the run cannot be planned, or if its decision is not valid.
        """
        if run.state not in NOT_BEGUN:
            return None
        try:
            return await self._gate.sound_outline(run)
        except AileronError:
            return None  # L{ApprovalGate.ready} or the attempt raises the error again

    async def _find_lacking(self, outline: PlanOutline, owner: Owner | None) -> CredentialNeedsYou | None:
        """Return the error about a credential that a person must renew before the run can begin.

        Return None if there is none, also if a credential could not be renewed for another reason.
        """
        try:
            await self._executor.make_ready(outline, owner)
        except CredentialNeedsYou as lacking:
            return lacking
        except AileronError:
            return None  # the attempt raises the error again
        return None

    async def _is_put_off(self, run: Run, outline: PlanOutline | None) -> bool:
        """Postpone the run if a service that it uses has rate-limited us, and return whether it is postponed."""
        if outline is None:
            return False
        await self._rates.learn()
        if not self._rates.are_known():
            return False
        held = max(outline.steps, key=lambda planned: self._rates.seconds_left(planned, run.id))
        seconds = self._rates.put_off(held, run.id)
        if not seconds:
            return False
        now = self._runs.now()
        until, reason = now + timedelta(seconds=seconds), self._rates.explain(held, seconds)
        event = self._runs.event_of_run("run.scheduled", run, reason=reason, begins_at=timestamp(until))
        await self._runs.apply(transition(run, RunState.APPROVED, now, event, start_after=until))
        self._undo.wait(run.id, until, self._start_at_time)
        return True

    def _is_held_back(self, run: Run) -> bool:
        """Return whether the run is paused or must not begin yet. Resuming or a timer schedules it again."""
        # guard of promise 2: a pause stops an approved run -> NoDecisionTests.test_paused_run
        if self._effects.is_paused(run.session_id):
            return True
        return run.state is RunState.APPROVED and self._undo.waits(run, self._start_at_time)

    async def _begin(self, run: Run, outline: PlanOutline | None) -> None:
        """Verify the decision and execute the run, or request another approval.

        :raises VaultLocked, BindingFailed: if the vault cannot be used now. The run is unchanged.
        :raises NotYet: if the decision allows only a later start. The run is unchanged.
        :raises Paused: if everything or the session is paused.
        :raises StoreUnavailable: if nothing can be stored now.
        """
        preview = await self._gate.seen_before_effect(run)
        if preview is not None and await self._is_put_off(run, outline):  # the preview may have set a rate limit
            return
        opened = await self._locks.run(run.id, lambda: self._open(run, preview))
        if opened is not None:
            await self._carry_out(*opened)

    async def _open(self, run: Run, preview: Preview | None) -> tuple[Run, Plan, Transition, Approval] | None:
        """Store the run as executing and return the run, its plan, the transition and the approval.

        If the decision no longer applies or a cap is reached, request another approval and return None.

        :raises VaultLocked, BindingFailed: if the vault cannot be used now.
        :raises NotYet: if the decision allows only a later start.
        :raises StoreUnavailable: if nothing can be stored now.
        """
        ready = await self._gate.ready(run, preview)
        if ready is None:
            return None
        plan, approval = ready
        run = approval.run  # may have been edited and approved again
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
        """Return a sentence that says which cap is reached and when the next run may start.

        :param full: the error about the cap.
        """
        left = full.details.get("retry_after")
        if not isinstance(left, int | float):
            return full.message
        return f"{full.message} There is room at {timestamp(self._runs.now() + timedelta(seconds=left))}."

    async def _carry_out(self, run: Run, plan: Plan, opening: Transition, approval: Approval) -> None:
        """Record the use of the decision, then execute the run. If the use cannot be recorded, fail the run instead."""
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
