"""Settles runs of unknown outcome: by a look-up of the effect at the service, by the operator, or by a new run."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime, timedelta
from functools import partial

from attrs import define, evolve, field, frozen
from twisted.internet.defer import DeferredSemaphore
from twisted.logger import Logger
from zope.interface import implementer

from aileron.actions import check_arguments, uses_outputs
from aileron.base.json import JSON, canonical, compact, digest_of_bytes
from aileron.model.audit import DAEMON, Actor
from aileron.model.connectors import READ, WRITE, Finding, Sought
from aileron.model.errors import AileronError, CapabilityDenied, Conflict, Paused, StoreUnavailable, VaultLocked
from aileron.model.interfaces.governance import IReconciliation
from aileron.model.people import Owner
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.runs import AttemptRow, Run, RunState, Transition

from .approval_requests import ApprovalRequests
from .decisions import UNUSABLE, Decisions
from .effect_gate import EffectGate
from .offerings import Offerings
from .outcomes import LateAnswers, LookupResult, UncertainEffect, explain_not_done, find_echoes, record_finding
from .plan import Plan, PlannedStep, Planner, step_key
from .runs import RunRepository, make_conflict, transition
from .tasks import KeyedLocks, Tasks, Timers, shielded

LOOKS_AFTER_SECONDS = (2.0, 10.0, 60.0, 300.0, 660.0)
"""The times of automatic look-ups, in seconds since the run became C{unknown} or since the daemon started.

The last one is for operations, such as a push, whose failure is certain only after ten minutes.
"""

_LOOK_SECONDS = 10.0
_MOST_AT_ONCE = 8
_TAKEN_UP = timedelta(hours=24)
_MOST_TAKEN_UP = 200
_REPEATED = "It is being run again. End that run first."
_LATER = (StoreUnavailable, Paused, *UNUSABLE)
_log = Logger()


@define(eq=False)
class Reconciler:
    """Looks up uncertain effects, records every look-up, and settles runs by what it finds.

    :param look_up: looks up an effect with reads only, within the given number of seconds.
    :param monotonic: returns the seconds of a monotonic clock.
    """

    _runs: RunRepository
    _planner: Planner
    _decisions: Decisions
    _look_up: Callable[[PlannedStep, Sought, Owner | None, float], Awaitable[Finding]]
    _late_answers: LateAnswers
    _effects: EffectGate
    _tasks: Tasks
    _monotonic: Callable[[], float]
    _began: float = field(init=False)
    _timers: Timers = field(init=False)
    _stopped: bool = field(default=False, init=False)
    _since: dict[str, float] = field(factory=dict, init=False)  # by run id, when it became unknown in this process
    _slots: DeferredSemaphore = field(factory=lambda: DeferredSemaphore(_MOST_AT_ONCE), init=False)

    def __attrs_post_init__(self) -> None:
        """Record the start time. Runs that an earlier process left as unknown count as unknown since then."""
        self._began, self._timers = self._monotonic(), Timers(self._tasks.clock)

    async def schedule_recent(self) -> None:
        """Schedule look-ups of the effects of runs that became uncertain within a day: at most the newest 200."""
        since, looked_at = self._runs.now() - _TAKEN_UP, 0
        async for run in self._runs.all(RunQuery(states=(RunState.UNKNOWN,), limit=_MOST_TAKEN_UP)):
            looked_at += 1
            if looked_at > _MOST_TAKEN_UP:
                break
            if run.changed_at > since:
                self.follow(run)

    def follow(self, run: Run) -> None:
        """Schedule look-ups of the effect of C{run} at the service: one after each time in L{LOOKS_AFTER_SECONDS}."""
        self._since[run.id] = self._monotonic()
        self._wait(run.id, 0)

    def stop(self) -> None:
        """Cancel scheduled look-ups, schedule no more, and close late connections. Idempotent."""
        self._stopped = True
        self._timers.stop()
        self._late_answers.drop()

    async def find_out(self, run_id: str, actor: Actor) -> tuple[Run, Finding]:
        """Look up the effect of an uncertain run now, record the finding, and settle the run if the finding is certain.

        :return: the run afterwards, and the finding.
        :raises VaultLocked: if effects may not begin now.
        :raises NotFound, Conflict: if there is no such run, or it is not uncertain.
        :raises CapabilityDenied: if the connector cannot look up this operation.
        :raises Conflict: also if a file, the binding or the run's rows have changed since the start.
        :raises BindingFailed: if the decision cannot be verified now.
        """
        self._effects.require()
        run = await self._runs.run(run_id)
        if run.state is not RunState.UNKNOWN:
            raise make_conflict(run)
        doubt, sought = await self.find_uncertain(run)
        return await self._look_up_and_record(
            doubt, evolve(sought, last_at=self._no_earlier(sought.last_at, run_id)), actor
        )

    def _no_earlier(self, last_at: datetime, run_id: str) -> datetime:
        """Return C{last_at}, or the time at which the run became uncertain by the monotonic clock if that is later.

        An effect that is not found counts as absent only some time after the last attempt. Setting the wall clock
        forward must not shorten this time.
        """
        passed = self._monotonic() - self._since.get(run_id, self._began)
        return max(last_at, self._runs.now() - timedelta(seconds=passed))

    def _wait(self, run_id: str, number: int) -> None:
        if self._stopped:
            return
        before = LOOKS_AFTER_SECONDS[number - 1] if number else 0.0
        at = self._runs.now() + timedelta(seconds=LOOKS_AFTER_SECONDS[number] - before)
        self._timers.watch(run_id, at, partial(self._ring, number))

    async def _ring(self, number: int, run_id: str) -> None:
        self._tasks.start(f"looking up the outcome of run {run_id}", self._try(run_id, number))

    async def _try(self, run_id: str, number: int) -> None:
        """Look up a run's effect once. If the outcome is still unknown, schedule the next look-up if there is one.

        A failure that may pass is logged.
        """
        try:
            more = await self._slots.run(self._look_up_once, run_id)
        except _LATER as error:
            _log.warn("the outcome of run {run} cannot be looked up yet: {why}", run=run_id, why=error.message)
            more = True
        if more and number + 1 < len(LOOKS_AFTER_SECONDS):
            self._wait(run_id, number + 1)
        else:
            self._since.pop(run_id, None)

    async def _look_up_once(self, run_id: str) -> bool:
        """Look up a run's effect once, and return whether another look-up is worthwhile.

        It is if the finding is uncertain. It is not if the effect cannot be looked up at all.

        :raises StoreUnavailable, Paused, VaultLocked, BindingFailed: if the effect cannot be looked up now.
        """
        try:
            self._effects.refuse_paused((await self._runs.run(run_id)).session_id)
            _, finding = await self.find_out(run_id, DAEMON)
        except _LATER:
            raise
        except AileronError as error:
            _log.info("the outcome of run {run} cannot be looked up: {why}", run=run_id, why=error.message)
            return False
        return finding.happened is None

    async def _look_up_and_record(self, doubt: UncertainEffect, sought: Sought, actor: Actor) -> tuple[Run, Finding]:
        on_its_way = self._late_answers.listens(doubt.run.id)
        finding = await self._ask(doubt, sought)
        if finding.happened is False and on_its_way:  # the effect may still happen while the connection is open
            finding = evolve(finding, happened=None)
        fqn, echoed = doubt.planned.description.name, find_echoes(self._runs.events, doubt.run, doubt.planned, finding)
        event = self._runs.event_of_run(
            "execution.reconciled",
            doubt.run,
            actor,
            finding.fault,
            fqn,
            step=doubt.step_id,
            last=doubt.last,
            **_describe(finding),
        )
        found = LookupResult(finding.happened, finding.output, None, (*echoed.events, event), (), echoed.flags)
        return await record_finding(self._runs, doubt, found), finding

    async def _ask(self, doubt: UncertainEffect, sought: Sought) -> Finding:
        try:
            return await self._look_up(doubt.planned, sought, doubt.run.owner, _LOOK_SECONDS)
        except (CapabilityDenied, VaultLocked):
            raise
        except AileronError as error:
            return Finding(None, fault=error.fault())

    async def find_uncertain(self, run: Run) -> tuple[UncertainEffect, Sought]:
        """Return the step of C{run} whose effect may have happened, and the description of the effect to look up.

        The run's row is not trusted. The plan must be the approved one, or that of an ungated action, and the audit log
        must say that its steps were started.

        :raises CapabilityDenied: if the connector cannot look up this operation.
        :raises Conflict: if the action, its connector, the binding or the run's rows have changed since the start.
        :raises VaultLocked, BindingFailed: if the decision cannot be verified now.
        """
        plan = await self._plan(run)
        done = {row.step_id: row.output for row in await self._runs.list_steps(run.id)}
        position = len(done)
        if position >= len(plan.steps) or list(done) != [each.step.id for each in plan.steps[:position]]:
            raise Conflict("The recorded steps do not match the action.")
        planned = plan.steps[position]
        tried = [row for row in await self._runs.list_attempts(run.id) if row.step_id == planned.step.id]
        if not tried:
            raise Conflict("No step is in doubt any more, and the rest never started.")
        if planned.effect != WRITE or not planned.operation.reconcilable:
            raise CapabilityDenied(f"{planned.description.name} cannot look up whether this happened.")
        doubt = UncertainEffect(run, planned, position, done, position == len(plan.steps) - 1)
        return doubt, _sought(plan, doubt, tried)

    async def _plan(self, run: Run) -> Plan:
        self._planner.refresh()
        try:
            plan = await self._plan_decided(run)
        except (Conflict, StoreUnavailable, *UNUSABLE):
            raise
        except AileronError as error:
            raise Conflict(f"It can no longer be reconstructed: {error.message}") from error
        if plan.action.digest != run.manifest_digest or not await self._has_begun(run, plan.steps):
            raise Conflict("The action, its connector or its binding changed after it started.")
        return plan

    async def _plan_decided(self, run: Run) -> Plan:
        """Return the plan of an approved run, after checking it against the decision, or the plan of an ungated run.

        :raises Conflict: if there is no decision, or it is for another plan.
        :raises AileronError: if the run cannot be planned, or the vault cannot be used now.
        """
        approval = await self._runs.find_approval(run.id)
        plan = self._planner.plan_run(run) if approval is None else self._planner.plan_shown(approval)
        if approval is None:
            if plan.action.approval.gated or run.parent_id is not None:
                raise Conflict("No decision is recorded.")
            return plan
        if not self._decisions.has_valid_approval(run, approval) or plan.digest(run) != approval.digest:
            raise Conflict("It is not what was approved.")
        return plan

    async def _has_begun(self, run: Run, steps: Sequence[PlannedStep]) -> bool:
        """Return whether the audit log says that exactly these steps were started."""
        records = (await self._runs.list_records(AuditQuery(run_id=run.id, type="execution.started", limit=1))).items
        pinned: JSON = [planned.pinned() for planned in steps]
        return bool(records) and canonical(records[0].event.payload.get("steps")) == canonical(pinned)


def _describe(finding: Finding) -> dict[str, JSON]:
    """Return the payload that records a finding, with the digest and size of the output instead of the output."""
    notes = {name: note for name, note in finding.notes.items() if name not in {"echoed", "answer"}}
    if not finding.happened:
        return {"happened": finding.happened, **notes}
    text = compact(finding.output).encode("ascii")
    return {"happened": True, "output": {"digest": digest_of_bytes(text), "bytes": len(text)}, **notes}


def _sought(plan: Plan, doubt: UncertainEffect, tried: Sequence[AttemptRow]) -> Sought:
    planned, run = doubt.planned, doubt.run
    try:
        inputs = plan.inputs_of(planned, doubt.done)
    except AileronError as error:
        raise Conflict(f"Its inputs cannot be reconstructed: {error.message}") from error
    last = tried[-1]
    return Sought(
        planned.step.operation,
        inputs,
        planned.base_url,
        step_key(run.effect_key, planned.step),
        tried[0].started_at,
        last.ended_at or last.started_at,
    )


_OPEN = frozenset(state for state in RunState if not state.settled) | {RunState.UNKNOWN}


@implementer(IReconciliation)
@frozen(eq=False)
class ReconciliationService:
    """The service that settles uncertain runs: by the operator's statement, a look-up or a new run.

    :param keep: stores a new run with the transition that requests its approval.
    """

    _runs: RunRepository
    _offerings: Offerings
    _planner: Planner
    _requests: ApprovalRequests
    _keep: Callable[[Run, Plan, Transition], Awaitable[Run]]
    _decisions: Decisions
    _reconciler: Reconciler
    _tasks: Tasks
    _locks: KeyedLocks

    @shielded
    async def settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        return await self._locks.run(run_id, lambda: self._settle(run_id, happened, note, actor))

    @shielded
    async def find_out(self, run_id: str, actor: Actor) -> tuple[Run, Finding]:
        return await self._reconciler.find_out(run_id, actor)

    async def is_reconcilable(self, run_id: str) -> bool:
        run = await self._runs.run(run_id)
        if run.state is not RunState.UNKNOWN:
            return False
        try:
            await self._reconciler.find_uncertain(run)
        except AileronError as error:
            return isinstance(error, _LATER)
        return True

    @shielded
    async def run_again(self, run_id: str, note: str, actor: Actor) -> Run:
        return await self._locks.run(run_id, lambda: self._run_again(run_id, note, actor))

    async def _settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        run = await self._runs.run(run_id)
        if run.state is not RunState.UNKNOWN:
            # guard of promise 5: only uncertain runs are settled -> DoubtTests
            raise make_conflict(run)
        await self._decisions.give_up(run)
        event = self._runs.event_of_run("run.settled", run, actor, happened=happened, note=note)
        end = RunState.COMPLETED if happened else RunState.FAILED
        done: JSON = {step.step_id: step.output for step in await self._runs.list_steps(run_id)}
        result: JSON = {"output": None, "steps": done} if happened else None
        fault = None if happened else explain_not_done(run.fault)
        return await self._runs.apply_or_refuse(
            transition(run, end, event.at, event, reason=note, result=result, fault=fault)
        )

    async def _run_again(self, run_id: str, note: str, actor: Actor) -> Run:
        parent = await self._runs.run(run_id)
        await self._check(parent)
        child, plan = self._child(parent)
        same = child.effect_key == parent.effect_key
        event = self._runs.event_of_run("run.run_again", parent, actor, by=child.id, note=note, same_effect_key=same)
        noted = evolve(
            parent.note_repetition(event, note, run_again=child.id), verify=partial(_refuse_repeated, parent)
        )
        return await self._keep(child, plan, evolve(self._requests.opening(child, plan, actor), note=noted))

    async def _check(self, parent: Run) -> None:
        """Require that the run is uncertain and not being repeated already.

        :raises Conflict: if the run is not uncertain, or a run that repeats it has not ended.
        """
        if parent.state is not RunState.UNKNOWN:
            raise make_conflict(parent)
        async for child in self._runs.all(RunQuery(parent_id=parent.id)):
            if child.state in _OPEN:
                raise Conflict(_REPEATED, {"run_id": child.id, "state": child.state.value})

    def _child(self, parent: Run) -> tuple[Run, Plan]:
        """Return the run that repeats C{parent}, and its plan. Nothing is stored.

        If all its writes are idempotent, the new run has the parent's effect key, else a new one.

        :raises Conflict: if a write uses another step's output and so cannot be shown before the approval.
        :raises AileronError: if the action is not offered any more, or cannot be planned with the arguments.
        """
        self._offerings.refresh()
        action = self._offerings.find(parent.action).action
        arguments = check_arguments(action, parent.arguments)
        owner, key = parent.owner, parent.effect_key
        plan = self._planner.plan(action, arguments, key, owner=owner)
        if any(planned.effect != READ and uses_outputs(planned.step) for planned in plan.steps):
            raise Conflict(
                f"A step of {action.name} uses another step's answer, so it cannot be shown before you approve. Settle "
                "this run; if it did not happen, let the agent request the action again."
            )
        if not all(planned.idempotent for planned in plan.steps if planned.effect != READ):
            key = self._runs.fresh_id()
            plan = self._planner.plan(action, arguments, key, owner=owner)
        now = self._runs.now()
        run = Run(
            id=self._runs.fresh_id(),
            action=action.name,
            action_version=action.version,
            manifest_digest=action.digest,
            arguments=arguments,
            state=RunState.RECEIVED,
            gated=True,
            effect_key=key,
            received_at=now,
            changed_at=now,
            session_id=parent.session_id,
            parent_id=parent.id,
            owner=owner,
        )
        return run, plan


def _refuse_repeated(read: Run, present: Run) -> None:
    """Refuse to repeat a run that was settled or repeated since it was read.

    :raises Conflict: if it was.
    """
    if present.state is not RunState.UNKNOWN:
        raise make_conflict(present)
    if present.repeated_by != read.repeated_by:
        raise Conflict(_REPEATED, {"run_id": present.repeated_by})
