"""The chokepoint: every invocation enters here, and nothing else reaches a connector."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define, evolve
from twisted.internet.task import deferLater
from twisted.logger import Logger
from zope.interface import implementer

from aileron.errors import StoreUnavailable
from aileron.interfaces import IRunner
from aileron.runner.approval.deadlines import Expiry
from aileron.runner.approval.decisions import UNUSABLE, Decisions
from aileron.runner.approval.editing import ApprovalEditor, Edit
from aileron.runner.approval.gate import ApprovalGate
from aileron.runner.approval.precedents import find_precedents
from aileron.runner.approval.previews import Previews
from aileron.runner.approval.requests import ApprovalRequests
from aileron.runner.grants.service import GrantService
from aileron.runner.limits.admission import EffectGate, Limits
from aileron.runner.reconciliation.reconciler import Reconciler
from aileron.runner.reconciliation.rerun import Rerun
from aileron.runner.runs.repository import RunRepository
from aileron.runner.scheduling.tasks import Tasks
from aileron.runner.scheduling.waiters import KeyedLocks
from aileron.values import (
    JSON,
    Actor,
    Approval,
    AttemptRow,
    Call,
    Decision,
    Finding,
    Grant,
    Halt,
    NewGrant,
    Offer,
    Offering,
    OwnCap,
    Page,
    Pause,
    Precedents,
    Predicate,
    Run,
    RunQuery,
    RunState,
    StandingGrant,
    StepRow,
    TrustItem,
    TrustKind,
    heavy,
)

from ._pausing import PauseService
from ._recovery import Recovery, RollbackDetector
from ._scheduler import RunScheduler
from ._submission import Submission
from ._termination import RunTermination
from ._trust import TrustService

_log = Logger()


@implementer(IRunner)
@define(eq=False)
class Runner:
    """Looks up, validates, asks, executes, records.  Built by L{aileron.runner.build}.

    What writes is shielded: a caller that leaves between a commit and what follows from it must not leave it undone.
    """

    _runs: RunRepository
    _requests: ApprovalRequests
    _gate: ApprovalGate
    _decisions: Decisions
    _rollbacks: RollbackDetector
    _trust: TrustService
    _submission: Submission
    _termination: RunTermination
    _scheduler: RunScheduler
    _recovery: Recovery
    _expiry: Expiry
    _effects: EffectGate
    _locks: KeyedLocks
    _tasks: Tasks
    _limits: Limits
    _pausing: PauseService
    _previews: Previews
    _grants: GrantService
    _reconciler: Reconciler
    _rerun: Rerun
    _editor: ApprovalEditor

    # the life of the runner ------------------------------------------------------------------

    async def start(self) -> None:
        """Take up what an earlier life left, before anybody is served."""
        self._requests.planner.offerings.refresh()
        await self._limits.learn()
        await self._rollbacks.check()
        await self._reconciler.take_up()
        await self._recovery.recover()
        self._effects.could_act = self._rollbacks.compared
        self._tasks.start("previews that were missed", self._previews.take_up())

    def look(self) -> None:
        """Notice changed files and a changed vault; the daemon's timer calls it."""
        self._requests.planner.offerings.refresh()
        could, can = self._effects.could_act, self._effects.may_act() and self._rollbacks.comparable
        self._effects.could_act = can
        if can:
            self._limits.pauses.settle_up()
        if can and not could:
            if not self._tasks.start("what waits for the vault", self._resume()):
                self._effects.missed()
        elif self._rollbacks.moved or self._decisions.owing:
            self._tasks.start("how far the vault has come", self._note())

    async def _note(self) -> None:
        await self._decisions.settle_up()
        await self._rollbacks.note()

    async def _resume(self) -> None:
        """The vault's file was gone or another, and is there again: a run that met its absence goes on."""
        try:
            await self._rollbacks.check()
            await self._decisions.settle_up()
            await self._take_up_waiting()
            await self._previews.take_up()
        except (StoreUnavailable, *UNUSABLE):
            _log.warn("what waits for the vault cannot be taken up yet")
            self._effects.missed()

    async def _take_up_waiting(self) -> None:
        waiting: RunQuery | None = RunQuery(states=(RunState.AWAITING_VAULT,), limit=1000, oldest_first=True)
        while waiting is not None:
            page = await self._runs.table.list(waiting)
            for run in page.items:
                self._scheduler.start(run)
            waiting = None if page.cursor is None else evolve(waiting, cursor=page.cursor)

    async def stop(self, seconds: float) -> None:
        """Start nothing more; let effects under way finish within C{seconds}, else record them as in doubt."""
        self._expiry.stop()
        self._reconciler.stop()
        await self._tasks.drain(seconds)
        await self._rollbacks.note()

    async def hold(self) -> None:
        """See L{IRunner.hold}."""
        self._effects.hold()
        self._reconciler.stop()
        await self._tasks.at_rest()

    # what can be run -------------------------------------------------------------------------

    def offering(self) -> Offering:
        """See L{IRunner.offering}."""
        self._requests.planner.offerings.look()
        return self._requests.planner.offerings.current()

    async def offering_after(self, generation: int, seconds: float) -> Offering:
        """See L{IRunner.offering_after}."""
        return await self._requests.planner.offerings.after(generation, seconds)

    async def set_enabled(self, name: str, enabled: bool, actor: Actor) -> Offer:
        """See L{IRunner.set_enabled}."""
        return await self._tasks.shielded(self._trust.set_enabled(name, enabled, actor))

    async def trust_items(self) -> tuple[TrustItem, ...]:
        """See L{IRunner.trust_items}."""
        return await self._trust.items()

    async def trust(self, items: Sequence[tuple[TrustKind, str, str]], actor: Actor) -> tuple[TrustItem, ...]:
        """See L{IRunner.trust}."""
        return await self._tasks.shielded(self._trust.trust(items, actor))

    async def distrust(self, kind: TrustKind, name: str, actor: Actor) -> None:
        """See L{IRunner.distrust}."""
        await self._tasks.shielded(self._trust.distrust(kind, name, actor))

    # invocations -----------------------------------------------------------------------------

    async def submit(self, call: Call) -> Run:
        """See L{IRunner.submit}."""
        return await self._submission.submit(call)

    async def wait(self, run_id: str, seconds: float) -> Run:
        """See L{IRunner.wait}."""
        return await self._runs.settled(run_id, seconds, moving=self._tasks.running(run_id))

    async def run(self, run_id: str) -> Run:
        """See L{IRunner.run}."""
        return await self._runs.run(run_id)

    async def runs(self, query: RunQuery) -> Page[Run]:
        """See L{IRunner.runs}."""
        return await self._runs.table.list(query)

    async def most_used(self, limit: int) -> tuple[str, ...]:
        """See L{IRunner.most_used}."""
        return await self._runs.table.most_used(limit)

    async def history(self, run_id: str) -> tuple[tuple[StepRow, ...], tuple[AttemptRow, ...]]:
        """See L{IRunner.history}."""
        return await self._runs.table.steps(run_id), await self._runs.table.attempts(run_id)

    async def withdraw(self, run_id: str, actor: Actor, reason: str | None) -> Run:
        """See L{IRunner.withdraw}."""
        withdrawn = self._locks.run(run_id, lambda: self._termination.withdraw(run_id, actor, reason))
        return await self._tasks.shielded(withdrawn)

    async def settle(self, run_id: str, happened: bool, note: str, actor: Actor) -> Run:
        """See L{IRunner.settle}."""
        settled = self._locks.run(run_id, lambda: self._termination.settle(run_id, happened, note, actor))
        return await self._tasks.shielded(settled)

    async def find_out(self, run_id: str, actor: Actor) -> tuple[Run, Finding]:
        """See L{IRunner.find_out}."""
        return await self._tasks.shielded(self._reconciler.find_out(run_id, actor))

    async def run_again(self, run_id: str, note: str, actor: Actor) -> Run:
        """See L{IRunner.run_again}."""
        again = self._locks.run(run_id, lambda: self._rerun.run_again(run_id, note, actor))
        return await self._tasks.shielded(again)

    # approvals -------------------------------------------------------------------------------

    async def approval(self, run_id: str) -> Approval:
        """See L{IRunner.approval}."""
        self._requests.planner.offerings.refresh()
        return await self._previews.looked_at(await self._requests.shown(await self._runs.approval(run_id)))

    async def approvals(self, query: RunQuery) -> Page[Approval]:
        """See L{IRunner.approvals}."""
        self._requests.planner.offerings.refresh()
        page = await self._runs.table.approvals(query)
        found = []
        for approval in page.items:
            found.append(await self._requests.shown(approval))
            if heavy(approval.run.arguments):
                await deferLater(self._tasks.clock, 0)  # it took milliseconds, and there may be a hundred
        return Page(tuple(found), page.cursor)

    async def precedents(self, approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        """See L{IRunner.precedents}."""
        return await find_precedents(self._runs.table, approvals)

    async def edit(self, run_id: str, arguments: Mapping[str, JSON], digest: str | None, actor: Actor) -> Approval:
        """See L{IRunner.edit}."""
        return await self._tasks.shielded(self._editor.edit(run_id, Edit(arguments, digest, actor)))

    async def decide(self, run_id: str, decision: Decision) -> Approval:
        """See L{IRunner.decide}."""
        return await self._tasks.shielded(self._decide(run_id, decision))

    async def _decide(self, run_id: str, decision: Decision) -> Approval:
        await self._gate.admit(run_id, decision)
        preview = await self._gate.seen_before_decision(run_id, decision)
        return self._decided(await self._locks.run(run_id, lambda: self._gate.decide(run_id, decision, preview)))

    def _decided(self, approval: Approval) -> Approval:
        self._expiry.forget(approval.run.id)
        if approval.run.state is RunState.DENIED:
            self._limits.denials.note(approval)
        if approval.run.state is RunState.APPROVED:
            self._scheduler.start(approval.run)
        return approval

    def pauses(self) -> tuple[Pause, ...]:
        """See L{IRunner.pauses}."""
        return self._limits.pauses.all()

    async def pause(self, session_id: str | None, reason: str | None, actor: Actor) -> Halt:
        """See L{IRunner.pause}."""
        return await self._tasks.shielded(self._pausing.pause(session_id, reason, actor))

    async def resume(self, session_id: str | None, actor: Actor) -> tuple[Run, ...]:
        """See L{IRunner.resume}."""
        return await self._tasks.shielded(self._pausing.resume(session_id, actor))

    def caps(self) -> tuple[OwnCap, ...]:
        """See L{IRunner.caps}."""
        return self._limits.caps.own()

    async def set_caps(self, caps: Sequence[OwnCap], actor: Actor) -> tuple[OwnCap, ...]:
        """See L{IRunner.set_caps}."""
        return await self._tasks.shielded(self._limits.caps.put(caps, actor))

    async def remove_cap(self, which: OwnCap, actor: Actor) -> None:
        """See L{IRunner.remove_cap}."""
        await self._tasks.shielded(self._limits.caps.remove(which, actor))

    async def forgive(self, run_id: str, actor: Actor) -> Approval:
        """See L{IRunner.forgive}."""
        approval = await self._runs.approval(run_id)
        await self._tasks.shielded(self._limits.denials.forgive(approval, actor))
        return approval

    # standing grants -------------------------------------------------------------------------

    async def approve_and_grant(self, run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        """See L{IRunner.approve_and_grant}."""
        return await self._tasks.shielded(self._approve_and_grant(run_id, decision, wish))

    async def _approve_and_grant(self, run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        await self._gate.admit(run_id, decision, wish)
        preview = await self._gate.seen_before_decision(run_id, decision)
        made = self._locks.run(run_id, lambda: self._grants.approve(run_id, decision, wish, preview))
        approval, grant = await made
        return self._decided(approval), grant

    async def grants(self) -> tuple[StandingGrant, ...]:
        """See L{IRunner.grants}."""
        return await self._grants.all()

    async def grant(self, grant_id: str) -> StandingGrant:
        """See L{IRunner.grant}."""
        return await self._grants.one(grant_id)

    async def revoke_grant(self, grant_id: str, actor: Actor) -> StandingGrant:
        """See L{IRunner.revoke_grant}."""
        return await self._tasks.shielded(self._grants.revoke(grant_id, actor))

    def suggested(self, approval: Approval) -> tuple[Predicate, ...]:
        """See L{IRunner.suggested}."""
        return self._grants.suggested(approval)

    async def pending(self, session_id: str | None) -> int:
        """See L{IRunner.pending}."""
        return await self._runs.table.count(RunQuery(states=(RunState.PENDING,), session_id=session_id))
