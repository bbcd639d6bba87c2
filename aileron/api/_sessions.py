"""The state of live agent sessions: their leases, and the number of their waiting requests."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import utc
from aileron.model.audit import DAEMON, Event
from aileron.model.errors import LimitExceeded, Unauthorized
from aileron.model.interfaces.store import ISessions
from aileron.model.sessions import Session, SessionEnding

LOOK_SECONDS = 5.0
"""The seconds between two calls of L{Leases.look}."""

GRACE_SECONDS = 60.0
"""The time for which a launcher may be disconnected, such as during a restart of the daemon."""

_AT_ONCE = 1000


class Leases:
    """The leases of all sessions.

    A launcher holds the lease of its session by an open request. The kernel closes it when the launcher is
    killed, but not when it is stopped or the machine sleeps.  Requests of the agent do not hold it.
    Time is counted between calls of L{look}, so a clock change or a night asleep orphans no session. It is counted from
    the start of this daemon, so a restart orphans none either.

    :param ids: a function that makes ULIDs.
    :param ended: a function that is called for each session ended here.
    """

    def __init__(
        self,
        sessions: ISessions,
        clock: IReactorTime,
        ids: Callable[[], str],
        ended: Callable[[str], object] = lambda _: None,
    ) -> None:
        self._sessions, self._clock, self._ids, self._ended = sessions, clock, ids, ended
        self._holders: Counter[str] = Counter()
        self._away: dict[str, float] = {}
        self._looked_at = clock.seconds()

    @contextmanager
    def held(self, session_id: str) -> Iterator[None]:
        """Hold the session's lease within the context."""
        self._holders[session_id] += 1
        self._away.pop(session_id, None)
        try:
            yield
        finally:
            self._holders[session_id] -= 1
            if not self._holders[session_id]:
                del self._holders[session_id]

    async def look(self) -> None:
        """End the sessions that are orphaned or out of time, and record each end.

        :raises StoreUnavailable: some could not be ended. The next call ends them.
        """
        now = self._clock.seconds()
        passed = min(max(0.0, now - self._looked_at), 2 * LOOK_SECONDS)
        self._looked_at = now
        live = await self._live()
        alone = [each.id for each in live if each.leased and each.id not in self._holders]
        self._away = {each: self._away[each] + passed if each in self._away else 0.0 for each in alone}
        for session in live:
            if session.ends_at is not None and session.ends_at <= utc(now):
                await self._end(session, SessionEnding.EXPIRED)
            elif self._away.get(session.id, 0.0) >= GRACE_SECONDS:
                await self._end(session, SessionEnding.ORPHANED)

    async def _live(self) -> list[Session]:
        found = await self._sessions.list(True, _AT_ONCE, None)
        live = list(found.items)
        while found.cursor is not None:
            found = await self._sessions.list(True, _AT_ONCE, found.cursor)
            live += found.items
        return live

    async def _end(self, session: Session, ending: SessionEnding) -> None:
        payload = {"exit_code": None, "ending": ending.value}
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
    """The long polls of all sessions.

    :param most: the most for each session.
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
        """Wait for C{waiting} and return its result.

        :param session_id: as L{allows}.
        :raises LimitExceeded: too many requests of the session wait. C{waiting} was not started.
        :raises Unauthorized: the session ended during the wait, so the result must not be returned.
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
        """End the session: cancel its waiting requests, and refuse requests of it that start to wait later."""
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
