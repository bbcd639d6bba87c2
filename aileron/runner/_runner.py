"""The chokepoint: every invocation enters here, and nothing else reaches a connector."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.errors import Conflict, StateConflict, StoreUnavailable, VaultLocked
from aileron.interfaces import IRunner, IRuns, IVault
from aileron.manifests import check_arguments
from aileron.values import (
    JSON,
    Action,
    Actor,
    Approval,
    AttemptRow,
    Call,
    Decision,
    Offer,
    Offering,
    Page,
    PendingLimits,
    Run,
    RunQuery,
    RunState,
    StepRow,
    Transition,
    TrustItem,
    TrustKind,
    VaultState,
    canonical,
)

from ._advance import Advance
from ._decisions import UNUSABLE, Decisions
from ._desk import Desk
from ._executor import Executor
from ._expiry import Expiry
from ._freshness import Freshness
from ._gate import Gate
from ._ledger import Ledger
from ._lifecycle import transition
from ._offering import Offerings
from ._pen import Pen
from ._plan import Plan, Planner
from ._recovery import Recovery
from ._tasks import Tasks

_log = Logger()
_WITHDRAWABLE = (RunState.PENDING, RunState.APPROVED, RunState.AWAITING_VAULT)


@implementer(IRunner)
@define(eq=False)
class Runner:
    """Looks up, validates, asks, executes, records.  Built by L{aileron.runner.build}.

    What writes is shielded: a caller that leaves between a commit and what follows from it must not leave it undone.
    """

    _runs: IRuns
    _vault: IVault
    _ledger: Ledger
    _offerings: Offerings
    _planner: Planner
    _gate: Gate
    _decisions: Decisions
    _freshness: Freshness
    _desk: Desk
    _executor: Executor
    _tasks: Tasks
    _pen: Pen
    _limits: PendingLimits
    _probe: Callable[[str], None]
    _expiry: Expiry = field(init=False)
    _approved: Advance = field(init=False)
    _held: bool = field(default=False, init=False)
    _could_act: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._expiry = Expiry(self._tasks.clock, self._expire)
        self._approved = Advance(
            self._ledger,
            self._gate,
            self._decisions,
            self._executor,
            self._tasks,
            self._pen,
            self._may_act,
            self._look_again,
            self._watch,
            self._probe,
        )

    # the life of the runner ------------------------------------------------------------------

    async def start(self) -> None:
        """Take up what an earlier life left, before anybody is served."""
        self._offerings.refresh()
        await self._freshness.check()
        give_up = self._decisions.give_up
        await Recovery(self._runs, self._ledger, self._pen, self._approved.start, self._watch, give_up).recover()
        self._could_act = self._freshness.comparable

    def look(self) -> None:
        """Notice changed files and a changed vault; the daemon's timer calls it."""
        self._offerings.refresh()
        could, self._could_act = self._could_act, self._may_act() and self._freshness.comparable
        if self._could_act and not could:
            self._tasks.start("what waits for the vault", self._resume())
        elif self._freshness.moved or self._decisions.owing:
            self._tasks.start("how far the vault has come", self._note())

    async def _note(self) -> None:
        await self._decisions.settle_up()
        await self._freshness.note()

    async def _resume(self) -> None:
        """The vault's file was gone or another, and is there again: a run that met its absence goes on."""
        try:
            await self._freshness.check()
        except (StoreUnavailable, *UNUSABLE):
            _log.warn("whether something was put back cannot be told yet")
            self._look_again()
            return
        await self._decisions.settle_up()
        waiting = RunQuery(states=(RunState.AWAITING_VAULT,), limit=1000, oldest_first=True)
        for run in (await self._runs.list(waiting)).items:
            self._approved.start(run)

    def _look_again(self) -> None:
        """Have the next look take up what waits for the vault."""
        self._could_act = False

    async def stop(self, seconds: float) -> None:
        """Start nothing more; let effects under way finish within C{seconds}, else record them as in doubt."""
        self._expiry.stop()
        await self._tasks.drain(seconds)
        await self._freshness.note()

    async def hold(self) -> None:
        """See L{IRunner.hold}."""
        self._held = True
        await self._tasks.at_rest()

    # what can be run -------------------------------------------------------------------------

    def offering(self) -> Offering:
        """See L{IRunner.offering}."""
        self._offerings.look()
        return self._offerings.current()

    async def offering_after(self, generation: int, seconds: float) -> Offering:
        """See L{IRunner.offering_after}."""
        return await self._offerings.after(generation, seconds)

    async def set_enabled(self, name: str, enabled: bool, actor: Actor) -> Offer:
        """See L{IRunner.set_enabled}."""
        return await self._tasks.shielded(self._desk.switch(name, enabled, actor))

    async def trust_items(self) -> tuple[TrustItem, ...]:
        """See L{IRunner.trust_items}."""
        return await self._desk.items()

    async def trust(self, items: Sequence[tuple[TrustKind, str, str]], actor: Actor) -> tuple[TrustItem, ...]:
        """See L{IRunner.trust}."""
        return await self._tasks.shielded(self._desk.trust(items, actor))

    async def distrust(self, kind: TrustKind, name: str, actor: Actor) -> None:
        """See L{IRunner.distrust}."""
        await self._tasks.shielded(self._desk.distrust(kind, name, actor))

    # invocations -----------------------------------------------------------------------------

    async def submit(self, call: Call) -> Run:
        """See L{IRunner.submit}."""
        action, arguments = self._asked_for(call)
        if call.idempotency_key is not None:
            known = await self._known(call, call.idempotency_key, action, arguments)
            if known is not None:
                return known
            action, arguments = self._asked_for(call)  # once more: what was trusted may lie there no longer
        if not action.approval.required:
            self._require_vault()
        run = self._new_run(call, action, arguments)
        plan = self._planner.plan(action, arguments, run.effect_key)
        if run.gated:
            return await self._tasks.shielded(self._ask(run, plan, call.actor))
        return await self._do(run, plan, call.actor)

    async def wait(self, run_id: str, seconds: float) -> Run:
        """See L{IRunner.wait}."""
        return await self._ledger.settled(run_id, seconds, moving=self._tasks.running(run_id))

    async def run(self, run_id: str) -> Run:
        """See L{IRunner.run}."""
        return await self._ledger.run(run_id)

    async def runs(self, query: RunQuery) -> Page[Run]:
        """See L{IRunner.runs}."""
        return await self._runs.list(query)

    async def history(self, run_id: str) -> tuple[tuple[StepRow, ...], tuple[AttemptRow, ...]]:
        """See L{IRunner.history}."""
        return await self._runs.steps(run_id), await self._runs.attempts(run_id)

    async def withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        """See L{IRunner.withdraw}."""
        return await self._tasks.shielded(self._withdraw(run_id, actor, reason))

    async def _withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        run = await self._ledger.run(run_id)
        if run.state not in _WITHDRAWABLE:
            raise _in_another_state(run)
        if run.state is not RunState.PENDING:
            await self._decisions.give_up(run)
        event = self._pen.of_run("run.cancelled", run, actor, reason=reason)
        cancelled = await self._change(transition(run, RunState.CANCELLED, self._pen.now(), event, reason=reason))
        self._expiry.forget(run_id)
        return cancelled

    async def settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """See L{IRunner.settle}."""
        return await self._tasks.shielded(self._settle(run_id, happened, note, actor))

    async def _settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        run = await self._ledger.run(run_id)
        if run.state is not RunState.UNKNOWN:
            raise _in_another_state(run)
        await self._decisions.give_up(run)
        event = self._pen.of_run("run.settled", run, actor, happened=happened, note=note)
        end = RunState.COMPLETED if happened else RunState.FAILED
        done: JSON = {step.step_id: step.output for step in await self._runs.steps(run_id)}
        result: JSON = {"output": None, "steps": done} if happened else None
        fault = None if happened else run.fault
        return await self._change(transition(run, end, self._pen.now(), event, reason=note, result=result, fault=fault))

    # approvals -------------------------------------------------------------------------------

    async def approval(self, run_id: str) -> Approval:
        """See L{IRunner.approval}."""
        self._offerings.refresh()
        return await self._gate.shown(await self._ledger.approval(run_id))

    async def approvals(self, query: RunQuery) -> Page[Approval]:
        """See L{IRunner.approvals}."""
        self._offerings.refresh()
        page = await self._runs.approvals(query)
        return Page(tuple([await self._gate.shown(approval) for approval in page.items]), page.cursor)

    async def decide(self, run_id: str, decision: Decision) -> Approval:
        """See L{IRunner.decide}."""
        return await self._tasks.shielded(self._decide(run_id, decision))

    async def _decide(self, run_id: str, decision: Decision) -> Approval:
        approval = await self._gate.decide(run_id, decision)
        self._expiry.forget(run_id)
        if approval.run.state is RunState.APPROVED:
            self._approved.start(approval.run)
        return approval

    async def pending(self, session_id: str | None) -> int:
        """See L{IRunner.pending}."""
        return await self._runs.count(RunQuery(states=(RunState.PENDING,), session_id=session_id))

    # inside ----------------------------------------------------------------------------------

    def _asked_for(self, call: Call) -> tuple[Action, Mapping[str, JSON]]:
        """The action as it is offered now, and its arguments; whoever plans with them does so before anything else."""
        action = self._offerings.find(call.action).action
        return action, check_arguments(action, call.arguments)

    async def _known(self, call: Call, key: str, action: Action, arguments: Mapping[str, JSON]) -> Run | None:
        """The run that this idempotency key stands for, if it was used."""
        session_id = call.session.id if call.session else None
        run = await self._runs.find_by_key(session_id, action.name, key)
        if run is not None and (
            run.manifest_digest != action.digest or canonical(run.arguments) != canonical(arguments)
        ):
            raise Conflict("This idempotency key was used with other arguments or another version of the action.")
        return run

    def _may_act(self) -> bool:
        return not self._held and self._vault.state() is VaultState.UNLOCKED

    def _require_vault(self) -> None:
        if not self._may_act():
            state = self._vault.state()
            raise VaultLocked("The vault is locked: run `aileron vault unlock`.", {"state": state.value})

    def _new_run(self, call: Call, action: Action, arguments: Mapping[str, JSON]) -> Run:
        now = self._pen.now()
        return Run(
            id=self._pen.fresh_id(),
            action=action.name,
            action_version=action.version,
            manifest_digest=action.digest,
            arguments=arguments,
            state=RunState.RECEIVED,
            gated=action.approval.required,
            effect_key=self._pen.fresh_id(),
            received_at=now,
            changed_at=now,
            session_id=call.session.id if call.session else None,
            idempotency_key=call.idempotency_key,
        )

    async def _ask(self, run: Run, plan: Plan, actor: Actor) -> Run:
        """Keep a gated run and put it up for decision, in one transaction."""
        asked = self._gate.opening(run, plan, actor)
        kept, created = await self._ledger.receive(run, [asked], self._limits)
        if created and asked.ask is not None:
            self._expiry.watch(kept.id, asked.ask.expires_at)
        return kept

    async def _do(self, run: Run, plan: Plan, actor: Actor) -> Run:
        """Keep an ungated run up to C{executing}, in one transaction, and start it."""
        approved = transition(run, RunState.APPROVED, run.received_at)
        opening = self._executor.opening(approved.applied(run), plan, actor=actor)
        kept: Deferred[Run] = Deferred()
        if not self._tasks.start(run.id, self._keep_and_finish(run, plan, (approved, opening), kept)):
            raise StoreUnavailable("The daemon is stopping.")
        return await kept

    async def _keep_and_finish(self, run: Run, plan: Plan, steps: Sequence[Transition], kept: Deferred[Run]) -> None:
        """In one task, so that there is no moment at which a run is on record as begun and nothing does it."""
        try:
            standing, created = await self._ledger.receive(run, steps, self._limits)
        except Exception:  # noqa: BLE001 - it is the caller's, and travels to it
            kept.errback(Failure())
            return
        kept.callback(standing)
        if created:
            await self._executor.carry_out(standing, plan, steps[-1])

    async def _expire(self, run_id: str) -> None:
        run = await self._ledger.run(run_id)
        if run.state is RunState.PENDING:
            with suppress(StateConflict):  # decided or withdrawn at the last moment
                await self._gate.expire(run)

    def _watch(self, approval: Approval) -> None:
        self._expiry.watch(approval.run.id, approval.expires_at)

    async def _change(self, change: Transition) -> Run:
        try:
            return await self._ledger.apply(change)
        except StateConflict as conflict:
            raise _in_another_state(conflict.present) from conflict


def _in_another_state(run: Run) -> Conflict:
    return Conflict(f"It is {run.state.value} already.", {"state": run.state.value})
