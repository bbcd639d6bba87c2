"""Shows what waits for a decision, takes the decision, and starts what follows from it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import define
from twisted.internet.task import deferLater
from zope.interface import implementer

from aileron.interfaces import IDecisions
from aileron.runner.approval.editing import ApprovalEditor, Edit
from aileron.runner.approval.gate import ApprovalGate
from aileron.runner.approval.precedents import find_precedents
from aileron.runner.grants.service import GrantService, suggest_predicates
from aileron.runner.limits.denials import Denials
from aileron.runner.runs.repository import RunRepository
from aileron.runner.scheduling import KeyedLocks, Tasks
from aileron.values import (
    JSON,
    Actor,
    Approval,
    Decision,
    Grant,
    NewGrant,
    Page,
    Precedents,
    Predicate,
    RunQuery,
    RunState,
    heavy,
)

from ._scheduler import RunScheduler


@implementer(IDecisions)
@define(eq=False)
class DecisionService:
    """Takes the operator's decisions, each shielded from a caller that leaves, and one at a time for each run."""

    _runs: RunRepository
    _gate: ApprovalGate
    _editor: ApprovalEditor
    _grants: GrantService
    _denials: Denials
    _scheduler: RunScheduler
    _tasks: Tasks
    _locks: KeyedLocks

    async def approval(self, run_id: str) -> Approval:
        """Return one approval in full, with its preview if that can be fetched quickly."""
        requests = self._gate.requests
        requests.planner.offerings.refresh()
        return await self._gate.previews.looked_at(await requests.shown(await self._runs.approval(run_id)))

    async def approvals(self, query: RunQuery) -> Page[Approval]:
        """List approvals, each checked for staleness, and yield to the reactor after each large one."""
        requests = self._gate.requests
        requests.planner.offerings.refresh()
        page = await self._runs.table.approvals(query)
        found = []
        for approval in page.items:
            found.append(await requests.shown(approval))
            if heavy(approval.run.arguments):
                await deferLater(self._tasks.clock, 0)  # it took milliseconds, and there may be a hundred
        return Page(tuple(found), page.cursor)

    async def pending(self, session_id: str | None) -> int:
        """Count the pending approvals of one session, or of all."""
        return await self._runs.table.count(RunQuery(states=(RunState.PENDING,), session_id=session_id))

    async def precedents(self, approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        """Compare each approval with completed calls of the same action."""
        return await find_precedents(self._runs.table, approvals)

    def suggested(self, approval: Approval) -> tuple[Predicate, ...]:
        """Suggest argument patterns for a grant by L{suggest_predicates}."""
        return suggest_predicates(approval)

    async def edit(self, run_id: str, arguments: Mapping[str, JSON], digest: str | None, actor: Actor) -> Approval:
        """Edit a pending approval; the edit completes even if its caller goes away."""
        return await self._tasks.shielded(self._editor.edit(run_id, Edit(arguments, digest, actor)))

    async def decide(self, run_id: str, decision: Decision) -> Approval:
        """Decide an approval; the decision completes even if its caller goes away."""
        return await self._tasks.shielded(self._decide(run_id, decision))

    async def _decide(self, run_id: str, decision: Decision) -> Approval:
        await self._gate.admit(run_id, decision)
        preview = await self._gate.seen_before_decision(run_id, decision)
        return self._decided(await self._locks.run(run_id, lambda: self._gate.decide(run_id, decision, preview)))

    async def approve_and_grant(self, run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        """Approve a call and make a grant; both complete even if their caller goes away."""
        return await self._tasks.shielded(self._approve_and_grant(run_id, decision, wish))

    async def _approve_and_grant(self, run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        await self._gate.admit(run_id, decision, wish)
        preview = await self._gate.seen_before_decision(run_id, decision)
        made = self._locks.run(run_id, lambda: self._grants.approve(run_id, decision, wish, preview))
        approval, grant = await made
        return self._decided(approval), grant

    def _decided(self, approval: Approval) -> Approval:
        self._gate.requests.expiry.forget(approval.run.id)
        if approval.run.state is RunState.DENIED:
            self._denials.note(approval)
        if approval.run.state is RunState.APPROVED:
            self._scheduler.start(approval.run)
        return approval
