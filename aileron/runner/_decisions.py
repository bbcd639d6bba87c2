"""Shows the operator what waits for a decision, beside what was done before, edits it, and takes the decision."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial

from attrs import define, evolve
from twisted.internet.task import deferLater
from zope.interface import implementer

from aileron.actions import check_arguments
from aileron.base.converter import to_json
from aileron.base.json import JSON, canonical, heavy
from aileron.model.audit import Actor
from aileron.model.authority import Grant, NewGrant, Predicate
from aileron.model.errors import AileronError, Paused, VaultLocked
from aileron.model.interfaces.runner import IDecisions
from aileron.model.precedents import Precedents
from aileron.model.queries import Page, RunQuery
from aileron.model.reviews import Card, Preview
from aileron.model.runs import Approval, Ask, Change, Decision, Run, RunState, Transition
from aileron.review import differences, find_precedents

from ._scheduler import RunScheduler
from .denials import Denials
from .gate import ApprovalGate
from .grants import GrantService, suggest_predicates
from .previews import lacks_preview
from .requests import require_digest
from .runs import RunRepository, transition
from .scheduling import KeyedLocks, Tasks, shielded
from .trust import TrustedTexts

REPEATED_WITHIN = timedelta(days=1)
"""A call that another session completed within this time is worth a warning where the same is asked again."""

MOST_REPEATS = 3
MOST_TWINS = 20

_FILES = ("/manifest_digest", "/content_hash")
"""Where a review names a file by its digest."""


@implementer(IDecisions)
@define(eq=False)
class DecisionService:
    """Takes the operator's decisions, each shielded from a caller that leaves, and one at a time for each run."""

    _runs: RunRepository
    _gate: ApprovalGate
    _grants: GrantService
    _denials: Denials
    _scheduler: RunScheduler
    _tasks: Tasks
    _locks: KeyedLocks
    _contents: TrustedTexts

    async def approval(self, run_id: str, *, only_read: bool = False) -> Approval:
        requests = self._gate.requests
        requests.planner.offerings.refresh()
        kept = await self._runs.approval(run_id)
        if only_read:
            found = requests.compute(await self._gate.previews.wait_under_way(kept))
        else:
            found = await self._gate.previews.looked_at(await requests.show(kept))
        return evolve(found, changes=tuple([await self._find_texts(each) for each in found.changes]))

    async def _find_texts(self, change: Change) -> Change:
        """Return a change of a file with its texts in the place of their digests, if both are known."""
        if change.kind != "changed" or not change.path.endswith(_FILES):
            return change
        before, after = [await self._contents.get(str(digest)) for digest in (change.before, change.after)]
        return change if before is None or after is None else evolve(change, before=before, after=after)

    async def approvals(self, query: RunQuery, *, only_read: bool = False) -> Page[Approval]:
        requests = self._gate.requests
        requests.planner.offerings.refresh()
        page = await self._runs.table.approvals(query)
        found = []
        for approval in page.items:
            found.append(requests.compute(approval) if only_read else await requests.show(approval))
            if heavy(approval.run.arguments):
                await deferLater(self._tasks.clock, 0)  # it took milliseconds, and there may be a hundred
        return Page(tuple(found), page.cursor)

    async def pending(self, session_id: str | None) -> int:
        return await self._runs.table.count(RunQuery(states=(RunState.PENDING,), session_id=session_id))

    async def precedents(self, approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        found, since = [], self._runs.events.now() - REPEATED_WITHIN
        for approval, before in zip(approvals, await find_precedents(self._runs.table, approvals), strict=True):
            repeats = await self._runs.table.repeats(approval.run, since, MOST_REPEATS)
            twins = await self._runs.table.twins(approval.run, since, MOST_TWINS)
            found.append(evolve(before, repeats=repeats, twins=twins))
        return tuple(found)

    def cards(self, approval: Approval) -> tuple[Card, ...]:
        with suppress(AileronError):
            plan = self._gate.requests.plan_shown(approval)
            if plan.digest(approval.run) == approval.digest:
                return tuple(plan.cards())
        return ()

    def suggested(self, approval: Approval) -> tuple[Predicate, ...]:
        return suggest_predicates(approval)

    @shielded
    async def edit(self, run_id: str, arguments: Mapping[str, JSON], digest: str | None, actor: Actor) -> Approval:
        approval = await self._gate.open(run_id, digest)
        edited = self._edit_run(approval.run, arguments)
        if canonical(edited.arguments) == canonical(approval.run.arguments):
            return approval
        preview = None
        with suppress(VaultLocked, Paused):
            preview = await self._gate.previews.fetch_again(edited)
        await self._locks.run(run_id, lambda: self._put(approval, edited, preview, actor))
        present = await self._runs.approval(run_id)
        if lacks_preview(present):
            self._gate.previews.begin(run_id)
        return present

    @shielded
    async def decide(self, run_id: str, decision: Decision) -> Approval:
        await self._gate.admit(run_id, decision)
        preview = await self._gate.seen_before_decision(run_id, decision)
        decided = await self._locks.run(run_id, lambda: self._gate.decide(run_id, decision, preview))
        self._note_decided(decided)
        if decided.run.state is RunState.DENIED:
            await self._deny_twins(decided, decision)
        return decided

    async def _deny_twins(self, denied: Approval, decision: Decision) -> None:
        """Deny every identical request of the session that is pending: the agent asked twice, the person says it once.

        A request that is decided, edited or asked anew in the same moment is left as it is.
        """
        session_id, action = denied.run.session_id, denied.run.action
        if session_id is None:
            return
        query = RunQuery(states=(RunState.PENDING,), session_id=session_id, action=action)
        pending = [each async for each in self._runs.all(query) if each.asked is None]
        for run in (each for each in pending if self._denials.is_same(each, denied.run)):
            with suppress(AileronError):
                approval = await self._runs.approval(run.id)
                word = evolve(decision, digest=approval.digest, assertion=None)
                await self._locks.run(run.id, partial(self._gate.decide, run.id, word, None))
                self._gate.requests.expiry.forget(run.id)

    @shielded
    async def approve_and_grant(self, run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        await self._gate.admit(run_id, decision, wish)
        preview = await self._gate.seen_before_decision(run_id, decision)
        made = self._locks.run(run_id, lambda: self._grants.approve(run_id, decision, wish, preview))
        approval, grant = await made
        self._note_decided(approval)
        return approval, grant

    def _note_decided(self, approval: Approval) -> Approval:
        self._gate.requests.expiry.forget(approval.run.id)
        if approval.run.state is RunState.DENIED:
            self._denials.note(approval)
        if approval.run.state is RunState.APPROVED:
            # guard of promise 4: a decision begins the run -> KeptTests.test_late_decision
            self._scheduler.start(approval.run)
        return approval

    def _edit_run(self, run: Run, arguments: Mapping[str, JSON]) -> Run:
        """C{run} as it would be, with what it needs for that.

        :raises AileronError: it cannot run so.
        """
        action = self._gate.requests.planner.offerings.find(run.action).action
        edited = evolve(run, arguments=check_arguments(action, arguments))
        self._gate.requests.plan(edited)
        return edited

    async def _put(self, approval: Approval, edited: Run, preview: Preview | None, actor: Actor) -> None:
        """Ask for the edited run instead, if what was edited still stands there."""
        self._gate.requests.planner.offerings.refresh()
        plan = self._gate.requests.plan(edited, preview)
        ask = Ask(plan.digest(edited), plan.review(), approval.requested_at, approval.expires_at)
        await self._runs.apply_or_refuse(self._change(approval, edited, ask, actor))

    def _change(self, approval: Approval, edited: Run, ask: Ask, actor: Actor) -> Transition:
        run, now = approval.run, self._runs.events.now()
        changes: JSON = [to_json(change) for change in differences(run.arguments, edited.arguments)]
        event = self._runs.events.of_run(
            "approval.modified", run, actor, digest=ask.digest, before=approval.digest, changes=changes
        )
        unless_changed = require_digest(approval.digest)
        arguments = edited.arguments
        return transition(run, RunState.PENDING, now, event, ask=ask, edited=arguments, verify=unless_changed)
