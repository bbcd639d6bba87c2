"""Shows approvals to the operator and takes the operator's decisions to the gate."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import timedelta
from functools import partial
from typing import Any

from attrs import evolve, frozen
from twisted.internet.task import deferLater
from zope.interface import implementer

from aileron.base.json import JSON, canonical, heavy
from aileron.model.audit import Actor
from aileron.model.authority import Grant, NewGrant, Predicate
from aileron.model.errors import AileronError, Paused, VaultLocked
from aileron.model.interfaces.runner import IDecisions
from aileron.model.precedents import Precedents
from aileron.model.queries import Page, RunQuery
from aileron.model.reviews import Card, Preview
from aileron.model.runs import Approval, Change, Decision, Run, RunState
from aileron.model.signing import SignedDecisions, read_statement
from aileron.review import find_precedents

from .approval_requests import ApprovalRequests, Previews
from .approvals import ApprovalGate
from .denials import Denials
from .grant_terms import suggest_predicates
from .offerings import TrustedTexts
from .previews import PreviewReader, lacks_preview
from .runs import RunRepository
from .tasks import KeyedLocks, Tasks, shielded
from .votes import Votes

REPEATED_WITHIN = timedelta(days=1)
"""A request is warned about if another session completed an identical call within this time."""

MOST_REPEATS = 3
MOST_TWINS = 20
_FILES = ("/manifest_digest", "/content_hash")
"""The ends of the paths in a review that lead to the digest of a file."""


@implementer(IDecisions)
@frozen(eq=False)
class DecisionService:
    """The service that shows approvals and records the operator's decisions.

    Decisions on one run are recorded one after the other. Recording completes even if the caller disconnects.

    :param issue: issues a grant and approves the call that it was made for. See L{GrantService.approve}.
    :param begin: schedules an approved run.
    """

    _runs: RunRepository
    _gate: ApprovalGate
    _requests: ApprovalRequests
    _previews: Previews
    _reader: PreviewReader
    _issue: Callable[[str, Decision, NewGrant, Preview | None], Coroutine[Any, Any, tuple[Approval, Grant]]]
    _begin: Callable[[Run], None]
    _denials: Denials
    _tasks: Tasks
    _locks: KeyedLocks
    _contents: TrustedTexts
    _votes: Votes

    async def approval(self, run_id: str, *, only_read: bool = False) -> Approval:
        self._requests.read_files()
        kept = await self._runs.approval(run_id)
        if only_read:
            found = self._requests.compute(await self._previews.wait_under_way(kept))
        else:
            found = await self._previews.fetch_for_display(await self._requests.show(kept))
        found = await self._votes.show(found)
        return evolve(found, changes=tuple([await self._find_texts(each) for each in found.changes]))

    async def _find_texts(self, change: Change) -> Change:
        """Replace the two digests in the change of a file by the texts of the file. Return other changes as they are.

        If one of the two texts is unknown, return C{change} as it is.
        """
        if change.kind != "changed" or not change.path.endswith(_FILES):
            return change
        before, after = [await self._contents.get(str(digest)) for digest in (change.before, change.after)]
        return change if before is None or after is None else evolve(change, before=before, after=after)

    async def approvals(self, query: RunQuery, *, only_read: bool = False) -> Page[Approval]:
        self._requests.read_files()
        page = await self._runs.list_approvals(query)
        found = []
        for approval in page.items:
            shown = self._requests.compute(approval) if only_read else await self._requests.show(approval)
            found.append(await self._votes.show(shown))
            if heavy(approval.run.arguments):
                await deferLater(self._tasks.clock, 0)  # a large approval takes milliseconds: let the reactor run
        return Page(tuple(found), page.cursor)

    async def progress(self, run: Run) -> str:
        if run.state is not RunState.PENDING or not await self._votes.need_several(run.action):
            return ""
        return (await self._votes.show(await self._runs.approval(run.id))).progress

    async def pending(self, session_id: str | None) -> int:
        return await self._runs.count_runs(RunQuery(states=(RunState.PENDING,), session_id=session_id))

    async def precedents(self, approvals: Sequence[Approval]) -> tuple[Precedents, ...]:
        found, since = [], self._runs.now() - REPEATED_WITHIN
        for approval, before in zip(approvals, await find_precedents(self._runs.table, approvals), strict=True):
            repeats = await self._runs.list_repeats(approval.run, since, MOST_REPEATS)
            twins = await self._runs.list_twins(approval.run, since, MOST_TWINS)
            found.append(evolve(before, repeats=repeats, twins=twins))
        return tuple(found)

    def cards(self, approval: Approval) -> tuple[Card, ...]:
        return self._requests.cards(approval)

    def suggested(self, approval: Approval) -> tuple[Predicate, ...]:
        return suggest_predicates(approval.run.arguments)

    @shielded
    async def edit(self, run_id: str, arguments: Mapping[str, JSON], digest: str | None, actor: Actor) -> Approval:
        approval, _ = await self._gate.open(run_id, digest)
        edited = self._requests.edit_run(approval.run, arguments)
        if canonical(edited.arguments) == canonical(approval.run.arguments):
            return approval
        preview = None
        with suppress(VaultLocked, Paused):
            preview = await self._reader.fetch_again(edited)
        await self._locks.run(run_id, lambda: self._requests.put_edited(approval, edited, preview, actor))
        present = await self._runs.approval(run_id)
        if lacks_preview(present):
            self._previews.begin_fetch(run_id)
        return present

    @shielded
    async def decide(self, run_id: str, decision: Decision) -> Approval:
        decision = await self._gate.admit(run_id, decision)
        preview = await self._gate.seen_before_decision(run_id, decision)
        decided = await self._locks.run(run_id, lambda: self._gate.decide(run_id, decision, preview))
        self._note_decided(decided)
        if decided.run.state is RunState.DENIED:
            await self._deny_twins(decided, decision)
        return decided

    async def _deny_twins(self, denied: Approval, decision: Decision) -> None:
        """Deny every pending request of the session that is identical to the denied one.

        A request that is decided, edited or requested again meanwhile is skipped. So is one that the signed list names,
        because it has a decision of its own.
        """
        session_id, action = denied.run.session_id, denied.run.action
        if session_id is None:
            return
        query = RunQuery(states=(RunState.PENDING,), session_id=session_id, action=action)
        named = frozenset[str]() if decision.signed is None else _list_named(decision.signed)
        pending = [each async for each in self._runs.all(query) if each.asked is None and each.id not in named]
        for run in (each for each in pending if self._denials.is_same(each, denied.run)):
            with suppress(AileronError):
                approval = await self._runs.approval(run.id)
                word = evolve(decision, digest=approval.digest, assertion=None, same_as=denied.run.id)
                await self._locks.run(run.id, partial(self._gate.decide, run.id, word, None))
                self._requests.forget(run.id)

    @shielded
    async def approve_and_grant(self, run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        decision = await self._gate.admit(run_id, decision, wish)
        preview = await self._gate.seen_before_decision(run_id, decision)
        made = self._locks.run(run_id, partial(self._issue, run_id, decision, wish, preview))
        approval, grant = await made
        self._note_decided(approval)
        return approval, grant

    def _note_decided(self, approval: Approval) -> Approval:
        if approval.run.state is RunState.PENDING:  # the approvals of others are missing
            return approval
        self._requests.forget(approval.run.id)
        if approval.run.state is RunState.DENIED:
            self._denials.note(approval)
        if approval.run.state is RunState.APPROVED:
            # guard of promise 4: a decision begins the run -> KeptTests.test_late_decision
            self._begin(approval.run)
        return approval


def _list_named(signed: SignedDecisions) -> frozenset[str]:
    """Return the ids of the runs that a verified list of decisions names."""
    return frozenset(str(each["run"]) for each in read_statement(signed.statement).items)
