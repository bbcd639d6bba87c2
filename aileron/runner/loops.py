"""Stops agents in a loop: sessions and actions with too many identical calls or denials."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Protocol, TypeAlias

from attrs import define, evolve, field

from aileron.base.json import JSON, compact, digest_of_bytes
from aileron.model.audit import Event
from aileron.model.authority import LoopLimits
from aileron.model.call_counts import COUNTED_SECONDS, STOPPED_SECONDS, CallStop, CountLimit, Stopped
from aileron.model.errors import LimitExceeded
from aileron.model.runs import Approval, Run
from aileron.model.sessions import Session

from .runs import RunRepository
from .tasks import Tasks

BROKEN_FOR = timedelta(seconds=STOPPED_SECONDS)
DENIALS_WITHIN, CALLS_WITHIN = timedelta(minutes=10), timedelta(seconds=COUNTED_SECONDS)
_SESSION, _ACTION = Stopped.SESSION, Stopped.ACTION
_Which: TypeAlias = tuple[Stopped, str]
"""The session's id or the action's name, after its kind."""

_BY_ALL = ", by all sessions"

MOST_KEYS = 4096


class SharedCallCounts(Protocol):
    """Counts equal calls for several daemons. Its times are those of one clock for all daemons."""

    async def count(self, session_id: str, digest: str, limits: Sequence[CountLimit]) -> CallStop | None:
        """Count a call, and return why it is refused, or None if it is not.

        :raises StoreUnavailable: if it cannot be stored. Nothing was counted.
        """

    async def lift(self, session_id: str, action: str) -> None:
        """Accept calls of a session and of an action again. Idempotent.

        :raises StoreUnavailable: if it cannot be stored.
        """


@define(eq=False)
class LoopBreaker:
    """Stops sessions and actions for ten minutes after too many identical calls or denials.

    Counts in memory. Several daemons count calls in their database, and denials each for itself, as they read them.

    :param shared: counts the calls for all daemons on the database, or None if there are no others.
    """

    _runs: RunRepository
    _tasks: Tasks
    _limits: LoopLimits
    _shared: SharedCallCounts | None = None
    _calls: CallCounts = field(factory=lambda: CallCounts(CALLS_WITHIN), init=False)
    _denied: dict[_Which, deque[datetime]] = field(factory=dict, init=False)  # separate, so that calls evict no denials
    _stopped: dict[_Which, tuple[datetime, str]] = field(factory=dict, init=False)  # until when, and why

    def refuse(self, session: Session, action: str, arguments: Mapping[str, JSON]) -> None:
        """Count an agent's call, and refuse it if its session or action is stopped or this call is one too many.

        Among several daemons, L{count_shared} has counted it.

        :raises LimitExceeded: if the session or the action is stopped.
        """
        now, limits = self._runs.now(), self._limits
        by_session, by_action = (_SESSION, session.id), (_ACTION, action)
        self._check(by_session, now)
        self._check(by_action, now)
        if self._shared is not None:
            return
        same = _digest_of(action, arguments)
        if self._calls.is_beyond((session.id, same), limits.same_calls, now):
            self._stop(by_session, _explain(limits.same_calls), now)
        if self._calls.is_beyond(same, limits.same_calls_of_all, now):
            self._stop(by_action, _explain(limits.same_calls_of_all, _BY_ALL), now)
        self._check(by_session, now)
        self._check(by_action, now)

    async def count_shared(self, session: Session, action: str, arguments: Mapping[str, JSON]) -> None:
        """Count an agent's call for all daemons on the database, and refuse it if it is one too many.

        Without other daemons, do nothing.

        :raises LimitExceeded: if the session or the action is stopped.
        :raises StoreUnavailable: if it cannot be counted.
        """
        if self._shared is None:
            return
        most, of_all = self._limits.same_calls, self._limits.same_calls_of_all
        limits = (
            CountLimit(_SESSION, session.id, most, self._broken((_SESSION, session.id), _explain(most))),
            CountLimit(_ACTION, action, of_all, self._broken((_ACTION, action), _explain(of_all, _BY_ALL))),
        )
        stop = await self._shared.count(session.id, _digest_of(action, arguments), limits)
        if stop is not None:
            raise _stopped_error(stop.stopped, stop.why, stop.seconds_left)

    async def lift_shared(self, run: Run) -> None:
        """Accept calls of the denied run's session and action again on all daemons. Without others, do nothing.

        :raises StoreUnavailable: if that cannot be stored.
        """
        if self._shared is not None and run.session_id is not None:
            await self._shared.lift(run.session_id, run.action)

    def denied(self, approval: Approval, *, on_record: bool = False) -> None:
        """Count a denial, and stop its session or action if there were too many.

        :param on_record: whether the audit log has the events of this denial already, because an earlier process
            counted it.
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
        """Accept calls of the denied run's session and action again, and reset their counts of denials."""
        for which in _list_concerned(run):
            self._stopped.pop(which, None)
            self._denied.pop(which, None)

    def _stop(self, which: _Which, why: str, at: datetime, *, on_record: bool = False) -> None:
        """Refuse calls of the session or action for a while from C{at}, and record the event C{session.broken}.

        If it is stopped already, do nothing. If C{on_record}, record no event.
        """
        until, _ = self._stopped.get(which, (at, ""))
        if until > at:
            return
        self._stopped = {name: each for name, each in self._stopped.items() if each[0] > at}
        self._stopped[which] = at + BROKEN_FOR, why
        if not on_record:
            kind, name = which
            self._tasks.start(f"recording that {kind} {name} is stopped", self._append(self._broken(which, why)))

    def _broken(self, which: _Which, why: str) -> Event:
        kind, name = which
        event = self._runs.event_of_home("session.broken", why=why)
        return evolve(event, session_id=name) if kind is _SESSION else evolve(event, action=name)

    def _check(self, which: _Which, now: datetime) -> None:
        until, why = self._stopped.get(which, (now, ""))
        if until <= now:
            self._stopped.pop(which, None)
            return
        raise _stopped_error(which[0], why, (until - now).total_seconds())

    async def _append(self, event: Event) -> None:
        await self._runs.record(event)


def _digest_of(action: str, arguments: Mapping[str, JSON]) -> str:
    return digest_of_bytes(compact({"action": action, "arguments": arguments}).encode("ascii"))


def _explain(most: int, by: str = "") -> str:
    return f"The same call was made more than {most} times within a minute{by}."


def _stopped_error(stopped: Stopped, why: str, seconds_left: float) -> LimitExceeded:
    whose = "Calls of this session are" if stopped is _SESSION else "This action is"
    return LimitExceeded(
        f"{why} {whose} refused for a while. Stop, and ask your user what to do.",
        {"retry_after": max(1, round(seconds_left))},
    )


def _list_concerned(run: Run) -> list[_Which]:
    """Return the session and the action for which a denial of C{run} is counted. Empty for the operator's own runs."""
    return [] if run.session_id is None else [(_SESSION, run.session_id), (_ACTION, run.action)]


@define(eq=False)
class CallCounts:
    """A counter of keys within the last C{within}.

    Each count removes the keys that were not counted within this span. If the clock was set back, times that now lie in
    the future count too, and keys counted after such a time are kept longer.

    :param within: the time span.
    :param most_keys: the maximum number of keys. Beyond it, the key that was counted longest ago is dropped.
    """

    _within: timedelta
    _most_keys: int = MOST_KEYS
    _counted: OrderedDict[Hashable, deque[datetime]] = field(factory=OrderedDict, init=False)

    def __len__(self) -> int:
        """Return how many keys are counted at present."""
        return len(self._counted)

    def is_beyond(self, key: Hashable, most: int, now: datetime) -> bool:
        """Count C{key} and return whether it was counted more than C{most} times within the span."""
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
    """Count an event: add C{now} to C{times} and drop times up to C{since}.

    :return: whether more than C{most} are left.
    """
    times.append(now)
    while len(times) > most + 1 or times[0] <= since:
        times.popleft()
    return len(times) > most
