"""Stops agents in a loop: sessions and actions with too many identical calls or denials."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable, Mapping
from datetime import datetime, timedelta
from typing import TypeAlias

from attrs import define, evolve, field

from aileron.base.json import JSON, compact, digest_of_bytes
from aileron.model.audit import Event
from aileron.model.authority import LoopLimits
from aileron.model.errors import LimitExceeded
from aileron.model.runs import Approval, Run
from aileron.model.sessions import Session

from .runs import RunRepository
from .tasks import Tasks

BROKEN_FOR = timedelta(minutes=10)
DENIALS_WITHIN, CALLS_WITHIN = timedelta(minutes=10), timedelta(minutes=1)
_SESSION, _ACTION = "session", "action"
_Which: TypeAlias = tuple[str, str]
"""C{_SESSION} or C{_ACTION}, and the session's id or the action's name."""

MOST_KEYS = 4096


@define(eq=False)
class LoopBreaker:
    """Stops sessions and actions for ten minutes after too many identical calls or denials. Counts in memory."""

    _runs: RunRepository
    _tasks: Tasks
    _limits: LoopLimits
    _calls: CallCounts = field(factory=lambda: CallCounts(CALLS_WITHIN), init=False)
    _denied: dict[_Which, deque[datetime]] = field(factory=dict, init=False)  # separate, so that calls evict no denials
    _stopped: dict[_Which, tuple[datetime, str]] = field(factory=dict, init=False)  # until when, and why

    def refuse(self, session: Session, action: str, arguments: Mapping[str, JSON]) -> None:
        """Count an agent's call, and refuse it if its session or action is stopped or this call is one too many.

        :raises LimitExceeded: if the session or the action is stopped.
        """
        now, limits = self._runs.now(), self._limits
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
            event = self._runs.event_of_home("session.broken", why=why)
            event = evolve(event, session_id=name) if kind == _SESSION else evolve(event, action=name)
            self._tasks.start(f"recording that {kind} {name} is stopped", self._append(event))

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
        await self._runs.record(event)


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
