"""Requests approvals, records decisions and signs them, and verifies before the effect that one still holds."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from datetime import datetime, timedelta
from functools import partial
from typing import Any, Protocol

from attrs import define, evolve, field, frozen
from twisted.internet.task import deferLater
from twisted.logger import Logger
from zope.interface import implementer

from aileron.base.converter import to_json
from aileron.base.json import JSON, canonical, digest, digest_of_bytes, heavy, timestamp
from aileron.base.waiting import afterwards
from aileron.model.actions import ApprovalRule
from aileron.model.audit import Actor, Event
from aileron.model.authority import Grant, GrantState, NewGrant, PasskeyRule, Predicate, approval_statement
from aileron.model.errors import (
    AileronError,
    ApprovalStale,
    BindingFailed,
    Conflict,
    InvalidRequest,
    Paused,
    StateConflict,
    StoreUnavailable,
    VaultLocked,
)
from aileron.model.interfaces.authority import IControl, IGrants
from aileron.model.interfaces.runner import IDecisions
from aileron.model.interfaces.store import IAudit
from aileron.model.precedents import Precedents
from aileron.model.queries import AuditQuery, Page, RunQuery
from aileron.model.reviews import NOT_YET, Card, Preview, PreviewStatus, Review, ReviewedAction
from aileron.model.runs import Approval, Ask, Assertion, Change, Decision, Run, RunState, Transition
from aileron.model.trust import Mark
from aileron.model.vault import BindingFlag
from aileron.review import differences, find_precedents

from .grant_terms import allows, bounds_of_plan, describe_changes, suggest_predicates
from .limits import Denials, EffectGate, Pauses
from .offerings import TrustedTexts
from .outcomes import Echoes
from .plan import Plan, Planner, PlanOutline
from .previews import PREVIEW_SECONDS, PreviewReader, lacks_preview
from .runs import EventFactory, RunRepository, Verify, make_conflict, transition
from .tasks import Callback, KeyedLocks, ResultWaiters, Tasks, Timers, shielded

APPROVAL_HOLDS = timedelta(hours=24)
"""An approved run that has not started by then asks again."""

MOST_AHEAD = timedelta(days=30)
"""The operator can put off an approved run by so much."""

_REMEMBERED = MOST_AHEAD + timedelta(days=2)
"""Longer than any decision holds: what gave way is remembered until then."""

UNUSABLE = (VaultLocked, BindingFailed)
"""What is raised where the vault is locked, or its file is not what it was."""

_APPROVED = "approval.approved"
_DECISIVE = (
    _APPROVED,
    "approval.denied",
    "approval.stale",
    "tamper.detected",
    "run.cancelled",
    "execution.started",
    "execution.unknown",
)
_FOUND_OUT = ("run.settled", "execution.reconciled", "execution.late_answer")
_AT_A_TIME = 256
_MOST_PLANS, _LARGE = 200, ""
_HAPPENED = "The earlier run turned out to have happened, so this would do it twice. Deny or cancel this one."
_UNREADABLE = (
    "The earlier run may have happened, but the contents of what was found out about it were deleted or altered. Deny "
    "this one; if you still want it done, ask the agent to request it again."
)
TICK = timedelta(microseconds=1)
_NOTHING = (0, "")  # of a record that somebody emptied: the next start finds that it is not the one
_TAG = "aileron.decision.v1"
_log = Logger()

_BY = "grant:"
_NO_ECHOES = Echoes()
_OTHER_PREVIEW = {
    (PreviewStatus.SHOWN, PreviewStatus.UNAVAILABLE): "The preview cannot be fetched any more.",
    (PreviewStatus.UNAVAILABLE, PreviewStatus.SHOWN): "The preview could be fetched this time.",
    (PreviewStatus.UNAVAILABLE, PreviewStatus.UNAVAILABLE): "The preview fails in another way than before.",
}
_MOST_TRIES = 3  # the approval may be requested again while its preview is fetched
_OTHERWISE = "What would run has just changed."
_INTERRUPTED = (
    "The approval no longer counts: the request was being denied or updated when it was given, or when Aileron last "
    "stopped."
)
REPEATED_WITHIN = timedelta(days=1)
"""A request is warned about if another session completed an identical call within this time."""

MOST_REPEATS = 3
MOST_TWINS = 20
_FILES = ("/manifest_digest", "/content_hash")
"""The members of a review that contain a file's digest."""


class NoDecision(ApprovalStale):
    """Raised for a stored decision that the operator did not make, or that was used already."""


class GaveWay(NoDecision):
    """Raised for a decision that was withdrawn. If no audit event says so, a crash is the cause, not tampering."""


@define(eq=False)
class NotYet(Exception):
    """Raised if a decision allows its run to start only later.

    :ivar at: the earliest start.
    """

    at: datetime


class EarlierKey(ApprovalStale):
    """Raised for a decision signed with an earlier key of the vault."""


@define(eq=False)
class Decisions:
    """Signs and verifies decisions, and records their use in the vault, where no database row can undo it."""

    _control: IControl
    _audit: IAudit
    _events: EventFactory
    _undo: UndoWindow
    _owed: dict[str, datetime] = field(factory=dict, init=False)  # by run, withdrawals not yet written to the vault

    def signed(self, run: Run, decision: Decision, undo_seconds: float = 0.0) -> Decision:
        """Return a decision on a run with its time and signature, and hold an approved run for C{undo_seconds}.

        :param undo_seconds: how long the decision can be undone. C{not_before} becomes the later of both times.
        :raises VaultLocked: if the vault is not unlocked.
        """
        at = now = self._events.now()
        begins = _begins_at(decision, now, timedelta(seconds=undo_seconds))
        outdated, forgotten = self._control.outdated(run.id), self._control.forgotten()
        if outdated is not None:
            at = max(at, outdated - _REMEMBERED + TICK)  # later than the decision that it replaces
        if forgotten is not None:
            at = max(at, forgotten - APPROVAL_HOLDS + TICK)
        while self._control.spent(mark := self._control.sign(_statement(run, _add_times(decision, at, begins)))):
            at += TICK  # an equal decision was made and used at the same time
        self._undo.hold(run.id, undo_seconds)  # before the commit, so that nothing begins between the two
        return evolve(_add_times(decision, at, begins), mark=mark)

    def check(self, run: Run, approval: Approval) -> None:
        """Verify that an approval contains a valid decision for a run that may still be used.

        :raises NoDecision: if there is no valid decision, or it was used.
        :raises GaveWay: if the decision was withdrawn.
        :raises ApprovalStale: if the decision has expired or was signed with an earlier key.
        :raises NotYet: if the decision allows only a later start.
        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file was altered.
        """
        _check_mark(self._control.verifier(), self._events.now(), run, approval)
        # guard of promise 3: a decision that was used is none -> StillTests.test_once_unrecorded
        if approval.mark is not None and self._control.spent(approval.mark):
            raise NoDecision("The recorded decision was already used.")
        if self._is_outdated(run, approval):
            raise GaveWay("The recorded decision was already withdrawn.")

    def was_taken(self, run: Run, approval: Approval) -> bool:
        """Return whether an approval approves a run with a valid signature, used or not.

        :raises VaultLocked, BindingFailed: the vault is not unlocked, or its file was altered.
        """
        verdict = self._control.verifier()(_statement(run, approval), approval.mark)
        return approval.approved is True and verdict is Mark.SOUND

    def _is_outdated(self, run: Run, approval: Approval) -> bool:
        decided_at, ends = approval.decided_at, approval.not_after
        if decided_at is None or ends is None:
            return True
        gave_way = max(filter(None, (self._control.outdated(run.id), self._owed.get(run.id))), default=None)
        if gave_way is not None and decided_at <= gave_way - _REMEMBERED:
            return True
        forgotten = self._control.forgotten()
        return forgotten is not None and ends <= forgotten

    async def on_record(self, run: Run, approval: Approval) -> bool:
        """Return whether the audit log contains this decision, with no later event that withdraws it.

        Older events do not identify the decision. They match any decision with the same digest.
        """
        newest = (await self._audit.list(AuditQuery(run_id=run.id, types=_DECISIVE, limit=1))).items
        if not newest or newest[0].event.type != _APPROVED or newest[0].altered:
            return False
        payload, name = newest[0].event.payload, decision_digest(approval)
        return payload.get("digest") == approval.digest and payload.get("decision_digest", name) == name

    async def refuse_repetition(self, run_id: str) -> None:
        """Check in the audit log, regardless of the run's row, that an uncertain run was not found to have happened.

        :raises ApprovalStale: if it happened, or the contents of such an event were deleted or altered.
        """
        query: AuditQuery | None = AuditQuery(run_id=run_id, types=_FOUND_OUT, limit=_AT_A_TIME)
        while query is not None:
            page = await self._audit.list(query)
            for record in page.items:
                is_lost = record.pruned or record.altered
                if is_lost or _is_whole(record.event.payload):
                    raise ApprovalStale(_UNREADABLE if is_lost else _HAPPENED, {"parent_id": run_id})
            query = None if page.cursor is None else evolve(query, cursor=page.cursor)

    def verification(self, digest: str, mark: bytes | None) -> Verify:
        """Return a check for the transaction that commits C{executing}: the row still has a decision for this digest.

        :param mark: the signature of the decision that will be used.
        :raises VaultLocked, BindingFailed: if the vault is not unlocked, or its file was altered.
        """
        verifier, now = self._control.verifier(), self._events.now()

        def verify(run: Run, approval: Approval | None) -> None:
            found = _check_mark(verifier, now, run, approval)
            if found.digest != digest or found.mark != mark:
                raise NoDecision("The recorded decision is for something else.")

        return verify

    async def spend(self, approval: Approval, last_look: Callable[[Approval], None]) -> None:
        """Record in the vault that the decision is used, before anything is sent.

        :param last_look: a last check, called immediately before the use; raises if the decision must not be used.
        :raises NoDecision: if there is no decision.
        :raises Conflict: if the decision was already used.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the use could not be recorded.
        """
        head = await self._audit.head()
        if approval.mark is None or approval.not_after is None or head is None:
            raise NoDecision("No decision is recorded.")
        last_look(approval)
        # guard of promise 3: a decision is used before anything leaves -> StillTests.test_once_while_it_begins,
        #    instead self._control.seal(*head)
        self._control.spend(approval.mark, approval.not_after, *head)

    async def outdate(self, run: Run, up_to: datetime) -> None:
        """Withdraw every decision on a run made up to a moment, regardless of what the run's row says now or later.

        :raises VaultLocked, BindingFailed, StoreUnavailable: if the withdrawal could not be recorded.
        """
        await self._outdate(run.id, up_to + _REMEMBERED)

    async def give_up(self, run: Run) -> None:
        """Withdraw every decision on a run made up to now. If that cannot be recorded yet, L{settle_up} retries."""
        self._owed[run.id] = self._events.now() + _REMEMBERED
        await self.settle_up()
        if run.id in self._owed:
            _log.warn(
                "the withdrawal of decisions on run {run} is not in the vault yet: they apply again after a restart",
                run=run.id,
            )

    @property
    def owing(self) -> bool:
        """True if L{settle_up} has something to write."""
        return bool(self._owed)

    async def settle_up(self) -> None:
        """Write the withdrawals that L{give_up} could not write, as far as possible."""
        with suppress(AileronError):
            for run_id, until in list(self._owed.items()):
                await self._outdate(run_id, until)

    async def _outdate(self, run_id: str, until: datetime) -> None:
        head = await self._audit.head()
        self._control.outdate(run_id, until, *(head or _NOTHING))
        self._owed.pop(run_id, None)


def decision_digest(decided: Approval | Decision) -> str:
    """Compute the SHA-256 of a decision's signature, by which its audit event names the decision."""
    return digest_of_bytes(decided.mark or b"")


def _begins_at(decision: Decision, now: datetime, undo: timedelta) -> datetime | None:
    """Return when the approved run may begin, by the present clock, or None if it may begin at once."""
    begins = max(now + undo, decision.not_before or now)
    return begins if decision.approved and begins > now else None


def _add_times(decision: Decision, at: datetime, begins: datetime | None) -> Decision:
    """Return C{decision} with its times: when it was taken, when it takes effect and when it expires."""
    ends = max(at, begins or at) + APPROVAL_HOLDS
    return evolve(decision, decided_at=at, not_before=begins, not_after=ends)


def _statement(run: Run, decided: Approval | Decision) -> Mapping[str, JSON]:
    return {
        "tag": _TAG,
        # guard of promise 2: mark and digest are of one run -> WrittenRowsTests.test_copied
        "run": run.id,
        "effect_key": run.effect_key,
        # guard of promise 3: a mark binds the digest -> StillTests.test_digest_and_action
        "digest": decided.digest,
        # guard of promise 2: a mark says yes or no -> WrittenRowsTests.test_denial_turned
        "approved": decided.approved,
        # guard of promise 3: a mark binds who took it -> StillTests.test_mark_binds
        "decided_by": decided.decided_by,
        "decided_at": _moment(decided.decided_at),
        # guard of promise 3: a mark binds when it begins -> StillTests.test_mark_binds
        "not_before": _moment(decided.not_before),
        # guard of promise 3: a mark binds its end -> StillTests.test_mark_binds
        "not_after": _moment(decided.not_after),
    }


def _moment(at: datetime | None) -> str | None:
    return None if at is None else timestamp(at)


def _check_mark(
    verifier: Callable[[Mapping[str, JSON], bytes | None], Mark],
    now: datetime,
    run: Run,
    approval: Approval | None,
) -> Approval:
    if approval is None or approval.approved is not True or approval.mark is None:
        raise NoDecision("No decision is recorded.")
    verdict = verifier(_statement(run, approval), approval.mark)
    # guard of promise 3: a decision under an earlier key is none -> StillTests.test_key
    if verdict is Mark.EARLIER:
        raise EarlierKey("It was approved under an earlier vault key.")
    if (
        # guard of promise 2: the mark under a decision holds -> WrittenRowsTests.test_forged_whole
        verdict is not Mark.SOUND or approval.not_after is None
    ):
        raise NoDecision("The signature of the recorded decision is invalid.")
    # guard of promise 3: a decision has an end -> StillTests.test_too_old
    if now > approval.not_after:
        raise ApprovalStale("It was approved more than 24 hours ago and had not started.")
    if approval.not_before is not None and now < approval.not_before:
        raise NotYet(approval.not_before)
    return approval


def _is_whole(told: Mapping[str, JSON]) -> bool:
    return told.get("happened") is True and told.get("last", True) is True


@define(eq=False)
class UndoWindow:
    """Delays approved runs until their start time, and until the operator can no longer undo the decision.

    Two clocks are used. The wall clock determines the start time, which the decision's signature covers. The time to
    undo must also have passed on a monotonic clock, as far as this process has measured it: setting the wall clock
    forward does not shorten it, and setting it back only makes a run wait longer.

    :param monotonic: seconds of a monotonic clock.
    """

    _timers: Timers
    _events: EventFactory
    _monotonic: Callable[[], float]
    _held: dict[str, float] = field(factory=dict, init=False)  # by run, until when on the monotonic clock

    def hold(self, run_id: str, seconds: float) -> None:
        """Delay an approved run for C{seconds}, in which the operator can undo the decision."""
        now = self._monotonic()
        self._held = {held: until for held, until in self._held.items() if until > now}
        if seconds > 0:
            self._held[run_id] = now + seconds

    def waits(self, run: Run, ring: Callback) -> bool:
        """Return whether an approved run must not start yet. If so, schedule C{ring} for its start."""
        at = self._begins(run)
        if at <= self._events.now():
            return False
        self._timers.watch(run.id, at, ring)
        return True

    def wait(self, run_id: str, at: datetime, ring: Callback) -> None:
        """Schedule C{ring} for a time, regardless of the run's row."""
        self._timers.watch(run_id, at, ring)

    def _begins(self, run: Run) -> datetime:
        """Return the time on the wall clock at which the run may start."""
        now = self._events.now()
        left = max(0.0, self._held.get(run.id, 0.0) - self._monotonic())
        return max(run.start_after or now, now + timedelta(seconds=left))


@define(eq=False)
class GrantCheck:
    """Verifies that the grant which approved a run still allows the run. Runs that a person approved always pass."""

    _grants: IGrants
    _events: EventFactory

    def check(self, approval: Approval, plan: Plan) -> None:
        """Verify that the grant allows the run as planned now, unless a person approved the run.

        :raises NoDecision: if no grant in the vault ever allowed the run.
        :raises ApprovalStale: if the grant no longer allows the run.
        """
        grant = self._in_force(approval)
        if grant is None:
            return
        if not allows(grant, plan.arguments) or grant.session_id not in (None, approval.run.session_id):
            raise NoDecision("The grant that approved it does not allow it.")
        why = describe_changes(grant.bound, bounds_of_plan(plan))
        if why is not None:
            raise ApprovalStale(f"The grant that allowed it no longer does. {why}")

    def in_force(self, approval: Approval | None) -> None:
        """Verify that the grant is in force: neither revoked nor over. Cheap, and safe in any thread.

        :raises NoDecision: if the vault has no such grant.
        :raises ApprovalStale: if the grant was revoked or is over.
        """
        if approval is not None:
            self._in_force(approval)

    def _in_force(self, approval: Approval) -> Grant | None:
        by = approval.decided_by or ""
        named = by.removeprefix(_BY) if by.startswith(_BY) else None
        if named != approval.grant_id:
            raise NoDecision("The row names a different grant than the decision.")
        if named is None:
            return None
        grant = self._grants.get(named)
        if grant is None:
            raise NoDecision("The grant that approved it is not in the vault.")
        state = grant.state(self._events.now())
        if state in (GrantState.REVOKED, GrantState.OVER):
            how = "was revoked" if state is GrantState.REVOKED else "is over"
            raise ApprovalStale(f"The grant that allowed it {how}.")
        return grant


def name_decider(grant: Grant) -> str:
    """Return the name of C{grant} as the decider, which the decision's signature covers."""
    return f"{_BY}{grant.id}"


@define(eq=False)
class ApprovalRequests:
    """Requests approvals for the current plan of a run, and requests them again when the plan changes."""

    _runs: RunRepository
    _planner: Planner
    _decisions: Decisions
    _timers: Timers
    _plans: dict[str, tuple[Run, object, Plan]] = field(
        factory=dict, init=False
    )  # by the run, with what it was made of

    def opening(self, run: Run, plan: Plan, actor: Actor) -> Transition:
        """Return the transition that requests the first approval of C{run}."""
        now = self._runs.now()
        ask = Ask(plan.digest(run), plan.review(), now, self._expires(plan.action.approval))
        event = self._runs.event_of_run("approval.requested", run, actor, digest=ask.digest)
        return transition(run, RunState.PENDING, now, event, ask=ask)

    def watch(self, run_id: str, expires_at: datetime | None) -> None:
        """Schedule the expiry of a pending run. If C{expires_at} is None, the run never expires."""
        if expires_at is None:
            self._timers.forget(run_id)
        else:
            self._timers.watch(run_id, expires_at, self._expire)

    def forget(self, run_id: str) -> None:
        """Cancel the expiry of a run that was decided or withdrawn.  Idempotent."""
        self._timers.forget(run_id)

    def stop(self) -> None:
        """Cancel all timers of runs.  Idempotent."""
        self._timers.stop()

    async def _expire(self, run_id: str) -> None:
        """Expire the run, unless it is no longer pending."""
        run = await self._runs.run(run_id)
        # guard of promise 2: an alarm ends what has expired -> NoDecisionTests.test_expires
        if run.state is RunState.PENDING:
            event = self._runs.event_of_run("approval.expired", run)
            with suppress(StateConflict):  # decided or withdrawn at the last moment
                await self._runs.apply(transition(run, RunState.EXPIRED, event.at, event))

    async def previewed(self, approval: Approval, preview: Preview, found: Echoes = _NO_ECHOES) -> Approval:
        """Store a fetched preview and return the approval, requested again if the preview changes the digest.

        An approval that had no preview yet does not become stale by its first preview.

        :raises StateConflict, ApprovalStale: if the approval was decided or replaced meanwhile.
        :raises AileronError: if the run cannot be planned now.
        """
        run = approval.run
        self._planner.refresh()
        plan = self._planner.plan_run(run, preview)
        digest_now = plan.digest(run)
        if digest_now == approval.digest:
            return approval
        status, of_it = preview.status.value, preview.digest()
        event = self._runs.event_of_run("approval.previewed", run, status=status, preview=of_it, digest=digest_now)
        events = [*found.events, event]
        ask = Ask(digest_now, plan.review(), approval.requested_at, approval.expires_at)
        if plan.with_preview(run.effect_key, NOT_YET).digest(run) == approval.digest:
            ask = evolve(ask, stale=approval.stale, changes=approval.changes)
        else:
            ask = mark_changed(approval, plan, ask)
            events.append(self._runs.event_of_run("approval.stale", run, reason=ask.stale, digest=ask.digest))
        await self._put(approval, ask, *events, flags=found.flags)
        return await self._runs.approval(run.id)

    async def refresh(self, run_id: str) -> tuple[Approval, Plan | None]:
        """Read the files again and return the stored approval, updated as by L{fresh}.

        :return: the approval, and the plan that its digest covers, or None if it is not pending or cannot run.
        :raises NotFound: if there is no such approval.
        """
        self._planner.refresh()
        return await self._refresh(await self._runs.approval(run_id))

    async def fresh(self, approval: Approval) -> Approval:
        """Return an up-to-date approval: requested again if the plan made now differs from the one that it shows.

        The review of a pending approval always comes from the new plan, never from the stored row.
        """
        return (await self._refresh(approval))[0]

    async def _refresh(self, approval: Approval) -> tuple[Approval, Plan | None]:
        if approval.run.state is not RunState.PENDING:
            return approval, None
        plan, ask = self._look(approval)
        if ask is None:
            return (approval if plan is None else evolve(approval, review=plan.review())), plan
        with suppress(StateConflict, ApprovalStale):  # decided or requested again meanwhile, which the row then shows
            event = self._runs.event_of_run("approval.stale", approval.run, reason=ask.stale, digest=ask.digest)
            await self._put(approval, ask, event)
        stored = await self._runs.approval(approval.run.id)
        return stored, plan if plan is not None and plan.digest(stored.run) == stored.digest else None

    def read_files(self) -> None:
        """Read the files of actions and connectors again, for the next approvals shown."""
        self._planner.refresh()

    def cards(self, approval: Approval) -> tuple[Card, ...]:
        """Return a card for each step, or no cards if the approval's digest is not that of the current plan."""
        with suppress(AileronError):
            plan = self._recall_plan(approval) or self._planner.plan_shown(approval)
            if plan.digest(approval.run) == approval.digest:
                return tuple(plan.cards())
        return ()

    def _recall_plan(self, approval: Approval) -> Plan | None:
        """Return the remembered plan of an approval, or None if there is none or the run or a file has changed."""
        known = self._plans.get(approval.run.id) or self._plans.get(_LARGE)
        run, generation, plan = known or (None, None, None)
        if plan is None or (run, generation) != (approval.run, self._planner.generation()):
            return None
        return plan if plan.digest(approval.run) == approval.digest else None

    def _remember_plan(self, run: Run, plan: Plan) -> None:
        """Remember the plan of a shown run, so that its cards need no second one. Only one large run's is kept."""
        key = _LARGE if heavy(run.arguments) else run.id
        self._plans.pop(key, None)
        self._plans[key] = run, self._planner.generation(), plan
        if len(self._plans) > _MOST_PLANS:
            del self._plans[next(iter(self._plans))]

    def compute(self, approval: Approval) -> Approval:
        """Return the approval that L{fresh} would return, without storing anything."""
        if approval.run.state is not RunState.PENDING:
            return approval
        plan, ask = self._look(approval)
        if ask is None:
            return approval if plan is None else evolve(approval, review=plan.review())
        return evolve(
            approval,
            digest=ask.digest,
            review=ask.review,
            requested_at=ask.requested_at,
            expires_at=ask.expires_at,
            stale=ask.stale,
            changes=ask.changes,
        )

    async def show(self, approval: Approval) -> Approval:
        """Return the result of L{fresh}, or the stored approval marked as stale if the result cannot be stored."""
        try:
            return await self.fresh(approval)
        except StoreUnavailable:
            return evolve(approval, stale="It has changed, and cannot be updated while the database refuses writes.")

    def edit_run(self, run: Run, arguments: Mapping[str, JSON]) -> Run:
        """Return C{run} with other arguments.

        :raises AileronError: if the run cannot be planned with these arguments.
        """
        plan = self._planner.plan_run(evolve(run, arguments=arguments))
        return evolve(run, arguments=plan.arguments)

    async def put_edited(self, approval: Approval, edited: Run, preview: Preview | None, actor: Actor) -> None:
        """Replace an approval by a request for the edited run, if the approval is still the stored one.

        :raises Conflict, ApprovalStale: if another approval is stored.
        :raises AileronError: if the edited run cannot be planned now.
        """
        self._planner.refresh()
        plan = self._planner.plan_run(edited, preview)
        ask = Ask(plan.digest(edited), plan.review(), approval.requested_at, approval.expires_at)
        await self._runs.apply_or_refuse(self._change(approval, edited, ask, actor))

    def _change(self, approval: Approval, edited: Run, ask: Ask, actor: Actor) -> Transition:
        run, now = approval.run, self._runs.now()
        changes: JSON = [to_json(change) for change in differences(run.arguments, edited.arguments)]
        event = self._runs.event_of_run(
            "approval.modified", run, actor, digest=ask.digest, before=approval.digest, changes=changes
        )
        unless_changed = require_digest(approval.digest)
        arguments = edited.arguments
        return transition(run, RunState.PENDING, now, event, ask=ask, edited=arguments, verify=unless_changed)

    async def ask_anew(self, run: Run, found: ApprovalStale, preview: Preview | None = None) -> None:
        """Request another approval of an approved run, and record it as tampering if there was no valid decision.

        :param found: the reason why the approval no longer applies.
        :param preview: the preview that was just fetched, or None.
        :raises StateConflict: if the run is no longer approved.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the old decision cannot be withdrawn.
        """
        approval = await self._runs.find_approval(run.id)
        ask = self._ask_anew(run, approval, found.message, preview)
        event = self._runs.event_of_run(
            "approval.stale", run, reason=found.message, digest=ask.digest, was_approved=True
        )
        if isinstance(found, NoDecision):
            event = self._runs.event_of_run(
                "tamper.detected", run, row="approvals", found=found.message, digest=ask.digest
            )
        # Before the question that takes its place, so that no crash keeps it.
        await self._decisions.outdate(run, self._runs.now())
        await self._runs.apply(transition(run, RunState.PENDING, self._runs.now(), event, ask=ask))
        self.watch(run.id, ask.expires_at)

    def _look(self, approval: Approval) -> tuple[Plan | None, Ask | None]:
        """Plan the run, and return the approval to request instead if the stored one is for another plan."""
        run = approval.run
        try:
            plan = self._planner.plan_shown(approval)
            self._remember_plan(run, plan)
            if plan.digest(run) == approval.digest:
                return plan, None
            plan = plan.with_preview(run.effect_key, NOT_YET)
        except AileronError as error:
            return None, self._cannot_run(approval, error)
        ask = Ask(plan.digest(run), plan.review(), self._runs.now(), approval.expires_at)
        return plan, mark_changed(approval, plan, ask)

    def _cannot_run(self, approval: Approval, error: AileronError) -> Ask | None:
        stale = f"It cannot run now: {error.message}"
        if (approval.stale or "").endswith(stale):
            return None
        asked = self._digest_of_nothing(approval.run, stale)
        return Ask(asked, approval.review, self._runs.now(), approval.expires_at, stale)

    def _ask_anew(self, run: Run, approval: Approval | None, stale: str, preview: Preview | None) -> Ask:
        """Build the next approval request of an approved run."""
        now = self._runs.now()
        try:
            plan = self._planner.plan_run(run, preview)
        except AileronError as error:
            cannot = f"It cannot run now: {error.message}"
            stale = stale if stale == cannot else f"{stale} {cannot}"
            review = _bare_review(run) if approval is None else approval.review
            return Ask(self._digest_of_nothing(run, stale), review, now, None, stale)
        changes = () if approval is None else compare_reviews(approval.review, plan.review())
        return Ask(plan.digest(run), plan.review(), now, self._expires(plan.action.approval), stale, changes)

    def _digest_of_nothing(self, run: Run, stale: str) -> str:
        """Return a digest that no plan has."""
        return digest({"run": run.id, "stale": stale, "at": timestamp(self._runs.now())})

    def _expires(self, rule: ApprovalRule) -> datetime | None:
        """Return when an approval requested now expires, or None if it never does."""
        seconds = rule.expires_after_seconds
        return None if seconds is None else self._runs.now() + timedelta(seconds=seconds)

    async def _put(self, approval: Approval, ask: Ask, *events: Event, flags: tuple[BindingFlag, ...] = ()) -> None:
        run, now, unless_changed = approval.run, self._runs.now(), require_digest(approval.digest)
        change = transition(run, RunState.PENDING, now, *events, ask=ask, verify=unless_changed, flags=flags)
        await self._runs.apply(change)


def describe_approval(approval: Approval) -> Mapping[str, JSON]:
    """Describe the present approval for a program that named another one."""
    changes: JSON = [to_json(change) for change in approval.changes]
    return {"digest": approval.digest, "stale": approval.stale, "changes": changes}


def require_digest(shown: str) -> Verify:
    """Return a check for the transaction: it raises L{ApprovalStale} if the row has another digest than C{shown}."""

    def verify(run: Run, approval: Approval | None) -> None:
        # guard of promise 3: a decision names what is shown
        # guard of promise 3: what is decided is what the row shows at that moment
        #    -> StillTests.test_changed_while_deciding
        if approval is None or approval.digest != shown:
            raise ApprovalStale("It was just updated. Review it again.")

    return verify


def _bare_review(run: Run) -> Review:
    """Return a review of a run whose approval row is missing and that cannot be planned."""
    return Review(action=ReviewedAction(run.action, run.action_version), manifest_digest=run.manifest_digest)


def mark_changed(approval: Approval, plan: Plan, ask: Ask) -> Ask:
    """Return C{ask} with the differences to what C{approval} showed."""
    return evolve(
        ask, stale=describe_difference(approval, plan), changes=compare_reviews(approval.review, plan.review())
    )


def compare_reviews(before: Review, after: Review) -> tuple[Change, ...]:
    """Return the differences between two reviews; a preview that is not fetched in both is not compared."""
    earlier, later = (to_json(evolve(each, title="")) for each in (before, after))
    if PreviewStatus.FETCHING in (before.shown_preview.status, after.shown_preview.status):
        earlier, later = ({**each, "preview": None} for each in (earlier, later))
    return differences(earlier, later)


def describe_difference(approval: Approval, plan: Plan) -> str:
    """Describe in one sentence what has changed since C{approval} was shown."""
    before, after = approval.review, plan.review()
    if before.unread is not None:
        return "What was shown before cannot be read any more."
    if before.manifest_digest != after.manifest_digest:
        return f"The action {plan.action.name} was changed since."
    if before.arguments != after.arguments:
        return "The arguments are read differently now."
    seen, present = before.shown_preview, after.shown_preview
    if present.status is not PreviewStatus.FETCHING and seen.digest() != present.digest():
        return _OTHER_PREVIEW.get((seen.status, present.status), "What the preview shows was changed since.")
    if evolve(before, title=after.title) == after:
        return "It could not run for a while, and can again."
    return "The connector, its binding or the request that would leave was changed since."


@define(eq=False)
class Previews:
    """Fetches the missing previews of pending approvals and stores them.

    :param reader: fetches a preview from its service.
    """

    _runs: RunRepository
    _requests: ApprovalRequests
    _reader: PreviewReader
    _effects: EffectGate
    _tasks: Tasks
    _waiters: ResultWaiters[str, None]

    def begin(self, run_id: str, then: Callable[[str], Awaitable[None]] | None = None) -> bool:
        """Start to fetch a missing preview; return False if it is being fetched already or cannot be fetched now.

        :param then: called with the run's id once the preview is stored.
        """
        return self._effects.may_act() and self._tasks.start(_preview_task(run_id), self._show_and_tell(run_id, then))

    async def looked_at(self, approval: Approval) -> Approval:
        """Return C{approval} as it is to be shown now: with its missing preview, if that arrives in time."""
        run_id, task = approval.run.id, _preview_task(approval.run.id)
        if not lacks_preview(approval):
            return approval
        unanswered = approval.review.shown_preview.status is PreviewStatus.FETCHING
        if self._reader.was_tried(run_id) and not unanswered and not self._tasks.running(task):
            return approval  # it failed just now
        waiter = self._waiters.enlist(run_id)  # before it is begun: it may end at once
        if self._tasks.running(task) or self.begin(run_id):
            await self._waiters.first(run_id, waiter, PREVIEW_SECONDS)
        self._waiters.dismiss(run_id, waiter)
        return await self._requests.show(await self._runs.approval(run_id))

    async def wait_under_way(self, approval: Approval) -> Approval:
        """Return the stored approval once the preview that is being fetched is there, if that comes in time.

        No fetch is started, and nothing is stored.
        """
        run_id = approval.run.id
        if not lacks_preview(approval) or not self._tasks.running(_preview_task(run_id)):
            return approval
        waiter = self._waiters.enlist(run_id)
        await self._waiters.first(run_id, waiter, PREVIEW_SECONDS)
        self._waiters.dismiss(run_id, waiter)
        return await self._runs.approval(run_id)

    async def take_up(self) -> None:
        """Start to fetch every missing preview."""
        if self._effects.may_act():
            for run_id in await self._runs.list_unshown():
                self.begin(run_id)

    async def _show_and_tell(self, run_id: str, then: Callable[[str], Awaitable[None]] | None) -> None:
        await afterwards(self._show(run_id, then), lambda: self._waiters.tell(run_id, None))

    async def _show(self, run_id: str, then: Callable[[str], Awaitable[None]] | None) -> None:
        try:
            for _ in range(_MOST_TRIES):
                if await self._is_shown(run_id):
                    return None if then is None else await then(run_id)
        except StateConflict as conflict:
            _log.info("run {run} went {state} before its preview came", run=run_id, state=conflict.present.state.value)
        except AileronError as error:  # the next look at the approval shows the reason
            _log.info("the preview of run {run} is not shown: {why}", run=run_id, why=error.message)

    async def _is_shown(self, run_id: str) -> bool:
        """Fetch and store the preview of a run; return False if the approval changed meanwhile."""
        approval = await self._runs.approval(run_id)
        if not lacks_preview(approval):
            return True
        fetched = await self._reader.fetch_missing(approval.run)
        if fetched is None:
            return True
        try:
            await self._requests.previewed(approval, *fetched)
        except ApprovalStale:
            return False
        return True


def _preview_task(run_id: str) -> str:
    return f"the preview of {run_id}"


class PasskeyCheck(Protocol):
    """Checks that a passkey was used if the settings ask for one."""

    def passkey_rule(self) -> PasskeyRule:
        """Return the rule of approvals that need a passkey."""

    def check(self, action: str, about: Mapping[str, JSON], assertion: Assertion | None) -> None:
        """Check that no passkey is needed, or that one was used for exactly C{about}.

        A given assertion is always checked.

        :raises Forbidden: if a passkey is needed and was not used for this. C{details["passkey"]} is true.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the use of the passkey cannot be recorded.
        """


@define(eq=False)
class ApprovalGate:
    """The gate between a gated run and its effect. No other class records decisions."""

    _runs: RunRepository
    _planner: Planner
    _requests: ApprovalRequests
    _decisions: Decisions
    _reader: PreviewReader
    _pauses: Pauses
    _grants: GrantCheck
    _passkeys: PasskeyCheck

    async def admit(self, run_id: str, decision: Decision, wish: NewGrant | None = None) -> None:
        """Require a passkey if the action's rule asks for one, before the decision is recorded.

        :param wish: the grant to create with the approval, or None.
        :raises NotFound: if there is no such approval.
        :raises Forbidden: if a passkey is needed and was not used for exactly this decision.
        """
        if decision.approved and self._passkeys.passkey_rule().asks:
            approval = await self._runs.approval(run_id)
            statement = approval_statement(run_id, decision, wish)
            self._passkeys.check(approval.run.action, statement, decision.assertion)

    def refuse_unsigned(self, approval: Approval, decision: Decision) -> None:
        """Require a passkey if the current row's action needs one. The row may have been altered since L{admit}.

        :raises Forbidden: if a passkey is needed and none was used.
        """
        if decision.approved and decision.assertion is None:
            self._passkeys.check(approval.run.action, {}, None)

    async def seen_before_decision(self, run_id: str, decision: Decision) -> Preview | None:
        """Fetch the preview again before an approving decision. Do not hold the run's lock, as fetching takes time.

        :return: the preview, or None if there is none to fetch or the decision is for another digest.
        :raises VaultLocked, Paused: if the preview cannot be fetched now.
        """
        approval = await self._runs.approval(run_id)
        if not decision.approved or not approval.review.may_have_preview:
            return None
        approval, _ = await self._requests.refresh(run_id)
        if decision.digest != approval.digest or approval.run.state is not RunState.PENDING:
            return None
        return await self._fetch(approval.run)

    async def decide(self, run_id: str, decision: Decision, preview: Preview | None) -> Approval:
        """Verify, sign and record one decision. The caller must hold the run's lock.

        :param preview: the preview from L{seen_before_decision}.
        :return: the decided approval.
        """
        looked = self._runs.now()
        _check_time(decision, looked)
        approval, plan = await self.open(run_id, decision.digest)
        self.refuse_unsigned(approval, decision)
        undo_seconds = 0.0
        if decision.approved:
            await self._refuse_repetition(approval.run)
            undo_seconds = (await self._confirm(approval, plan, preview)).undo_seconds
            self._pauses.refuse(approval.run.session_id)
        else:
            await self._decisions.outdate(approval.run, looked - TICK)  # an approval recorded meanwhile remains valid
        signed = self._decisions.signed(approval.run, decision, undo_seconds)
        decided = await self._runs.note_superseded(self._find_decided(approval, signed), approval.run)
        run = await self._runs.apply_or_refuse(decided)
        return evolve(
            approval,
            run=run,
            approved=signed.approved,
            decided_at=signed.decided_at,
            decided_by=signed.decided_by,
            reason=signed.reason,
            not_before=signed.not_before,
            not_after=signed.not_after,
            mark=signed.mark,
        )

    async def open(self, run_id: str, digest: str | None) -> tuple[Approval, Plan | None]:
        """Return the pending approval of a run, after checking that its digest is C{digest} unless that is None.

        :return: the approval, and the plan that its digest covers, or None if the run cannot be planned.
        :raises NotFound, Conflict: if no approval is pending.
        :raises ApprovalStale: if the pending approval has another digest.
        """
        approval, plan = await self._requests.refresh(run_id)
        _check_open(approval, self._runs.now())
        # guard of promise 3: a decision names what is shown -> ReviewedTests
        if digest not in (None, approval.digest):
            raise ApprovalStale(
                "What would run is no longer what was shown. Review it again.",
                describe_approval(approval),
            )
        return approval, plan

    def granted(self, approval: Approval, decision: Decision, rule: ApprovalRule) -> Transition:
        """Return the transition by which a standing grant approves the run. The caller has already counted the use.

        :raises VaultLocked, BindingFailed: if the decision cannot be signed now.
        """
        signed = self._decisions.signed(approval.run, decision, rule.undo_seconds)
        return self._find_decided(approval, signed)

    async def seen_before_effect(self, run: Run) -> Preview | None:
        """Fetch the preview again before the effect. Do not hold the run's lock, as fetching takes time.

        :return: the preview, or None if there is none or the approval will be requested again.
        :raises VaultLocked, BindingFailed, Paused: if the preview cannot be fetched now.
        :raises NotYet: if the decision allows only a later start.
        """
        try:
            if not self._planner.has_preview(run):
                return None
            await self._sound(run)
            return await self._fetch(run, before_effect=True)
        except (NotYet, Paused, StoreUnavailable, *UNUSABLE):
            raise
        except AileronError:
            return None  # L{ready} then requests another approval

    async def sound_outline(self, run: Run) -> PlanOutline:
        """Return the connectors and credentials that an approved run will use.

        :raises AileronError: if the run cannot be planned, or would use a credential without a valid decision.
        """
        outline = self._planner.outline(run.action)
        if any(planned.binding is not None for planned in outline.steps):
            await self._sound(run)
        return outline

    async def ready(self, run: Run, preview: Preview | None) -> tuple[Plan, Approval] | None:
        """Return the plan of an approved run and its decision, or None if the decision no longer applies.

        Then another approval is requested.

        :param preview: the preview from L{seen_before_effect}.
        :raises VaultLocked, BindingFailed: if the decision cannot be verified now.
        :raises NotYet: if the decision allows only a later start.
        """
        try:
            approval = await self._sound(run)
            await self._refuse_repetition(run)
            plan = self._as_approved(approval, preview)
            self._grants.check(approval, plan)
        except ApprovalStale as found:
            await self._requests.ask_anew(run, found, preview)
            return None
        return plan, approval

    def verification(self, run: Run, plan: Plan, approval: Approval) -> Verify:
        """Return the check for the transaction that commits C{executing}: decision and grant are still valid.

        :raises VaultLocked, BindingFailed: if the decision cannot be verified now.
        """
        decided = self._decisions.verification(plan.digest(run), approval.mark)

        def verify(run: Run, found: Approval | None) -> None:
            decided(run, found)
            self._grants.in_force(found)

        return verify

    async def spend(self, approval: Approval) -> None:
        """Record the use of the decision before anything is sent. If recording fails, withdraw the decision.

        :raises Conflict: if the decision was used before.
        :raises AileronError: if the use cannot be recorded.
        """
        try:
            await self._decisions.spend(approval, self._grants.in_force)
        except Conflict:
            raise
        except AileronError:
            await self._decisions.give_up(approval.run)
            raise

    async def _refuse_repetition(self, run: Run) -> None:
        """Check, for a run that repeats an uncertain one, that the earlier run was not found to have happened.

        :raises ApprovalStale: it would do again what was found out meanwhile to have happened, or may have.
        """
        if run.parent_id is not None:
            await self._decisions.refuse_repetition(run.parent_id)

    async def _sound(self, run: Run) -> Approval:
        """Read the files again and return the verified decision on C{run}.

        :raises ApprovalStale: it is none that counts.
        :raises StateConflict: the run went elsewhere meanwhile.
        """
        self._planner.refresh()
        approval = await self._runs.find_approval(run.id)
        if approval is None:
            raise NoDecision("No decision is recorded.")
        if approval.run.state is not run.state:
            raise StateConflict(approval.run)
        await self._check(approval)
        return approval

    async def _fetch(self, run: Run, *, before_effect: bool = False) -> Preview | None:
        try:
            return await self._reader.fetch_again(run, before_effect=before_effect)
        except (Paused, StoreUnavailable, *UNUSABLE):
            raise
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}") from error

    async def _check(self, approval: Approval) -> None:
        """Verify the decision as L{Decisions.check} does, and that the audit log has it too.

        One that gave way, while the record still tells of it last, did so shortly before a crash or in the moment that
        it was taken: the vault is told first.
        """
        on_record = await self._decisions.on_record(approval.run, approval)
        try:
            self._decisions.check(approval.run, approval)
        except EarlierKey:
            if on_record:
                raise
        except GaveWay as found:
            if on_record:
                raise ApprovalStale(_INTERRUPTED) from found
            raise
        # guard of promise 2: the record tells of the decision -> WrittenRowsTests.test_unrecorded
        if not on_record:
            raise NoDecision("The audit log has no such decision, or has something after it.")

    def _find_decided(self, approval: Approval, decision: Decision) -> Transition:
        run = approval.run
        # guard of promise 6: the record names who decided -> RecordedTests.test_life,
        #    instead actor = Actor("service", "daemon")
        actor = get_decider(decision)
        now = decision.decided_at or self._runs.now()
        waited = int((now - approval.requested_at).total_seconds() * 1000)
        event = self._runs.event_of_run(
            "approval.approved" if decision.approved else "approval.denied",
            run,
            actor,
            digest=decision.digest,
            decision_digest=decision_digest(decision),
            reason=decision.reason,
            wait_ms=waited,
            not_before=None if decision.not_before is None else timestamp(decision.not_before),
            grant=decision.grant_id,
        )
        end = RunState.APPROVED if decision.approved else RunState.DENIED
        return transition(
            run,
            end,
            now,
            event,
            decision=decision,
            reason=decision.reason,
            verify=require_digest(decision.digest),
            start_after=decision.not_before,
        )

    async def _confirm(self, approval: Approval, opened: Plan | None, preview: Preview | None) -> ApprovalRule:
        """Confirm that an approval could run now, as it was shown, its preview fetched just now.

        :param opened: the plan that its digest binds, made when it was opened, or None if there was none.
        """
        present, run = approval, approval.run
        try:
            plan = self._planner.plan_shown(approval) if opened is None else opened
            if preview is not None and plan.with_preview(run.effect_key, preview).digest(run) != approval.digest:
                present = await self._requests.previewed(approval, preview)
        except StateConflict as conflict:
            raise make_conflict(conflict.present) from conflict
        except (ApprovalStale, StoreUnavailable, *UNUSABLE):
            raise
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}", error.details) from error
        if present.digest != approval.digest or plan.digest(approval.run) != approval.digest:
            raise ApprovalStale(f"{present.stale or _OTHERWISE} Review it again.", describe_approval(present))
        if plan.preview is not None and preview is None:
            raise ApprovalStale(f"{_OTHERWISE} Review it again.", describe_approval(approval))
        if plan.lacks is not None:
            raise ApprovalStale(plan.lacks, describe_approval(approval))
        return plan.action.approval

    def _as_approved(self, approval: Approval, preview: Preview | None) -> Plan:
        """Plan the run and return the plan if it is what was approved.

        :raises ApprovalStale: it is something else, or cannot run.
        """
        try:
            plan = self._planner.plan_run(approval.run, preview)
        except AileronError as error:
            raise ApprovalStale(f"It cannot run now: {error.message}") from error
        # guard of promise 3: the digest is built anew before the effect -> StillTests
        if plan.digest(approval.run) != approval.digest:
            raise _explain_other(approval, plan)
        return plan


def get_decider(decision: Decision) -> Actor:
    """Return who decided: a person, or a grant."""
    return Actor("human" if decision.grant_id is None else "service", decision.decided_by)


def _check_time(decision: Decision, now: datetime) -> None:
    if decision.not_before is not None and decision.not_before > now + MOST_AHEAD:
        problem = f"at most {MOST_AHEAD.days} days ahead"
        raise InvalidRequest.listing("The start time is too far ahead.", ("/not_before", problem))


def _check_open(approval: Approval, now: datetime) -> None:
    """Refuse an approval that is not pending.

    :raises Conflict: it does not, or no longer.
    """
    # guard of promise 2: only what waits is decided -> NoDecisionTests.test_withdrawn
    if approval.run.state is not RunState.PENDING:
        raise make_conflict(approval.run)
    # guard of promise 2: an approval that has expired is over -> NoDecisionTests.test_expired
    if approval.expires_at is not None and approval.expires_at <= now:
        raise make_conflict(evolve(approval.run, state=RunState.EXPIRED))


def _explain_other(approval: Approval, plan: Plan) -> ApprovalStale:
    """Explain why a valid decision is not for C{plan}: a file has changed, or the run's row was altered."""
    before, after = approval.review, plan.review()
    if before.manifest_digest == after.manifest_digest and before.arguments != after.arguments:
        return NoDecision("The recorded run is not what was approved.")
    return ApprovalStale(describe_difference(approval, plan))


@implementer(IDecisions)
@frozen(eq=False)
class DecisionService:
    """Records the operator's decisions, one at a time for each run, even if the caller disconnects meanwhile.

    :param issue: issues a grant and approves its call; see L{GrantService.approve}.
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

    async def approval(self, run_id: str, *, only_read: bool = False) -> Approval:
        self._requests.read_files()
        kept = await self._runs.approval(run_id)
        if only_read:
            found = self._requests.compute(await self._previews.wait_under_way(kept))
        else:
            found = await self._previews.looked_at(await self._requests.show(kept))
        return evolve(found, changes=tuple([await self._find_texts(each) for each in found.changes]))

    async def _find_texts(self, change: Change) -> Change:
        """Return the change of a file with the file's texts instead of their digests, if both are known."""
        if change.kind != "changed" or not change.path.endswith(_FILES):
            return change
        before, after = [await self._contents.get(str(digest)) for digest in (change.before, change.after)]
        return change if before is None or after is None else evolve(change, before=before, after=after)

    async def approvals(self, query: RunQuery, *, only_read: bool = False) -> Page[Approval]:
        self._requests.read_files()
        page = await self._runs.list_approvals(query)
        found = []
        for approval in page.items:
            found.append(self._requests.compute(approval) if only_read else await self._requests.show(approval))
            if heavy(approval.run.arguments):
                await deferLater(self._tasks.clock, 0)  # it took milliseconds, and there may be a hundred
        return Page(tuple(found), page.cursor)

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
            self._previews.begin(run_id)
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
        """Deny every identical pending request of the session as well.

        A request that is decided, edited or requested again meanwhile is skipped.
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
                self._requests.forget(run.id)

    @shielded
    async def approve_and_grant(self, run_id: str, decision: Decision, wish: NewGrant) -> tuple[Approval, Grant]:
        await self._gate.admit(run_id, decision, wish)
        preview = await self._gate.seen_before_decision(run_id, decision)
        made = self._locks.run(run_id, partial(self._issue, run_id, decision, wish, preview))
        approval, grant = await made
        self._note_decided(approval)
        return approval, grant

    def _note_decided(self, approval: Approval) -> Approval:
        self._requests.forget(approval.run.id)
        if approval.run.state is RunState.DENIED:
            self._denials.note(approval)
        if approval.run.state is RunState.APPROVED:
            # guard of promise 4: a decision begins the run -> KeptTests.test_late_decision
            self._begin(approval.run)
        return approval
