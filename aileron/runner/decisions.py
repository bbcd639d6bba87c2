"""Marks decisions under the control key, each good for one use within its time, and tells which rows are decisions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from datetime import datetime, timedelta

from attrs import define, evolve, field
from twisted.logger import Logger

from aileron.base.json import JSON, digest_of_bytes, timestamp
from aileron.model.errors import AileronError, ApprovalStale, BindingFailed, VaultLocked
from aileron.model.interfaces.authority import IControl
from aileron.model.interfaces.store import IAudit
from aileron.model.queries import AuditQuery
from aileron.model.runs import Approval, Decision, Run
from aileron.model.trust import Mark

from .runs import EventFactory, Verify
from .scheduling import Callback, Timers

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
_HAPPENED = "The earlier run turned out to have happened, so this would do it twice. Deny or cancel this one."
_UNREADABLE = (
    "The earlier run may have happened, but the contents of what was found out about it were deleted or altered. Deny "
    "this one; if you still want it done, ask the agent to request it again."
)
TICK = timedelta(microseconds=1)
_NOTHING = (0, "")  # of a record that somebody emptied: the next start finds that it is not the one
_TAG = "aileron.decision.v1"
_log = Logger()


class NoDecision(ApprovalStale):
    """Refuses a row that is no decision of the operator's that may still be used: somebody else wrote it."""


class GaveWay(NoDecision):
    """Refuses a decision that counts no more.  Where the record does not tell of that, nobody need have written it."""


@define(eq=False)
class NotYet(Exception):
    """Says that a decision lets its run begin later.

    :ivar at: no sooner than this.
    """

    at: datetime


class EarlierKey(ApprovalStale):
    """Refuses a decision under a key that is no longer this vault's."""


@define(eq=False)
class Decisions:
    """Marks decisions, tells which are sound, and uses them up in the vault, where no row brings them back."""

    _control: IControl
    _audit: IAudit
    _events: EventFactory
    _owed: dict[str, datetime] = field(factory=dict, init=False)  # by run, what the vault could not be told

    def signed(self, run: Run, decision: Decision, undo_seconds: float = 0.0) -> Decision:
        """C{decision} of C{run}, taken now and marked.

        :param undo_seconds: how long it can still be taken back; its C{not_before} becomes the later of both.
        :raises VaultLocked: the vault is not unlocked.
        """
        at = now = self._events.now()
        begins = _begins(decision, now, timedelta(seconds=undo_seconds))
        outdated, forgotten = self._control.outdated(run.id), self._control.forgotten()
        if outdated is not None:
            at = max(at, outdated - _REMEMBERED + TICK)  # later than what it takes the place of
        if forgotten is not None:
            at = max(at, forgotten - APPROVAL_HOLDS + TICK)
        while self._control.spent(mark := self._control.sign(_statement(run, _add_times(decision, at, begins)))):
            at += TICK  # the same was decided, and used, in this very moment
        return evolve(_add_times(decision, at, begins), mark=mark)

    def check(self, run: Run, approval: Approval) -> None:
        """Pass only where C{approval} is a decision for C{run} that may still be used.

        :raises NoDecision: it is none.
        :raises GaveWay: it was one, which the vault was told to let count no more.
        :raises ApprovalStale: it was one, under an earlier key or until its time was over.
        :raises NotYet: it will be.
        :raises VaultLocked, BindingFailed: the vault is not unlocked, or its file was altered.
        """
        _check(self._control.verifier(), self._events.now(), run, approval)
        # guard of promise 3: a decision that was used is none -> StillTests.test_once_unrecorded
        if approval.mark is not None and self._control.spent(approval.mark):
            raise NoDecision("The recorded decision was already used.")
        if self._is_outdated(run, approval):
            raise GaveWay("The recorded decision was already withdrawn.")

    def was_taken(self, run: Run, approval: Approval) -> bool:
        """Tell whether C{approval} was a yes to C{run}, under the present key, used or not.

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
        """Tell whether the record tells of this very decision, and of nothing since by which it would count no more.

        Older events do not name it: for these, any decision with the same digest is taken for theirs.
        """
        newest = (await self._audit.list(AuditQuery(run_id=run.id, types=_DECISIVE, limit=1))).items
        if not newest or newest[0].event.type != _APPROVED or newest[0].altered:
            return False
        payload, name = newest[0].event.payload, decision_digest(approval)
        return payload.get("digest") == approval.digest and payload.get("decision_digest", name) == name

    async def refuse_repetition(self, run_id: str) -> None:
        """Pass only where nothing on record, whatever the row says, tells that a run in doubt was done whole.

        :raises ApprovalStale: it was, or the contents that would tell are gone or others: it could be done twice.
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
        """Make the check inside the transaction that commits C{executing}: the decision stands there, and is for this.

        :param mark: of the decision that will be used.
        :raises VaultLocked, BindingFailed: as of L{check}.
        """
        verifier, now = self._control.verifier(), self._events.now()

        def verify(run: Run, approval: Approval | None) -> None:
            found = _check(verifier, now, run, approval)
            if found.digest != digest or found.mark != mark:
                raise NoDecision("The recorded decision is for something else.")

        return verify

    async def spend(self, approval: Approval, last_look: Callable[[Approval], None]) -> None:
        """Use the decision, for good, before anything leaves.

        :param last_look: raises where it must not be used after all; nothing happens between it and the use.
        :raises Conflict: it was used.
        :raises VaultLocked, BindingFailed, StoreUnavailable: it could not be used.
        """
        head = await self._audit.head()
        if approval.mark is None or approval.not_after is None or head is None:
            raise NoDecision("No decision is recorded.")
        last_look(approval)
        # guard of promise 3: a decision is used before anything leaves -> StillTests.test_once_while_it_begins,
        #    instead self._control.seal(*head)
        self._control.spend(approval.mark, approval.not_after, *head)

    async def outdate(self, run: Run, up_to: datetime) -> None:
        """Let whatever was decided on C{run} up to a moment count no more, whatever its row says now or later.

        :raises VaultLocked, BindingFailed, StoreUnavailable: it still counts.
        """
        await self._outdate(run.id, up_to + _REMEMBERED)

    async def give_up(self, run: Run) -> None:
        """Do as L{outdate}, up to now; if that cannot be written it holds until restart, and L{settle_up} tries it."""
        self._owed[run.id] = self._events.now() + _REMEMBERED
        await self.settle_up()
        if run.id in self._owed:
            _log.warn(
                "what was decided on run {run} may count again, should this life end before it is written", run=run.id
            )

    @property
    def owing(self) -> bool:
        """True if L{settle_up} has something to do."""
        return bool(self._owed)

    async def settle_up(self) -> None:
        """Write what L{give_up} could not, as far as that can be done now."""
        with suppress(AileronError):
            for run_id, until in list(self._owed.items()):
                await self._outdate(run_id, until)

    async def _outdate(self, run_id: str, until: datetime) -> None:
        head = await self._audit.head()
        self._control.outdate(run_id, until, *(head or _NOTHING))
        self._owed.pop(run_id, None)


def decision_digest(decided: Approval | Decision) -> str:
    """Compute the SHA-256 of the mark under a decision, by which its event names it."""
    return digest_of_bytes(decided.mark or b"")


def _begins(decision: Decision, now: datetime, undo: timedelta) -> datetime | None:
    """No sooner than when it begins, by the clock as it is now, wherever it stood before; L{None}: at once."""
    begins = max(now + undo, decision.not_before or now)
    return begins if decision.approved and begins > now else None


def _add_times(decision: Decision, at: datetime, begins: datetime | None) -> Decision:
    """C{decision} with its times; one that only says no has none but that it was taken."""
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


def _check(
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
    """Holds approved runs back until they may begin: one was put off, or can still be taken back.

    Two clocks are asked.  When a run may begin is told by the wall clock, and stands under the decision's mark.  The
    seconds in which it can be taken back must have passed by a clock that nobody sets as well, as far as this life of
    the daemon has seen them: a wall clock that is set forward takes nothing from them, and one that is set back makes a
    run wait longer, never less.

    :param monotonic: seconds of a monotonic clock.
    """

    _timers: Timers
    _events: EventFactory
    _monotonic: Callable[[], float]
    _held: dict[str, float] = field(factory=dict, init=False)  # by run, until when on the monotonic clock

    def hold(self, run_id: str, seconds: float) -> None:
        """Hold an approved run, which can be taken back for so long from now on."""
        now = self._monotonic()
        self._held = {held: until for held, until in self._held.items() if until > now}
        if seconds > 0:
            self._held[run_id] = now + seconds

    def waits(self, run: Run, ring: Callback) -> bool:
        """Return whether an approved run must not begin yet; if so, C{ring} is called when its time has come."""
        at = self._begins(run)
        if at <= self._events.now():
            return False
        self._timers.watch(run.id, at, ring)
        return True

    def wait(self, run_id: str, at: datetime, ring: Callback) -> None:
        """Call back at C{at}, whatever the run's row says."""
        self._timers.watch(run_id, at, ring)

    def _begins(self, run: Run) -> datetime:
        """No sooner than this, by the wall clock as it goes now."""
        now = self._events.now()
        left = max(0.0, self._held.get(run.id, 0.0) - self._monotonic())
        return max(run.start_after or now, now + timedelta(seconds=left))
