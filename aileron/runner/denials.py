"""Stops agents that ask again what was denied, or go on and on: their calls are refused for a while."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

from attrs import define, evolve, field, frozen

from aileron.base.json import JSON, compact, digest_of_bytes, timestamp
from aileron.model.actions import Action
from aileron.model.audit import Actor, Event
from aileron.model.authority import LoopLimits
from aileron.model.errors import ApprovalDenied, Conflict, LimitExceeded
from aileron.model.queries import AuditQuery
from aileron.model.runs import Approval, Run, RunState
from aileron.model.sessions import Session

from .normalization import ArgumentNormalizer
from .runs import RunRepository
from .scheduling import Tasks

BROKEN_FOR = timedelta(minutes=10)
DENIALS_WITHIN, CALLS_WITHIN = timedelta(minutes=10), timedelta(minutes=1)

_SESSION, _ACTION = "session", "action"
_Which: TypeAlias = tuple[str, str]
"""One of both, and its name."""


@define(eq=False)
class LoopBreaker:
    """Counts calls and denials of late, in memory; denials are learnt from the table at the start."""

    _runs: RunRepository
    _tasks: Tasks
    _limits: LoopLimits
    _calls: CallCounts = field(factory=lambda: CallCounts(CALLS_WITHIN), init=False)
    _denied: dict[_Which, deque[datetime]] = field(factory=dict, init=False)  # never pushed out by calls
    _stopped: dict[_Which, tuple[datetime, str]] = field(factory=dict, init=False)  # until when, and why

    def refuse(self, session: Session, action: str, arguments: Mapping[str, JSON]) -> None:
        """Count an agent's call, and pass it only where neither its session nor its action is stopped.

        :raises LimitExceeded: one of them is.
        """
        now, limits = self._runs.events.now(), self._limits
        same = digest_of_bytes(compact({"action": action, "arguments": arguments}).encode("ascii"))
        by_session, by_action = (_SESSION, session.id), (_ACTION, action)
        self._check(by_session, now)
        self._check(by_action, now)
        if self._calls.is_beyond((session.id, same), limits.same_calls, now):
            self._stop(by_session, f"The same call was made more than {limits.same_calls} times within a minute.", now)
        if self._calls.is_beyond(same, limits.same_calls_of_all, now):
            times = f"{limits.same_calls_of_all} times within a minute, by all sessions"
            self._stop(by_action, f"The same call was made more than {times}.", now)
        self._check(by_session, now)
        self._check(by_action, now)

    def denied(self, approval: Approval, *, on_record: bool = False) -> None:
        """Count a denial.

        :param on_record: whether the record tells already what was stopped by it, as of an earlier life.
        """
        at, limits = approval.decided_at or approval.run.changed_at, self._limits
        rules = {
            _SESSION: (limits.denials, f"{limits.denials} calls"),
            _ACTION: (limits.denials_of_action, f"this action {limits.denials_of_action} times"),
        }
        for which in _list_concerned(approval.run):
            most, what = rules[which[0]]
            if count(self._denied.setdefault(which, deque()), most - 1, at - DENIALS_WITHIN, at):
                self._stop(which, f"The user denied {what} within ten minutes.", at, on_record=on_record)

    def forgive(self, run: Run) -> None:
        """Let the session and the action of a denied run go on."""
        for which in _list_concerned(run):
            self._stopped.pop(which, None)
            self._denied.pop(which, None)

    def _stop(self, which: _Which, why: str, at: datetime, *, on_record: bool = False) -> None:
        """Refuse its calls for a while from C{at}, on record once; what is stopped already is so until its time."""
        until, _ = self._stopped.get(which, (at, ""))
        if until > at:
            return
        self._stopped = {name: each for name, each in self._stopped.items() if each[0] > at}
        self._stopped[which] = at + BROKEN_FOR, why
        if not on_record:
            kind, name = which
            event = self._runs.events.of_home("session.broken", why=why)
            event = evolve(event, session_id=name) if kind == _SESSION else evolve(event, action=name)
            self._tasks.start(f"on record that {kind} {name} is stopped", self._append(event))

    def _check(self, which: _Which, now: datetime) -> None:
        until, why = self._stopped.get(which, (now, ""))
        if until <= now:
            self._stopped.pop(which, None)
            return
        whose = "Calls of this session are" if which[0] == _SESSION else "This action is"
        raise LimitExceeded(
            f"{why} {whose} refused for a while. Stop, and ask your user what to do.",
            {"retry_after": max(1, round((until - now).total_seconds()))},
        )

    async def _append(self, event: Event) -> None:
        await self._runs.audit.append(event)


def _list_concerned(run: Run) -> list[_Which]:
    """Return the action, and the session where there is one; the operator's own runs stop nobody."""
    return [] if run.session_id is None else [(_SESSION, run.session_id), (_ACTION, run.action)]


MOST_KEYS = 4096


@define(eq=False)
class CallCounts:
    """Keeps the moments at which each key was counted; a key that was not counted of late is let go of.

    That happens when another one is counted.  A clock that was set back counts what lies ahead of it as well, and a key
    that does keeps those that were counted after it.

    :param within: what is of late.
    :param most_keys: beyond them the one that was counted longest ago is forgotten.
    """

    _within: timedelta
    _most_keys: int = MOST_KEYS
    _counted: OrderedDict[Hashable, deque[datetime]] = field(factory=OrderedDict, init=False)

    def __len__(self) -> int:
        """Count the keys that take memory."""
        return len(self._counted)

    def is_beyond(self, key: Hashable, most: int, now: datetime) -> bool:
        """Count C{key} once more: whether it was counted more than C{most} times of late."""
        times = self._counted.setdefault(key, deque())
        self._counted.move_to_end(key)
        since = now - self._within
        beyond = count(times, most, since, now)
        self._forget(since)
        return beyond

    def _forget(self, since: datetime) -> None:
        longest_ago = next(iter(self._counted))
        while len(self._counted) > self._most_keys or self._counted[longest_ago][-1] <= since:
            del self._counted[longest_ago]
            longest_ago = next(iter(self._counted))


def count(times: deque[datetime], most: int, since: datetime, now: datetime) -> bool:
    """Add C{now} to C{times} and drop what is not after C{since}: whether more than C{most} are left."""
    times.append(now)
    while len(times) > most + 1 or times[0] <= since:
        times.popleft()
    return len(times) > most


LONGEST = timedelta(days=1)
"""No manifest's cool-down is longer."""

FORGIVEN = "approval.forgiven"
_MOST = 100  # of one action: the oldest beyond are forgotten


@frozen
class _Denied:
    """A denial, as later calls are compared with it.

    :ivar digests: of the request, as L{ArgumentNormalizer.digests} computes them.
    """

    run_id: str
    digests: frozenset[str]
    at: datetime
    reason: str | None


@define(eq=False)
class Denials:
    """Keeps the denials of the last day by action, in memory; they are learnt from the table at the start."""

    _runs: RunRepository
    _breaker: LoopBreaker
    _normalizer: ArgumentNormalizer
    _of: dict[str, deque[_Denied]] = field(factory=dict, init=False)

    async def learn(self) -> None:
        """At the start: what was denied in the last day and not forgiven.

        :raises StoreUnavailable: that cannot be read.
        """
        since = self._runs.events.now() - LONGEST
        query = AuditQuery(type=FORGIVEN, since=since, limit=1000)
        forgiven = {record.event.run_id for record in (await self._runs.audit.list(query)).items}
        for approval in await self._runs.table.denials(since):
            if approval.run.id not in forgiven:
                self._keep(approval)
                self._breaker.denied(approval, on_record=True)

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
        now, cool_down = self._runs.events.now(), timedelta(seconds=action.approval.cool_down_seconds)
        lately = [each for each in self._of.get(action.name, ()) if each.at + cool_down > now]
        if not lately:
            return
        asked = self._normalizer.digests(action.name, arguments)
        for each in reversed(lately):
            if asked & each.digests:
                raise _refusal(each, each.at + cool_down, now)

    def is_same(self, one: Run, other: Run) -> bool:
        """Tell whether two runs of an action ask for the same, as later calls are compared with a denied one."""
        digests = [self._normalizer.digests(each.action, each.asked_for) for each in (one, other)]
        return one.action == other.action and not digests[0].isdisjoint(digests[1])

    async def forgive(self, run_id: str, actor: Actor) -> Approval:
        """Let the same be asked again, and those go on who were stopped for it.  Twice is safe.

        :raises NotFound: there is no such approval.
        :raises Conflict: it was not denied.
        :raises StoreUnavailable: it counts on.
        """
        approval = await self._runs.approval(run_id)
        run = approval.run
        if run.state is not RunState.DENIED:
            raise Conflict(f"The run is {run.state.value}, so there is no denial to lift.", {"state": run.state.value})
        kept = self._of.get(run.action, deque())
        if run.id in {each.run_id for each in kept}:
            await self._runs.audit.append(self._runs.events.of_run(FORGIVEN, run, actor))
            self._of[run.action] = deque((each for each in kept if each.run_id != run.id), _MOST)
            self._breaker.forgive(run)
        return approval

    def _keep(self, approval: Approval) -> None:
        run = approval.run
        at = approval.decided_at or run.changed_at
        denied = _Denied(run.id, self._normalizer.digests(run.action, run.asked_for), at, approval.reason)
        kept = self._of.setdefault(run.action, deque(maxlen=_MOST))
        kept.append(denied)
        while kept[0].at <= at - LONGEST:
            kept.popleft()


def _refusal(denied: _Denied, until: datetime, now: datetime) -> ApprovalDenied:
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
