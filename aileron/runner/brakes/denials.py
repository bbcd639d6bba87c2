"""What the operator denied is not asked again so soon, by whichever session."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from datetime import datetime, timedelta

from attrs import define, field, frozen

from aileron.errors import ApprovalDenied, Conflict
from aileron.interfaces import IAudit, IRuns
from aileron.runner._pen import Pen
from aileron.values import JSON, Action, Actor, Approval, AuditQuery, RunState, Session, timestamp

from .breaker import Breaker
from .likeness import Intent, alike, intent_of

LONGEST = timedelta(days=1)
"""No manifest's cool-down is longer."""

FORGIVEN = "approval.forgiven"
_MOST = 100  # of one action: the oldest beyond are forgotten


@frozen
class _Denied:
    """One denial, as later calls are compared with it."""

    run_id: str
    intent: Intent
    at: datetime
    reason: str | None
    session_id: str | None


@define(eq=False)
class Denials:
    """Those of the last day, by action: in memory, learnt from the table at the start."""

    _runs: IRuns
    _audit: IAudit
    _pen: Pen
    _breaker: Breaker
    _of: dict[str, deque[_Denied]] = field(factory=dict, init=False)

    async def learn(self) -> None:
        """At the start: what was denied in the last day and not forgiven.

        :raises StoreUnavailable: that cannot be read.
        """
        since = self._pen.now() - LONGEST
        query = AuditQuery(type=FORGIVEN, since=since, limit=1000)
        forgiven = {record.event.run_id for record in (await self._audit.list(query)).items}
        for approval in await self._runs.denials(since):
            if approval.run.id not in forgiven:
                self._keep(approval)
                self._breaker.remember(approval)

    def note(self, approval: Approval) -> None:
        """One was denied just now."""
        self._keep(approval)
        self._breaker.denied(approval)

    def admit(self, session: Session, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Pass an agent's call only where neither it nor its like is stopped.

        :raises LimitExceeded: the session or the action is.
        :raises ApprovalDenied: it was denied lately.
        """
        self._breaker.refuse(session, action.name, arguments)
        self.refuse(action, arguments)

    def refuse(self, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Pass only what was not denied, or not lately, in these or nearly these words.

        :raises ApprovalDenied: it was.
        """
        now, cool_down = self._pen.now(), timedelta(seconds=action.approval.cool_down_seconds)
        lately = [each for each in self._of.get(action.name, ()) if each.at + cool_down > now]
        if not lately:
            return
        asked = intent_of(arguments)
        for each in reversed(lately):
            if alike(each.intent, asked):
                raise _refusal(each, each.at + cool_down, now)

    async def forgive(self, approval: Approval, actor: Actor) -> None:
        """Let the like of it be asked again, and those go on who were stopped for it.  Twice is safe.

        :raises Conflict: it was not denied.
        :raises StoreUnavailable: it counts on.
        """
        run = approval.run
        if run.state is not RunState.DENIED:
            raise Conflict(f"It is {run.state.value}: there is nothing to forgive.", {"state": run.state.value})
        kept = self._of.get(run.action, deque())
        if run.id in {each.run_id for each in kept}:
            await self._audit.append(self._pen.of_run(FORGIVEN, run, actor))
            self._of[run.action] = deque((each for each in kept if each.run_id != run.id), _MOST)
            self._breaker.forgive(run)

    def _keep(self, approval: Approval) -> None:
        run = approval.run
        asked = run.arguments if run.asked is None else run.asked
        at = approval.decided_at or run.changed_at
        denied = _Denied(run.id, intent_of(asked), at, approval.reason, run.session_id)
        kept = self._of.setdefault(run.action, deque(maxlen=_MOST))
        kept.append(denied)
        while kept[0].at <= at - LONGEST:
            kept.popleft()


def _refusal(denied: _Denied, until: datetime, now: datetime) -> ApprovalDenied:
    because = f" The reason: {denied.reason}" if denied.reason else ""
    details: dict[str, JSON] = {
        "run_id": denied.run_id,
        "until": timestamp(until),
        "retry_after": max(1, round((until - now).total_seconds())),
    }
    if denied.reason is not None:
        details["reason"] = denied.reason
    return ApprovalDenied(
        f"The operator denied this, or nearly this, at {timestamp(denied.at)}.{because} "
        f"It is not asked again before {timestamp(until)}: do not reword it; ask your user.",
        details,
    )
