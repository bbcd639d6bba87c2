"""Who still stands behind the sessions of agents: one whose launcher is gone, or whose time is over, is ended."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from twisted.internet.interfaces import IReactorTime

from aileron.interfaces import ISessions
from aileron.values import DAEMON, Event, Session, SessionEnding, utc

LOOK_SECONDS = 5.0
"""How often L{Leases.look} is to be called."""

GRACE_SECONDS = 60.0
"""How long a launcher may be away, so that the daemon can be restarted under it."""

_AT_ONCE = 1000


class Leases:
    """The leases of all sessions.

    A launcher holds the lease of its session by a request that stays open, which the kernel ends when the launcher is
    killed, and does not when it is stopped or the machine sleeps.  Nothing that the agent does holds it.
    Time is counted from look to look, so a clock that jumps, or a night asleep, orphans nobody; and from this daemon's
    own start, so a restart neither.

    :param ids: fresh ULIDs.
    :param ended: told of each session that is ended here.
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
        """While it lasts, a launcher stands behind this session."""
        self._holders[session_id] += 1
        self._away.pop(session_id, None)
        try:
            yield
        finally:
            self._holders[session_id] -= 1
            if not self._holders[session_id]:
                del self._holders[session_id]

    async def look(self) -> None:
        """End what is orphaned or has no more time; each end is on record.

        :raises StoreUnavailable: some were not; the next look ends them.
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
