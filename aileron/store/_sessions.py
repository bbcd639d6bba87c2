"""Sessions over SQLite, those in use at hand."""

from __future__ import annotations

import sqlite3
from collections import OrderedDict
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.errors import LimitExceeded, NotFound, StoreUnavailable
from aileron.interfaces import ISessions
from aileron.values import Event, Page, Session, SessionEnding, SessionTally, utc

from . import _sessions_table as sessions_table
from ._audit import Seals
from ._queries import make_page, read_cursor
from ._readers import Readers, shielded
from ._writer import Writer

MOST_LIVE = 64
MOST_A_MINUTE = 100
MOST_KEPT = 10_000
"""Beyond these the oldest that are at work no more are forgotten; their runs and the record stay."""

_ORPHANED_AFTER = timedelta(seconds=600)
_MINUTE = timedelta(seconds=60)
_FLUSH_SECONDS = 60.0
_RETRY_AFTER_SECONDS = 60

_Find = Callable[[sqlite3.Cursor, bytes], Session | None]

_log = Logger()


@define(eq=False)
class SessionCache:
    """Sessions that were used last, by the digest of their token or gateway key; one that ended is never live here.

    :param size: most that are remembered.
    """

    _size: int = 256
    _sessions: OrderedDict[bytes, Session] = field(factory=OrderedDict, init=False)
    _endings: int = field(default=0, init=False)

    def get(self, digest: bytes) -> Session | None:
        """Return the cached session, or L{None}."""
        session = self._sessions.get(digest)
        if session is not None:
            self._sessions.move_to_end(digest)
        return session

    def ticket(self) -> int:
        """To be taken before a session is read, and handed to L{put} with it."""
        return self._endings

    def put(self, digest: bytes, session: Session, ticket: int) -> None:
        """Remember C{session}, unless a session ended since C{ticket}: it may be this one, as it was before."""
        if ticket != self._endings:
            return
        self._sessions[digest] = session
        if len(self._sessions) > self._size:
            self._sessions.popitem(last=False)

    def drop(self, session_id: str) -> None:
        """Forget a session that ended."""
        self._endings += 1
        for digest in [digest for digest, session in self._sessions.items() if session.id == session_id]:
            del self._sessions[digest]


@implementer(ISessions)
@define(eq=False)
class SQLiteSessions:
    """Keeps sessions, those in use at hand.  Who was seen when is written once a minute at most, all together."""

    _writer: Writer
    _readers: Readers
    _clock: IReactorTime
    _seals: Seals
    _by_token: SessionCache = field(factory=SessionCache, init=False)
    _by_gateway_key: SessionCache = field(factory=SessionCache, init=False)
    _seen: dict[str, datetime] = field(factory=dict, init=False)
    _flushed_at: float = field(init=False)

    @_flushed_at.default
    def _made_at(self) -> float:
        return self._clock.seconds()

    async def open(self, session: Session, token_digest: bytes, gateway_digest: bytes, events: Sequence[Event]) -> None:
        new = _New(session, token_digest, gateway_digest, tuple(events))
        seen = tuple(self._seen.items())
        await self._writer.write(_open, self._seals, new, seen, self._now() - _ORPHANED_AFTER)

    async def by_token(self, token_digest: bytes) -> Session | None:
        return await self._known(self._by_token, sessions_table.by_token, token_digest)

    async def by_gateway_key(self, gateway_digest: bytes) -> Session | None:
        return await self._known(self._by_gateway_key, sessions_table.by_gateway_key, gateway_digest)

    def known_gateway_key(self, gateway_digest: bytes) -> Session | None:
        session = self._by_gateway_key.get(gateway_digest)
        if session is None or not session.live:
            return None
        self._see(session)
        return session

    async def end(
        self, session_id: str, exit_code: int | None, events: Sequence[Event], ending: SessionEnding | None = None
    ) -> Session:
        seen = self._seen.get(session_id)
        written = self._writer.write(
            _end, self._seals, session_id, _SessionEnd(self._now(), exit_code, tuple(events), seen, ending)
        )
        return await shielded(written.addCallback(self._forget))

    async def get(self, session_id: str) -> Session | None:
        session = await self._readers.read(sessions_table.get, session_id)
        return None if session is None else self._fresh(session)

    async def tally(self, session_id: str) -> SessionTally:
        return await self._readers.read(sessions_table.tally, session_id)

    async def list(self, live_only: bool, limit: int, cursor: str | None) -> Page[Session]:
        rows = await self._readers.read(sessions_table.select, live_only, limit, read_cursor("sessions", cursor))
        return make_page("sessions", [(ordinal, self._fresh(session)) for ordinal, session in rows], limit)

    def flush(self) -> Deferred[None]:
        """Write who was seen when; a database that refuses only costs these times."""
        seen, self._seen = tuple(self._seen.items()), {}
        self._flushed_at = self._clock.seconds()
        if not seen:
            return succeed(None)
        return self._writer.write(sessions_table.note_seen, seen).addErrback(_note_lost)

    async def _known(self, recent: SessionCache, find: _Find, digest: bytes) -> Session | None:
        session = recent.get(digest)
        if session is None:
            ticket = recent.ticket()
            session = await self._readers.read(find, digest)
            if session is None:
                return None
            recent.put(digest, session, ticket)
        return session.seen(self._see(session)) if session.live else session

    def _now(self) -> datetime:
        return utc(self._clock.seconds())

    def _see(self, session: Session) -> datetime:
        """Note that it makes a request now."""
        self._seen[session.id] = now = self._now()
        if self._clock.seconds() - self._flushed_at >= _FLUSH_SECONDS:
            self.flush()  # the writer holds it, and its close drains it
        return now

    def _fresh(self, session: Session) -> Session:
        seen = self._seen.get(session.id)
        return session if seen is None else session.seen(max(seen, session.seen_at))

    def _forget(self, session: Session) -> Session:
        self._seen.pop(session.id, None)
        self._by_token.drop(session.id)
        self._by_gateway_key.drop(session.id)
        return session


@frozen
class _New:
    session: Session
    token_digest: bytes
    gateway_digest: bytes
    events: tuple[Event, ...]


@frozen
class _SessionEnd:
    at: datetime
    exit_code: int | None
    events: tuple[Event, ...]
    seen_at: datetime | None
    ending: SessionEnding | None


def _open(
    cursor: sqlite3.Cursor, seals: Seals, new: _New, seen: Sequence[tuple[str, datetime]], since: datetime
) -> None:
    sessions_table.note_seen(cursor, seen)
    if sessions_table.live(cursor, since) >= MOST_LIVE:
        raise LimitExceeded(f"{MOST_LIVE} sessions are live; end one first.", {"retry_after": _RETRY_AFTER_SECONDS})
    if sessions_table.opened(cursor, MOST_A_MINUTE) > new.session.started_at - _MINUTE:
        raise LimitExceeded(
            f"{MOST_A_MINUTE} sessions were opened within a minute; wait.", {"retry_after": _RETRY_AFTER_SECONDS}
        )
    sessions_table.insert(cursor, new.session, new.token_digest, new.gateway_digest)
    sessions_table.forget(cursor, MOST_KEPT, since)
    seals.append(cursor, new.events)


def _end(cursor: sqlite3.Cursor, seals: Seals, session_id: str, ending: _SessionEnd) -> Session:
    if ending.seen_at is not None:
        sessions_table.note_seen(cursor, [(session_id, ending.seen_at)])
    if sessions_table.end(cursor, session_id, ending.at, ending.exit_code, ending.ending):
        seals.append(cursor, ending.events)
    session = sessions_table.get(cursor, session_id)
    if session is None:
        raise NotFound("There is no such session.")
    return session


def _note_lost(failure: Failure) -> None:
    failure.trap(StoreUnavailable)
    _log.warn("when sessions were last seen was not written")
