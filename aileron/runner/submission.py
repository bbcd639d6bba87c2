"""Makes runs of calls: checks them, keeps them, and puts them up for decision or begins them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any

from attrs import define, evolve
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.actions import KnownValues, check_arguments, resolve_inverse, uses_outputs
from aileron.base.json import JSON, canonical
from aileron.model.actions import Action, Offering
from aileron.model.audit import DAEMON, Actor
from aileron.model.errors import Cancelled, CapabilityDenied, Conflict, NotFound, StoreUnavailable
from aileron.model.interfaces.runner import ISubmission
from aileron.model.queries import Page, RunQuery
from aileron.model.runs import NOT_BEGUN, Approval, AttemptRow, Call, DryRun, Run, RunState, StepRow, Transition

from .approvals import ApprovalRequests, Decisions, Previews
from .executor import Executor
from .grants import GrantMatcher
from .limits import Limits
from .offerings import Offerings
from .plan import Plan, Planner, make_unavailable
from .runs import RunRepository, make_conflict, transition, with_tool_call
from .scheduler import RunScheduler
from .tasks import KeyedLocks, Tasks, shielded

_PLACEHOLDER = "dry-run"
_NEVER_BEGAN = frozenset((RunState.DENIED, RunState.CANCELLED, RunState.EXPIRED))
_NO_PREVIEW = make_unavailable(Cancelled("A dry run reads nothing from the service.").fault())


@define(eq=False)
class Proposals:
    """Stores gated runs, pending or approved by a standing grant, and withdraws runs that have not begun."""

    _runs: RunRepository
    _requests: ApprovalRequests
    _previews: Previews
    _matcher: GrantMatcher
    _scheduler: RunScheduler
    _decisions: Decisions
    _locks: KeyedLocks

    async def put_up(self, run: Run, plan: Plan, actor: Actor, tool_call: str | None = None) -> Run:
        """Store a gated run as pending, or as approved if a grant allows it, in one transaction."""
        return await self.keep(run, plan, with_tool_call(self._requests.opening(run, plan, actor), tool_call))

    async def keep(self, run: Run, plan: Plan, asked: Transition) -> Run:
        """Store a gated run with C{asked}, which requests its approval, or as approved if a grant allows it."""
        kept, created = await self._matcher.keep(run, plan, asked, lambda steps: self._runs.receive(run, steps))
        if created and kept.state is RunState.APPROVED:
            self._scheduler.start(kept)
        elif created and asked.ask is not None:
            self._requests.watch(kept.id, asked.ask.expires_at)
            if plan.preview is not None:
                self._previews.begin(kept.id, self._take_grant)
        return kept

    async def _take_grant(self, run_id: str) -> None:
        """Approve the run by a grant, if one allows it, now that its preview has arrived."""
        granted = await self._matcher.previewed(run_id)
        if granted is not None:
            self._requests.forget(run_id)
            self._scheduler.start(granted)

    async def in_turn(self, run_id: str, work: Callable[[], Coroutine[Deferred[Any], Any, Run]]) -> Run:
        """Run C{work} while holding the run's lock."""
        return await self._locks.run(run_id, work)

    async def withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        """Withdraw a run that has not begun, while holding its lock."""
        return await self._locks.run(run_id, lambda: self._withdraw(run_id, actor, reason))

    async def _withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        run = await self._runs.run(run_id)
        # guard of promise 5: what is under way cannot be taken back -> OnceTests.test_under_way
        if run.state not in (RunState.PENDING, *NOT_BEGUN):
            raise make_conflict(run)
        # guard of promise 2: what was taken back counts no more -> WrittenRowsTests.test_given_way
        if run.state is not RunState.PENDING:
            await self._decisions.give_up(run)
        event = self._runs.event_of_run("run.cancelled", run, actor, reason=reason)
        cancelled = await self._runs.apply_or_refuse(
            transition(run, RunState.CANCELLED, event.at, event, reason=reason)
        )
        self._requests.forget(run_id)
        return cancelled


@implementer(ISubmission)
@define(eq=False)
class Submission:
    """Accepts calls, starts the ungated ones and reports their outcome."""

    _runs: RunRepository
    _offerings: Offerings
    _planner: Planner
    _proposals: Proposals
    _executor: Executor
    _tasks: Tasks
    _limits: Limits

    def offering(self) -> Offering:
        self._offerings.look()
        return self._offerings.current()

    async def offering_after(self, generation: int, seconds: float) -> Offering:
        return await self._offerings.after(generation, seconds)

    async def submit(self, call: Call) -> Run:
        action, arguments = self._find_asked_for(call)
        if call.idempotency_key is not None:
            known = await self._find_known(call, call.idempotency_key, action, arguments)
            # guard of promise 4: a key stands for one run -> KeptTests.test_key
            if known is not None:
                return known
            action, arguments = self._find_asked_for(call)  # once more: what was trusted may lie there no longer
        # guard of promise 2: a pause lets no call in -> NoDecisionTests.test_paused
        self._limits.admit(call.session, action, arguments)
        run = self._new_run(call, action, arguments)
        if not run.gated:
            # guard of promise 2: a call meets a locked vault -> NoDecisionTests.test_locked_call
            self._limits.require_effects()
        plan = self._planner.plan(action, arguments, run.effect_key)
        if call.undoes is not None and any(map(uses_outputs, action.steps)):
            raise CapabilityDenied(f"A step of {action.name} uses another step's answer, so it cannot be shown before.")
        # guard of promise 2: a gated call is asked about -> NoDecisionTests.test_waits
        if run.gated:
            await self._limits.refuse_full(plan, arguments, run.session_id)
            return await self._tasks.shielded(self._proposals.put_up(run, plan, call.actor, call.tool_call))
        return await self._do(run, plan, call)

    def dry_run(self, name: str, arguments: JSON) -> DryRun:
        offer = self._offerings.on_disk(name)
        checked = check_arguments(offer.action, arguments)
        run = self._new_run(Call(name, checked, DAEMON), offer.action, checked)
        run = evolve(run, id=_PLACEHOLDER, effect_key=_PLACEHOLDER, state=RunState.PENDING)
        plan = self._planner.plan(offer.action, checked, run.effect_key, _NO_PREVIEW)
        asked = Approval(run, plan.digest(run), plan.review(), run.received_at)
        return DryRun(asked, offer, tuple(plan.cards()))

    @shielded
    async def undo(self, run_id: str, actor: Actor) -> Run:
        return await self._proposals.in_turn(run_id, lambda: self._undo(run_id, actor))

    async def _undo(self, run_id: str, actor: Actor) -> Run:
        undone = await self._runs.run(run_id)
        if undone.state is not RunState.COMPLETED:
            raise make_conflict(undone)
        async for run in self._runs.all(RunQuery(undoes=run_id)):
            if not await self._did_nothing(run):
                return run
        self._offerings.refresh()
        action = self._offerings.find(undone.action).action
        if action.inverse is None:
            raise CapabilityDenied(f"The action {action.name} does not say how it is undone.")
        if action.digest != undone.manifest_digest:
            raise Conflict(f"The action {action.name} changed after this run, so it cannot be undone automatically.")
        outputs = {step.step_id: step.output for step in await self._runs.list_steps(run_id)}
        arguments = resolve_inverse(action.inverse, KnownValues(undone.arguments, outputs))
        try:
            return await self.submit(Call(action.inverse.action, arguments, actor, undoes=run_id))
        except NotFound as error:
            raise NotFound(f"It is undone by the action {action.inverse.action}. {error.message}") from None

    async def _did_nothing(self, run: Run) -> bool:
        """Return whether a run ended without an effect: it never began, or its first step failed."""
        if run.state is RunState.FAILED:
            return not await self._runs.list_steps(run.id)
        return run.state in _NEVER_BEGAN

    async def wait(self, run_id: str, seconds: float) -> Run:
        return await self._runs.settled(run_id, seconds, moving=self._tasks.running(run_id))

    async def run(self, run_id: str) -> Run:
        return await self._runs.run(run_id)

    async def runs(self, query: RunQuery) -> Page[Run]:
        return await self._runs.list_runs(query)

    async def count(self, query: RunQuery) -> int:
        return await self._runs.count_runs(query)

    async def most_used(self, limit: int) -> tuple[str, ...]:
        return await self._runs.list_most_used(limit)

    async def history(self, run_id: str) -> tuple[tuple[StepRow, ...], tuple[AttemptRow, ...]]:
        return await self._runs.list_steps(run_id), await self._runs.list_attempts(run_id)

    @shielded
    async def withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        return await self._proposals.withdraw(run_id, actor, reason)

    def _find_asked_for(self, call: Call) -> tuple[Action, Mapping[str, JSON]]:
        """Return the action as it is offered now, and the checked arguments.

        The caller plans with them before it does anything else.
        """
        action = self._offerings.find(call.action).action
        return action, check_arguments(action, call.arguments)

    async def _find_known(self, call: Call, key: str, action: Action, arguments: Mapping[str, JSON]) -> Run | None:
        """Return the run that used this idempotency key, or None if none did."""
        session_id = call.session.id if call.session else None
        run = await self._runs.find_by_key(session_id, action.name, key)
        if run is not None and (
            run.manifest_digest != action.digest
            # guard of promise 4: a key stands for the same arguments -> KeptTests.test_key
            or canonical(run.asked_for) != canonical(arguments)
        ):
            raise Conflict("This idempotency key was used with other arguments or another version of the action.")
        return run

    def _new_run(self, call: Call, action: Action, arguments: Mapping[str, JSON]) -> Run:
        now = self._runs.now()
        return Run(
            id=self._runs.fresh_id(),
            action=action.name,
            action_version=action.version,
            manifest_digest=action.digest,
            arguments=arguments,
            state=RunState.RECEIVED,
            gated=action.approval.gated or call.undoes is not None,
            effect_key=self._runs.fresh_id(),
            received_at=now,
            changed_at=now,
            session_id=call.session.id if call.session else None,
            idempotency_key=call.idempotency_key,
            undoes=call.undoes,
        )

    async def _do(self, run: Run, plan: Plan, call: Call) -> Run:
        """Store an ungated run as C{executing} in one transaction, and start it."""
        approved = transition(run, RunState.APPROVED, run.received_at)
        opening = self._executor.opening(approved.applied(run), plan, actor=call.actor)
        opening = with_tool_call(opening, call.tool_call)
        kept: Deferred[Run] = Deferred()
        if not self._tasks.start(run.id, self._keep_and_finish(run, plan, (approved, opening), kept)):
            raise StoreUnavailable("The daemon is stopping.")
        return await kept

    async def _keep_and_finish(self, run: Run, plan: Plan, steps: Sequence[Transition], kept: Deferred[Run]) -> None:
        """Store the run and execute it in one task, so that no stored run has begun without a task."""
        try:
            standing, created = await self._runs.receive(run, steps)
        except Exception:  # noqa: BLE001 - it is the caller's, and travels to it
            kept.errback(Failure())
            return
        kept.callback(standing)
        if created:
            await self._executor.carry_out(standing, plan, steps[-1])
