"""Remembers denials, and refuses identical calls for a while."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta

from attrs import define, field, frozen

from aileron.base.json import JSON, timestamp
from aileron.model.actions import Action
from aileron.model.audit import Actor
from aileron.model.errors import ApprovalDenied, Conflict
from aileron.model.queries import AuditQuery
from aileron.model.runs import Approval, Run, RunState
from aileron.model.sessions import Session

from .call_digests import ArgumentNormalizer
from .loops import LoopBreaker
from .runs import RunRepository

LONGEST = timedelta(days=1)
"""The time for which a denial is stored. No action's cool-down is longer."""

FORGIVEN = "approval.forgiven"
_MOST_DENIALS = 100  # for each action: the oldest are dropped


@frozen
class _Denied:
    """A denial with the digests by which later calls are compared with the denied one.

    :ivar digests: the digests of the denied call, from L{ArgumentNormalizer.digests}.
    :ivar statement: the signed list of decisions that contains the denial, or None if nobody signed it.
    """

    run_id: str
    session_id: str | None
    digests: frozenset[str]
    at: datetime
    reason: str | None
    statement: str | None


@define(eq=False)
class Denials:
    """The denials of the last day by action, in memory. L{learn} loads them from the database."""

    _runs: RunRepository
    _breaker: LoopBreaker
    _normalizer: ArgumentNormalizer
    _of: dict[str, deque[_Denied]] = field(factory=dict, init=False)

    async def learn(self) -> None:
        """Load the denials of the last day that were not lifted. Call at the start.

        :raises StoreUnavailable: if the database cannot be read.
        """
        since = self._runs.now() - LONGEST
        query = AuditQuery(type=FORGIVEN, since=since, limit=1000)
        forgiven = {record.event.run_id for record in (await self._runs.list_records(query)).items}
        for approval in await self._runs.list_denials(since):
            if approval.run.id not in forgiven:
                self._count(approval, on_record=True)

    async def catch_up(self) -> None:
        """Load the denials that another daemon recorded or lifted.

        :raises StoreUnavailable: if the database cannot be read.
        """
        since = self._runs.now() - LONGEST
        query = AuditQuery(type=FORGIVEN, since=since, limit=1000)
        forgiven = {record.event.run_id for record in (await self._runs.list_records(query)).items}
        for approval in await self._runs.list_denials(since):
            known = approval.run.id in {each.run_id for each in self._of.get(approval.run.action, ())}
            if approval.run.id in forgiven and known:
                self._forget(approval.run)
            elif approval.run.id not in forgiven and not known:
                self._count(approval, on_record=True)

    def note(self, approval: Approval) -> None:
        """Remember a denial, so that identical calls are refused, and count it against its session and action.

        Identical requests of a session that one signed list denies count once.
        """
        self._count(approval)

    def _count(self, approval: Approval, *, on_record: bool = False) -> None:
        """Remember a denial and count it. C{on_record}: see L{LoopBreaker.denied}."""
        new = self._describe(approval)
        kept = self._of.setdefault(approval.run.action, deque(maxlen=_MOST_DENIALS))
        counted = new.statement is not None and any(
            (each.statement, each.session_id) == (new.statement, new.session_id) and each.digests & new.digests
            for each in kept
        )
        kept.append(new)
        while kept[0].at <= new.at - LONGEST:
            kept.popleft()
        if not counted:
            self._breaker.denied(approval, on_record=on_record)

    def admit(self, session: Session, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Refuse an agent's call if its session or action is stopped, or if an identical call was denied lately.

        :raises LimitExceeded: if the session or the action is stopped.
        :raises ApprovalDenied: if an identical call was denied within the action's cool-down.
        """
        self._breaker.refuse(session, action.name, arguments)
        self.refuse(action, arguments)

    def refuse(self, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Refuse a call if an identical one was denied within the action's cool-down.

        :raises ApprovalDenied: if one was. The error says until when calls are refused.
        """
        now, cool_down = self._runs.now(), timedelta(seconds=action.approval.cool_down_seconds)
        lately = [each for each in self._of.get(action.name, ()) if each.at + cool_down > now]
        if not lately:
            return
        asked = self._normalizer.digests(action.name, arguments)
        for each in reversed(lately):
            if asked & each.digests:
                raise _denied_error(each, each.at + cool_down, now)

    def is_same(self, one: Run, other: Run) -> bool:
        """Return whether two runs are identical: one action and a common digest of the arguments as requested."""
        digests = [self._normalizer.digests(each.action, each.asked_for) for each in (one, other)]
        return one.action == other.action and not digests[0].isdisjoint(digests[1])

    async def forgive(self, run_id: str, actor: Actor) -> Approval:
        """Lift a denial: identical requests are accepted again, and agents stopped by it may continue. Idempotent.

        :return: the denied approval, unchanged.
        :raises NotFound: if there is no such approval.
        :raises Conflict: if the run was not denied.
        :raises StoreUnavailable: if the event cannot be recorded. The denial stays in force.
        """
        approval = await self._runs.approval(run_id)
        run = approval.run
        if run.state is not RunState.DENIED:
            raise Conflict(f"The run is {run.state.value}, so there is no denial to lift.", {"state": run.state.value})
        kept = self._of.get(run.action, deque())
        if run.id in {each.run_id for each in kept}:
            await self._runs.record(self._runs.event_of_run(FORGIVEN, run, actor))
            await self._breaker.lift_shared(run)
            self._forget(run)
        return approval

    def _forget(self, run: Run) -> None:
        """Accept calls again that are identical to a denied run, and calls of an agent that the denial stopped."""
        kept = self._of.get(run.action, ())
        self._of[run.action] = deque((each for each in kept if each.run_id != run.id), _MOST_DENIALS)
        self._breaker.forgive(run)

    def _describe(self, approval: Approval) -> _Denied:
        run, signed = approval.run, approval.signed
        return _Denied(
            run.id,
            run.session_id,
            self._normalizer.digests(run.action, run.asked_for),
            approval.decided_at or run.changed_at,
            approval.reason,
            None if signed is None else signed.statement,
        )


def _denied_error(denied: _Denied, until: datetime, now: datetime) -> ApprovalDenied:
    because = f" Reason: {denied.reason}" if denied.reason else ""
    details: dict[str, JSON] = {
        "run_id": denied.run_id,
        "until": timestamp(until),
        "retry_after": max(1, round((until - now).total_seconds())),
    }
    if denied.reason is not None:
        details["reason"] = denied.reason
    return ApprovalDenied(
        f"The user denied this at {timestamp(denied.at)}.{because} "
        f"Identical requests are refused until {timestamp(until)}. Do not repeat or reword it; ask your user.",
        details,
    )
