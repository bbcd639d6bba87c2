"""What makes a row a decision: a mark under the control key, good for one use within its time."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime, timedelta

from attrs import evolve, frozen
from twisted.logger import Logger

from aileron.errors import AileronError, ApprovalStale, BindingFailed, VaultLocked
from aileron.interfaces import IAudit, IControl
from aileron.values import JSON, Approval, AuditQuery, Decision, Mark, Run, timestamp

from ._pen import Pen

APPROVAL_HOLDS = timedelta(hours=24)
"""An approved run that has not started by then asks again."""

UNUSABLE = (VaultLocked, BindingFailed)
"""What is raised where the vault is locked, or its file is not what it was."""

Verify = Callable[[Run, Approval | None], None]

_APPROVED = "approval.approved"
_DECISIVE = frozenset(
    {_APPROVED, "approval.denied", "approval.stale", "tamper.detected", "run.cancelled", "execution.started"}
)
_TICK = timedelta(microseconds=1)
_TAG = "aileron.decision.v1"
_log = Logger()


class NoDecision(ApprovalStale):
    """What stands in the row is no decision of the operator's that may still be used: somebody else wrote it."""


class EarlierKey(ApprovalStale):
    """It was a decision, or says so, under a key that is no longer this vault's."""


@frozen
class Decisions:
    """Marks decisions, tells which are sound, and uses them up in the vault, where no row brings them back."""

    _control: IControl
    _audit: IAudit
    _pen: Pen

    def signed(self, run: Run, decision: Decision) -> Decision:
        """C{decision} of C{run}, taken now and marked.

        :raises VaultLocked: the vault is not unlocked.
        """
        now = self._pen.now()
        while self._control.spent(mark := self._control.sign(_statement(run, _taken(decision, now)))):
            now += _TICK  # the same was decided, and used, in this very moment
        return evolve(_taken(decision, now), mark=mark)

    def check(self, run: Run, approval: Approval) -> None:
        """Pass only where C{approval} is a decision for C{run} that may still be used.

        :raises NoDecision: it is none.
        :raises ApprovalStale: it was one, under an earlier key or until its time was over.
        :raises VaultLocked, BindingFailed: the vault is not unlocked, or its file was altered.
        """
        _check(self._control.verifier(), self._pen.now(), run, approval)
        if approval.mark is not None and self._control.spent(approval.mark):
            raise NoDecision("The decision on record was used before.")

    async def on_record(self, run: Run, approval: Approval) -> bool:
        """Whether the record tells of this decision, and of nothing since by which it would count no more."""
        events = [record.event for record in (await self._audit.list(AuditQuery(run_id=run.id, limit=1000))).items]
        newest = next((event for event in events if event.type in _DECISIVE), None)
        if newest is None or newest.type != _APPROVED:
            return False
        return newest.payload.get("digest") == approval.digest

    def verification(self, digest: str, mark: bytes | None) -> Verify:
        """What is checked inside the transaction that commits C{executing}: the decision stands there, and is for this.

        :param mark: of the decision that will be used.
        :raises VaultLocked, BindingFailed: as of L{check}.
        """
        verifier, now = self._control.verifier(), self._pen.now()

        def verify(run: Run, approval: Approval | None) -> None:
            found = _check(verifier, now, run, approval)
            if found.digest != digest or found.mark != mark:
                raise NoDecision("The decision on record is not for this.")

        return verify

    async def spend(self, approval: Approval) -> None:
        """Use the decision, for good, before anything leaves.

        :raises Conflict: it was used.
        :raises VaultLocked, BindingFailed, StoreUnavailable: it could not be used.
        """
        head = await self._audit.head()
        if approval.mark is None or approval.not_after is None or head is None:
            raise NoDecision("There is no decision on record.")
        self._control.spend(approval.mark, approval.not_after, *head)

    async def retire(self, run: Run, approval: Approval | None) -> None:
        """Use up a decision that no longer counts, so that its row cannot be put back; as far as that can be done."""
        try:
            if approval is not None:
                self.check(run, approval)
                await self.spend(approval)
        except ApprovalStale:
            return  # there is nothing in it to use
        except AileronError as error:
            _log.warn("the decision on run {run} stays usable until its time is over: {why}", run=run.id, why=error)


def _taken(decision: Decision, now: datetime) -> Decision:
    return evolve(decision, decided_at=now, not_before=None, not_after=now + APPROVAL_HOLDS)


def _statement(run: Run, decided: Approval | Decision) -> Mapping[str, JSON]:
    return {
        "tag": _TAG,
        "run": run.id,
        "effect_key": run.effect_key,
        "digest": decided.digest,
        "approved": decided.approved,
        "decided_by": decided.decided_by,
        "decided_at": _moment(decided.decided_at),
        "not_before": _moment(decided.not_before),
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
        raise NoDecision("There is no decision on record.")
    verdict = verifier(_statement(run, approval), approval.mark)
    if verdict is Mark.EARLIER:
        raise EarlierKey("It was approved under an earlier key.")
    if verdict is not Mark.SOUND or approval.not_after is None:
        raise NoDecision("The mark under the decision on record does not hold.")
    if now > approval.not_after:
        raise ApprovalStale("It was approved more than 24 hours ago and had not started.")
    return approval
