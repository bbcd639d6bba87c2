"""Turns calls into runs: checks and stores them, and requests their approval or starts them."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import define, evolve
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.actions import KnownValues, check_arguments, resolve_inverse, uses_outputs
from aileron.base.json import JSON, canonical
from aileron.model.actions import Action, Offering
from aileron.model.audit import DAEMON, Actor
from aileron.model.errors import (
    AuthorityChanged,
    Cancelled,
    CapabilityDenied,
    Conflict,
    Forbidden,
    NotFound,
    refuse_while_stopping,
)
from aileron.model.interfaces.runner import ISubmission
from aileron.model.queries import Page, RunQuery
from aileron.model.runs import NOT_BEGUN, Approval, AttemptRow, Call, DryRun, Run, RunState, StepRow, Transition

from .approval_requests import ApprovalRequests, Previews
from .decisions import Decisions
from .executor import Executor
from .grants import GrantMatcher
from .limits import Limits
from .offerings import Offerings
from .plan import Plan, Planner, make_unavailable
from .runs import RunRepository, make_conflict, transition, with_call
from .scheduler import RunScheduler
from .session_filters import SessionFilters
from .tasks import KeyedLocks, Tasks, shielded

_PLACEHOLDER = "dry-run"
_NEVER_BEGAN = frozenset((RunState.DENIED, RunState.CANCELLED, RunState.EXPIRED))
_MOST_LOOKS = 3
"""How often an undo is submitted in a row. What was found at another daemon may have ended just then."""

_NO_PREVIEW = make_unavailable(Cancelled("A dry run reads nothing from the service.").fault())


@define(eq=False)
class Proposals:
    """Stores runs that need an approval, and withdraws runs that have not begun.

    A standing grant can approve a run at once.
    """

    _runs: RunRepository
    _requests: ApprovalRequests
    _previews: Previews
    _matcher: GrantMatcher
    _scheduler: RunScheduler
    _decisions: Decisions
    _locks: KeyedLocks

    async def put_up(self, run: Run, plan: Plan, call: Call) -> Run:
        """Store a gated run as pending, or as approved if a grant allows it, in one transaction.

        Return the stored run.
        """
        return await self.keep(run, plan, with_call(self._requests.opening(run, plan, call.actor), call))

    async def keep(self, run: Run, plan: Plan, asked: Transition) -> Run:
        """Store a gated run as pending, or as approved if a grant allows it, and return the stored run.

        A new approved run is started. For a new pending run, the expiry is scheduled and the preview is fetched.

        :param asked: the transition that requests the approval.
        """
        kept, created = await self._matcher.keep(run, plan, asked, lambda steps: self._runs.receive(run, steps))
        if created and kept.state is RunState.APPROVED:
            self._scheduler.start(kept)
        elif created and asked.ask is not None:
            self._requests.watch(kept.id, asked.ask.expires_at)
            if plan.preview is not None:
                self._previews.begin_fetch(kept.id, self._take_grant)
            if plan.action.approval.replaced_on_repeat:
                await self._replace_older(kept)
        return kept

    async def _replace_older(self, newest: Run) -> None:
        """Withdraw the older pending runs of which C{newest} is a repetition, whichever session requested them.

        A run that was edited, decided or withdrawn meanwhile is skipped. If the daemon stops before the older run is
        withdrawn, both stay pending.
        """
        query = RunQuery(states=(RunState.PENDING,), action=newest.action)
        for run in [each async for each in self._runs.all(query) if _is_repeated(each, newest)]:
            with suppress(Conflict, NotFound):
                await self.withdraw(run.id, DAEMON, f"Replaced by an identical later request, {newest.id}.")

    async def _take_grant(self, run_id: str) -> None:
        """Approve and start the run if a grant allows it, now that its preview has arrived.

        :raises ApprovalStale: if the approval was decided or replaced meanwhile.
        """
        granted = await self._matcher.previewed(run_id)
        if granted is not None:
            self._requests.forget(run_id)
            self._scheduler.start(granted)

    async def in_turn(self, run_id: str, work: Callable[[], Coroutine[Deferred[Any], Any, Run]]) -> Run:
        """Run C{work} while holding the run's lock, and return its result."""
        return await self._locks.run(run_id, work)

    async def withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        """Withdraw a run that has not begun, while holding its lock.

        :raises NotFound: if there is no such run.
        :raises Conflict: if the run has begun or ended.
        """
        return await self._locks.run(run_id, lambda: self._withdraw(run_id, actor, reason))

    async def _withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        run = await self._runs.run(run_id)
        # guard of promise 5: an executing run cannot be withdrawn -> OnceTests.test_under_way
        if run.state not in (RunState.PENDING, *NOT_BEGUN):
            raise make_conflict(run)
        # guard of promise 2: a withdrawn decision is invalid -> WrittenRowsTests.test_given_way
        if run.state is not RunState.PENDING:
            await self._decisions.give_up(run)
        event = self._runs.event_of_run("run.cancelled", run, actor, reason=reason)
        cancelled = await self._runs.apply_or_refuse(
            transition(run, RunState.CANCELLED, event.at, event, reason=reason)
        )
        self._requests.forget(run_id)
        return cancelled


def _is_repeated(older: Run, newest: Run) -> bool:
    """Return whether C{newest} repeats C{older}: the same arguments, and no idempotency keys that differ."""
    apart = older.idempotency_key != newest.idempotency_key and older.has_own_key and newest.has_own_key
    is_older = (older.received_at, older.id) < (newest.received_at, newest.id)
    # guard of roles: an agent withdraws nothing that another person's agent requested
    #    -> runner.test_owners.RepeatedTests.test_owner, instead same = True
    same = older.owner == newest.owner
    same = same and canonical(older.arguments) == canonical(newest.arguments)
    return is_older and same and older.asked is None and older.undoes == newest.undoes and not apart


@implementer(ISubmission)
@define(eq=False)
class Submission:
    """Accepts calls, starts the ungated ones and reports their outcome.

    :ivar filters: restricts which actions a session may use. Features add filters.
    """

    _runs: RunRepository
    _offerings: Offerings
    _planner: Planner
    _proposals: Proposals
    _executor: Executor
    _tasks: Tasks
    _limits: Limits
    filters: SessionFilters

    def offering(self) -> Offering:
        self._offerings.update()
        return self._offerings.current()

    async def offering_after(self, generation: int, seconds: float) -> Offering:
        return await self._offerings.after(generation, seconds)

    async def submit(self, call: Call) -> Run:
        try:
            return await self._submit(call)
        except AuthorityChanged:  # what the operator decided on another daemon is known now
            return await self._submit(call, consults=False)

    async def _submit(self, call: Call, *, consults: bool = True) -> Run:
        action, arguments = self._find_asked_for(call)
        if call.idempotency_key is not None:
            known = await self._find_known(call, call.idempotency_key, action, arguments)
            # guard of promise 4: an idempotency key makes one run -> KeptTests.test_key
            if known is not None:
                return known
            action, arguments = self._find_asked_for(call)  # again: the action may have changed while waiting
        # guard of several daemons: a daemon that stops leaves new calls to the others
        #    -> runner.test_several.DrainTests.test_new_call
        if self._tasks.is_closed:
            raise refuse_while_stopping()
        if self._limits.is_shared and consults:
            await self._limits.consult(call.session, action, arguments)
            action, arguments = self._find_asked_for(call)
        # guard of promise 2: a pause refuses calls -> NoDecisionTests.test_paused
        self._limits.admit(call.session, action, arguments)
        run = self._new_run(call, action, arguments)
        if not run.gated:
            # guard of promise 2: an ungated call needs the unlocked vault -> NoDecisionTests.test_locked_call
            self._limits.require_effects()
        plan = self._planner.plan(action, arguments, run.effect_key, owner=run.owner)
        if call.undoes is not None and any(map(uses_outputs, action.steps)):
            raise CapabilityDenied(f"A step of {action.name} uses another step's answer, so it cannot be shown before.")
        # guard of promise 2: a gated call needs an approval -> NoDecisionTests.test_waits
        if run.gated:
            await self._limits.refuse_full(plan, arguments, run.session_id)
            return await self._tasks.shielded(self._proposals.put_up(run, plan, call))
        return await self._do(evolve(run, title=plan.title()), plan, call)

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
        for _ in range(_MOST_LOOKS):
            earlier = 0
            async for run in self._runs.all(RunQuery(undoes=run_id)):
                if not await self._did_nothing(run):
                    return run
                earlier += 1
            undoing = await self._submit_undo(undone, actor, earlier)
            # guard of several daemons: a run that did nothing undoes nothing, also if it ended just now
            #    -> runner.test_several.UndoTests.test_ended_meanwhile, instead return undoing
            if not await self._did_nothing(undoing):
                break
        return undoing

    async def _submit_undo(self, undone: Run, actor: Actor, earlier: int) -> Run:
        """Submit a run that undoes a completed one, or return the one that another daemon has just submitted.

        :param earlier: how many runs were to undo it, and did nothing.
        """
        self._offerings.refresh()
        action = self._offerings.find(undone.action).action
        if action.inverse is None:
            raise CapabilityDenied(f"The action {action.name} does not say how it is undone.")
        if action.digest != undone.manifest_digest:
            raise Conflict(f"The action {action.name} changed after this run, so it cannot be undone automatically.")
        outputs = {step.step_id: step.output for step in await self._runs.list_steps(undone.id)}
        arguments = resolve_inverse(action.inverse, KnownValues(undone.arguments, outputs))
        # guard of several daemons: of two daemons one undoes a run -> runner.test_several.UndoTests.test_both
        key = Call.mint_key(f"undo-{undone.id}-{earlier}")
        name, owner = action.inverse.action, undone.owner
        try:
            return await self.submit(Call(name, arguments, actor, undoes=undone.id, owner=owner, idempotency_key=key))
        except NotFound as error:
            raise NotFound(f"It is undone by the action {name}. {error.message}") from None

    async def _did_nothing(self, run: Run) -> bool:
        """Return whether a run ended without an effect: it never began, or no step of it completed."""
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
        """Return the action as it is offered now, and the checked arguments with defaults.

        The caller must build the plan from them before it waits for anything, because the offering may change.

        :raises NotFound, Conflict: if the action is not offered, or disabled.
        :raises Forbidden: if the session may not use the action, or only requests of agents' own tools may.
        :raises InvalidRequest: if an argument is invalid.
        """
        offer = self._offerings.find(call.action)
        # guard against attack: only a tool's request uses the action of its service
        #    -> test_own_tools_calls.ActionTests.test_call
        if offer.tools_only and call.claim is None:
            raise Forbidden(
                f"Only requests of an agent's own tools can use the action {call.action}. Nothing was sent.",
                {"action": call.action},
            )
        self.filters.check(call.session, offer)
        action = offer.action
        return action, check_arguments(action, call.arguments)

    async def _find_known(self, call: Call, key: str, action: Action, arguments: Mapping[str, JSON]) -> Run | None:
        """Return the run of this session and action that used the idempotency key, or None if there is none.

        :raises Conflict: if that run has other arguments or another version of the action.
        """
        session_id = call.session.id if call.session else None
        run = await self._runs.find_by_key(session_id, action.name, key)
        if run is not None and (
            run.manifest_digest != action.digest
            # guard of promise 4: an idempotency key is bound to its arguments -> KeptTests.test_key
            or canonical(run.asked_for) != canonical(arguments)
            # guard of several daemons: a call that undoes nothing is not taken for an undo
            #    -> runner.test_several.UndoTests.test_taken_key
            or run.undoes != call.undoes
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
            owner=call.run_owner,
        )

    async def _do(self, run: Run, plan: Plan, call: Call) -> Run:
        """Store an ungated run as C{executing} in one transaction, start its task, and return the stored run.

        :raises StoreUnavailable: if the database refuses.
        :raises Stopping: if the daemon is stopping.
        :raises LimitExceeded: if a limit of the action is reached.
        """
        approved = transition(run, RunState.APPROVED, run.received_at)
        opening = self._executor.opening(approved.applied(run), plan, actor=call.actor)
        opening = with_call(opening, call)
        kept: Deferred[Run] = Deferred()
        if not self._tasks.start(run.id, self._keep_and_finish(run, plan, (approved, opening), kept)):
            raise refuse_while_stopping()
        return await kept

    async def _keep_and_finish(self, run: Run, plan: Plan, steps: Sequence[Transition], kept: Deferred[Run]) -> None:
        """Store the run, fire C{kept} with the stored run or the error, and execute the run.

        Both are done in one task, so that every run stored as executing has a task.
        """
        try:
            standing, created = await self._runs.receive(run, steps)
        except Exception:  # noqa: BLE001 - passed to the caller
            kept.errback(Failure())
            return
        kept.callback(standing)
        if created:
            await self._executor.carry_out(standing, plan, steps[-1])
