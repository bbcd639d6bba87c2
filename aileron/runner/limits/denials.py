"""Refuses for a while what the operator denied, by whichever session it is asked again."""

from __future__ import annotations

import unicodedata
from collections import deque
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta

from attrs import define, field, frozen

from aileron.errors import ApprovalDenied, Conflict, NotFound
from aileron.interfaces import IAudit, IRuns
from aileron.runner.runs.transitions import EventFactory
from aileron.values import (
    JSON,
    Action,
    Actor,
    Approval,
    AuditQuery,
    RunState,
    Session,
    compact,
    digest_of_bytes,
    timestamp,
)

from .loop_breaker import LoopBreaker

LONGEST = timedelta(days=1)
"""No manifest's cool-down is longer."""

FORGIVEN = "approval.forgiven"
_MOST = 100  # of one action: the oldest beyond are forgotten
_MOST_OF_WORD = 256
"""Longer words are normalised in pieces of so many characters: marks that are piled on one letter are put in order in
quadratic time."""


def request_digest(arguments: JSON) -> str:
    """Compute the digest by which two requests for the same action are told to be the same.

    Texts count in NFKC, without case, and with each run of whitespace as one blank.  Everything else counts as it is:
    names, numbers, the order of lists, every word and every sign.
    """
    return digest_of_bytes(compact(_normal(arguments)).encode("ascii"))


def _normal(value: JSON) -> JSON:
    if isinstance(value, str):
        return normalize_text(value)
    if isinstance(value, Mapping):
        return {key: _normal(item) for key, item in value.items()}
    if isinstance(value, Sequence):
        return [_normal(item) for item in value]
    return value


def normalize_text(text: str) -> str:
    """Write C{text} in NFKC, case-folded, and with single blanks."""
    if not text.isascii():
        text = " ".join(map(_composed, text.split()))
    return " ".join(text.casefold().split())


def _composed(word: str) -> str:
    pieces = (word[at : at + _MOST_OF_WORD] for at in range(0, len(word), _MOST_OF_WORD))
    return "".join(unicodedata.normalize("NFKC", each) for each in pieces)


@frozen
class _Denied:
    """Holds one denial, as later calls are compared with it."""

    run_id: str
    request: str
    at: datetime
    reason: str | None
    session_id: str | None


@define(eq=False)
class Denials:
    """Keeps the denials of the last day by action, in memory; they are learnt from the table at the start."""

    _runs: IRuns
    _audit: IAudit
    _events: EventFactory
    _breaker: LoopBreaker
    _of: dict[str, deque[_Denied]] = field(factory=dict, init=False)

    async def learn(self) -> None:
        """At the start: what was denied in the last day and not forgiven.

        :raises StoreUnavailable: that cannot be read.
        """
        since = self._events.now() - LONGEST
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
        """Pass an agent's call only where it is not stopped.

        :raises LimitExceeded: the session or the action is.
        :raises ApprovalDenied: it was denied lately.
        """
        self._breaker.refuse(session, action.name, arguments)
        self.refuse(action, arguments)

    def refuse(self, action: Action, arguments: Mapping[str, JSON]) -> None:
        """Pass only what was not denied, or not lately.

        :raises ApprovalDenied: it was.
        """
        now, cool_down = self._events.now(), timedelta(seconds=action.approval.cool_down_seconds)
        lately = [each for each in self._of.get(action.name, ()) if each.at + cool_down > now]
        if not lately:
            return
        asked = request_digest(arguments)
        for each in reversed(lately):
            if each.request == asked:
                raise _refusal(each, each.at + cool_down, now)

    async def forgive(self, run_id: str, actor: Actor) -> Approval:
        """Let the same be asked again, and those go on who were stopped for it.  Twice is safe.

        :raises NotFound: there is no such approval.
        :raises Conflict: it was not denied.
        :raises StoreUnavailable: it counts on.
        """
        approval = await self._runs.approval(run_id)
        if approval is None:
            raise NotFound("There is no such approval.")
        run = approval.run
        if run.state is not RunState.DENIED:
            raise Conflict(f"It is {run.state.value}: there is nothing to forgive.", {"state": run.state.value})
        kept = self._of.get(run.action, deque())
        if run.id in {each.run_id for each in kept}:
            await self._audit.append(self._events.of_run(FORGIVEN, run, actor))
            self._of[run.action] = deque((each for each in kept if each.run_id != run.id), _MOST)
            self._breaker.forgive(run)
        return approval

    def _keep(self, approval: Approval) -> None:
        run = approval.run
        asked = run.arguments if run.asked is None else run.asked
        at = approval.decided_at or run.changed_at
        denied = _Denied(run.id, request_digest(asked), at, approval.reason, run.session_id)
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
        f"The operator denied this at {timestamp(denied.at)}.{because} "
        f"It is not asked again before {timestamp(until)}: do not repeat or reword it; ask your user.",
        details,
    )
