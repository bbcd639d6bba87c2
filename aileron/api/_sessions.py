"""The state of live agent sessions: their leases, and the number of their waiting requests."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import utc
from aileron.model.audit import DAEMON, Event
from aileron.model.errors import LimitExceeded, Unauthorized
from aileron.model.interfaces.store import ISessions
from aileron.model.people import Owner
from aileron.model.sessions import Session, SessionEnding

CHECK_SECONDS = 5.0
"""The seconds between two calls of L{Leases.end_lapsed_sessions}."""

GRACE_SECONDS = 60.0
"""How long a launcher may be disconnected before its session ends, such as during a restart of the daemon."""

_AT_ONCE = 1000
_UNSEEN = timedelta(days=1)


class Leases:
    """The leases of all sessions.

    L{end_lapsed_sessions} ends a leased session that nobody has held for L{GRACE_SECONDS}, any session that has reached
    its latest end, and the sessions of accounts that were removed.

    A launcher holds the lease of its session by an open request. If the launcher is killed, the kernel closes the
    request. If the launcher is stopped or the machine sleeps, the request stays open. Requests of the agent do not hold
    the lease. The time without a holder is measured between calls of L{end_lapsed_sessions}, at most a short time for
    each call, so a clock change or a sleeping machine ends no session. It is measured anew after a restart of the
    daemon.

    :param ids: a function that makes ULIDs.
    :param ended: a function that is called for each session ended here.
    :param several: whether launchers may hold the leases of sessions at other daemons as well.
    :param is_removed: returns whether an owner's account was removed. By default there are no accounts.
    """

    def __init__(
        self,
        sessions: ISessions,
        clock: IReactorTime,
        ids: Callable[[], str],
        ended: Callable[[str], object] = lambda _: None,
        several: bool = False,
        *,
        is_removed: Callable[[Owner], bool] = lambda _: True,
    ) -> None:
        self._is_removed = is_removed
        self._several, self._held = several, set[str]()
        self._sessions, self._clock, self._ids, self._ended = sessions, clock, ids, ended
        self._holders: Counter[str] = Counter()
        self._away: dict[str, float] = {}
        self._checked_at = clock.seconds()

    @contextmanager
    def held(self, session_id: str) -> Iterator[None]:
        """Hold the session's lease within the context."""
        self._holders[session_id] += 1
        self._held.add(session_id)
        self._away.pop(session_id, None)
        try:
            yield
        finally:
            self._holders[session_id] -= 1
            if not self._holders[session_id]:
                del self._holders[session_id]

    async def end_lapsed_sessions(self) -> None:
        """End the sessions that have lost their lease or reached their time limit, and record each end.

        :raises StoreUnavailable: if the sessions could not be read, or some could not be ended. The next call ends
            them.
        """
        now = self._clock.seconds()
        passed = min(max(0.0, now - self._checked_at), 2 * CHECK_SECONDS)
        self._checked_at = now
        live = await self._live()
        alone = [each.id for each in live if each.leased and self._is_alone(each, utc(now))]
        self._held.intersection_update(each.id for each in live)
        self._away = {each: self._away[each] + passed if each in self._away else 0.0 for each in alone}
        for session in live:
            if await self.end_if_removed(session):
                continue
            if session.ends_at is not None and session.ends_at <= utc(now):
                await self._end(session, SessionEnding.EXPIRED)
            elif self._away.get(session.id, 0.0) >= GRACE_SECONDS:
                await self._end(session, SessionEnding.ORPHANED)

    async def end_if_removed(self, session: Session) -> bool:
        """End a live session if the account to which it belongs was removed. Return whether it was.

        :raises StoreUnavailable: if the end cannot be stored. The session is valid for as long.
        """
        # guard of roles: the sessions of an account end with it
        #    -> features.people.test_agents.RemovedTests.test_next_request,
        #    instead return False
        if session.owner is None or not self._is_removed(session.owner):
            return False
        await self._end(session, None)
        return True

    def _is_alone(self, session: Session, now: datetime) -> bool:
        """Return whether nobody holds the lease of a session.

        Among several daemons, only sessions that were held here are known, and those without a request for a day.
        """
        # guard of several daemons: a session whose launcher is connected to another daemon goes on
        #    -> api.test_leases.SeveralTests.test_elsewhere
        if self._several and session.id not in self._held and session.seen_at > now - _UNSEEN:
            return False
        return session.id not in self._holders

    async def _live(self) -> list[Session]:
        found = await self._sessions.list(True, _AT_ONCE, None)
        live = list(found.items)
        while found.cursor is not None:
            found = await self._sessions.list(True, _AT_ONCE, found.cursor)
            live += found.items
        return live

    async def _end(self, session: Session, ending: SessionEnding | None) -> None:
        payload = {"exit_code": None, "ending": "account_removed" if ending is None else ending.value}
        event = Event(self._ids(), "session.ended", utc(self._clock.seconds()), DAEMON, payload, session_id=session.id)
        await self._sessions.end(session.id, None, (event,), ending)
        self._ended(session.id)
        self._away.pop(session.id, None)


T = TypeVar("T")

MOST_WAITS = 64
"""The most waiting requests of one session."""

RETRY_AFTER_SECONDS = 5

_REMEMBERED = 256
"""The number of recently ended sessions that are remembered, to refuse requests that start to wait after the end."""


class Waits:
    """The long polls of all sessions: requests that wait for a result.

    :param most: the largest number of waiting requests for each session.
    """

    def __init__(self, most: int = MOST_WAITS) -> None:
        self._most = most
        self._waiting: dict[str, set[Deferred[Any]]] = {}
        self._ended: deque[str] = deque(maxlen=_REMEMBERED)

    def allows(self, session_id: str | None) -> bool:
        """Return whether one more request may wait.

        :param session_id: the agent's session, or None for the operator, whose requests are not counted.
        """
        return session_id is None or len(self._waiting.get(session_id, ())) < self._most

    async def wait(self, session_id: str | None, waiting: Coroutine[Any, Any, T]) -> T:
        """Wait for C{waiting} and return its result, counting it as one waiting request of the session.

        :param session_id: the agent's session, or None for the operator.
        :raises LimitExceeded: if too many requests of the session wait. C{waiting} was not started.
        :raises Unauthorized: if the session ended during the wait, so the result must not be returned.
        """
        if session_id is None:
            return await waiting
        if session_id in self._ended:
            waiting.close()
            raise _ended()
        if not self.allows(session_id):
            waiting.close()
            raise LimitExceeded(
                f"This session has {self._most} requests waiting already. Try again when one of them is answered, "
                "or request without waiting.",
                {"retry_after": RETRY_AFTER_SECONDS},
            )
        return await self._count(session_id, Deferred.fromCoroutine(waiting))

    def end(self, session_id: str) -> None:
        """Cancel the waiting requests of an ended session, and refuse its requests that start to wait later."""
        self._ended.append(session_id)
        for waiting in self._waiting.pop(session_id, ()):
            waiting.cancel()

    async def _count(self, session_id: str, waiting: Deferred[T]) -> T:
        self._waiting.setdefault(session_id, set()).add(waiting)
        try:
            return await waiting
        except CancelledError:
            if session_id in self._waiting:
                raise
            raise _ended() from None
        finally:
            self._forget(session_id, waiting)

    def _forget(self, session_id: str, waiting: Deferred[T]) -> None:
        others = self._waiting.get(session_id)
        if others is not None:
            others.discard(waiting)
            if not others:
                del self._waiting[session_id]


def _ended() -> Unauthorized:
    return Unauthorized("The session of this token has ended.")
