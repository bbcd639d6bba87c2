"""Sessions in the database, with limits on their number and lifetime. Sessions in use are also cached in memory."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

from attrs import define, evolve, field, frozen
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.base.json import from_timestamp, timestamp, utc
from aileron.model.audit import Event
from aileron.model.errors import LimitExceeded, NotFound, StoreUnavailable
from aileron.model.interfaces.store import ISessions
from aileron.model.people import Owner
from aileron.model.queries import Page
from aileron.model.sessions import ActionSelection, Process, Session, SessionEnding, SessionTally

from ._audit import Seals
from ._connections import Readers, shielded
from ._dialect import Cursor
from ._table import FLAG, MOMENT, PLAIN, Table, conditions, enum, make_page, read_cursor, value
from ._writer import Writer

CACHED = 256
"""The number of sessions that are cached for each kind of key, where no other daemon can end them."""

MOST_LIVE = 64
MOST_A_MINUTE = 100
MOST_KEPT = 10_000
"""The number of sessions beyond which the oldest inactive ones are deleted. Their runs and audit records stay."""

_ORPHANED_AFTER = timedelta(seconds=600)
_MINUTE = timedelta(seconds=60)
_FLUSH_SECONDS = 60.0
_RETRY_AFTER_SECONDS = 60

_COLUMNS = {
    "id": PLAIN,
    "agent": PLAIN,
    "working_dir": PLAIN,
    "started_at": MOMENT,
    "seen_at": MOMENT,
    "ended_at": MOMENT.or_null(),
    "exit_code": PLAIN,
    "peer": value(Process).or_null(),
    "leased": FLAG,
    "ends_at": MOMENT.or_null(),
    "ending": enum(SessionEnding).or_null(),
    "in_band": FLAG,
    "notes_tools": FLAG,
    "profile": PLAIN,
    "selection": value(ActionSelection).or_null(),
    "owner": value(Owner).or_null(),
}
SESSIONS = Table("sessions", Session, _COLUMNS)
_WRITTEN = Table(
    "sessions", Session, {**_COLUMNS, **dict.fromkeys(("token_digest", "gateway_digest", "in_band_digest"), PLAIN)}
)
_END = "UPDATE sessions SET ended_at = ?, exit_code = ?, ending = ? WHERE id = ? AND ended_at IS NULL"
_SEEN = "UPDATE sessions SET seen_at = ? WHERE id = ? AND seen_at < ?"
_LIVE = "SELECT count(*) FROM sessions WHERE ended_at IS NULL AND seen_at > ?"
_OPENED = "SELECT started_at FROM sessions ORDER BY ordinal DESC LIMIT 1 OFFSET ?"
_FORGET = """
    DELETE FROM sessions
    WHERE ordinal <= (SELECT max(ordinal) FROM sessions) - ? AND (ended_at IS NOT NULL OR seen_at <= ?)
"""
_TALLY = """
    SELECT
        count(*),
        count(*) FILTER (WHERE state = 'pending_approval'),
        count(*) FILTER (WHERE approved = 1),
        count(*) FILTER (WHERE approved = 0),
        count(*) FILTER (WHERE state = 'completed'),
        count(*) FILTER (WHERE state = 'unknown')
    FROM runs LEFT JOIN approvals ON run_id = id
    WHERE session_id = ?
"""
_DAWN = datetime.min.replace(tzinfo=UTC)

_log = Logger()


@define(eq=False)
class SessionCache:
    """A cache of recently used sessions by the digest of a key. An ended session is never returned as live.

    :param size: the maximum number of cached sessions.
    """

    _size: int = CACHED
    _sessions: OrderedDict[bytes, Session] = field(factory=OrderedDict, init=False)
    _endings: int = field(default=0, init=False)

    def get(self, digest: bytes) -> Session | None:
        """Return the cached session, or None if it is not cached."""
        session = self._sessions.get(digest)
        if session is not None:
            self._sessions.move_to_end(digest)
        return session

    def ticket(self) -> int:
        """Return a ticket for L{put}. Call this before reading a session from the database."""
        return self._endings

    def put(self, digest: bytes, session: Session, ticket: int) -> None:
        """Cache C{session}, unless a session ended since C{ticket}: the value may be outdated."""
        if ticket != self._endings:
            return
        self._sessions[digest] = session
        if len(self._sessions) > self._size:
            self._sessions.popitem(last=False)

    def drop(self, session_id: str) -> None:
        """Remove an ended session, and invalidate all tickets."""
        self._endings += 1
        for digest in [digest for digest, session in self._sessions.items() if session.id == session_id]:
            del self._sessions[digest]


@implementer(ISessions)
@define(eq=False)
class SQLSessions:
    """Stores sessions, with a cache of those in use. Times of last use are written together, at most once a minute."""

    _writer: Writer
    _readers: Readers
    _clock: IReactorTime
    _seals: Seals
    _cached: int = CACHED
    _by_token: SessionCache = field(init=False)
    _by_gateway_key: SessionCache = field(init=False)
    _by_in_band_key: SessionCache = field(init=False)
    _seen: dict[str, datetime] = field(factory=dict, init=False)
    _flushed_at: float = field(init=False)

    @_flushed_at.default
    def _find_made_at(self) -> float:
        return self._clock.seconds()

    @_by_token.default
    @_by_gateway_key.default
    @_by_in_band_key.default
    def _make_cache(self) -> SessionCache:
        return SessionCache(self._cached)

    async def open(
        self,
        session: Session,
        token_digest: bytes,
        gateway_digest: bytes,
        events: Sequence[Event],
        in_band_digest: bytes | None = None,
    ) -> None:
        new = _New(session, (token_digest, gateway_digest, in_band_digest), tuple(events))
        seen = tuple(self._seen.items())
        await self._writer.write(_open, self._seals, new, seen, self._now() - _ORPHANED_AFTER)

    async def by_token(self, token_digest: bytes) -> Session | None:
        return await self._find_known(self._by_token, "token_digest", token_digest)

    async def by_gateway_key(self, gateway_digest: bytes) -> Session | None:
        return await self._find_known(self._by_gateway_key, "gateway_digest", gateway_digest)

    async def by_in_band_key(self, in_band_digest: bytes) -> Session | None:
        return await self._find_known(self._by_in_band_key, "in_band_digest", in_band_digest)

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
        session = await self._readers.read(SESSIONS.find, "WHERE id = ?", session_id)
        return None if session is None else self._refresh(session)

    async def tally(self, session_id: str) -> SessionTally:
        return await self._readers.read(_tally, session_id)

    async def list(
        self, live_only: bool, limit: int, cursor: str | None, without_ended: str | None = None
    ) -> Page[Session]:
        before = read_cursor("sessions", cursor)
        rows = await self._readers.read(_select, live_only, limit, before, without_ended)
        return make_page("sessions", [(ordinal, self._refresh(session)) for ordinal, session in rows], limit)

    def flush(self) -> Deferred[None]:
        """Write the times of last use. If the database fails, they are lost."""
        seen, self._seen = tuple(self._seen.items()), {}
        self._flushed_at = self._clock.seconds()
        if not seen:
            return succeed(None)
        return self._writer.write(_note_seen, seen).addErrback(_note_lost)

    async def _find_known(self, recent: SessionCache, column: str, digest: bytes) -> Session | None:
        session = recent.get(digest)
        if session is None:
            ticket = recent.ticket()
            session = await self._readers.read(SESSIONS.find, f"WHERE {column} = ?", digest)
            if session is None:
                return None
            recent.put(digest, session, ticket)
        return evolve(session, seen_at=self._see(session)) if session.live else session

    def _now(self) -> datetime:
        return utc(self._clock.seconds())

    def _see(self, session: Session) -> datetime:
        """Record that the session makes a request now, and return the time.

        If the last write is a minute old, write them.
        """
        self._seen[session.id] = now = self._now()
        if self._clock.seconds() - self._flushed_at >= _FLUSH_SECONDS:
            self.flush()  # queued in the writer, which finishes it on close
        return now

    def _refresh(self, session: Session) -> Session:
        seen = self._seen.get(session.id)
        return session if seen is None else evolve(session, seen_at=max(seen, session.seen_at))

    def _forget(self, session: Session) -> Session:
        self._seen.pop(session.id, None)
        self._by_token.drop(session.id)
        self._by_gateway_key.drop(session.id)
        self._by_in_band_key.drop(session.id)
        return session


@frozen
class _New:
    """A session to be opened, and the digests of its token, its gateway key and its in-band key."""

    session: Session
    digests: tuple[bytes, bytes, bytes | None]
    events: tuple[Event, ...]


@frozen
class _SessionEnd:
    at: datetime
    exit_code: int | None
    events: tuple[Event, ...]
    seen_at: datetime | None
    ending: SessionEnding | None


def _open(cursor: Cursor, seals: Seals, new: _New, seen: Sequence[tuple[str, datetime]], since: datetime) -> None:
    _note_seen(cursor, seen)
    if cursor.execute(_LIVE, (timestamp(since),)).fetchone()[0] >= MOST_LIVE:
        raise LimitExceeded(f"{MOST_LIVE} sessions are live; end one first.", {"retry_after": _RETRY_AFTER_SECONDS})
    if _opened_at(cursor, MOST_A_MINUTE) > new.session.started_at - _MINUTE:
        raise LimitExceeded(
            f"{MOST_A_MINUTE} sessions were opened within a minute; wait.", {"retry_after": _RETRY_AFTER_SECONDS}
        )
    cursor.insert(_WRITTEN.insertion, [(*SESSIONS.row_of(new.session), *new.digests)])
    cursor.execute(_FORGET, (MOST_KEPT, timestamp(since)))
    seals.append(cursor, new.events)


def _end(cursor: Cursor, seals: Seals, session_id: str, ending: _SessionEnd) -> Session:
    if ending.seen_at is not None:
        _note_seen(cursor, [(session_id, ending.seen_at)])
    reason = None if ending.ending is None else ending.ending.value
    cursor.execute(_END, (timestamp(ending.at), ending.exit_code, reason, session_id))
    if cursor.rowcount == 1:
        seals.append(cursor, ending.events)
    session = SESSIONS.find(cursor, "WHERE id = ?", session_id)
    if session is None:
        raise NotFound("There is no such session.")
    return session


def _note_seen(cursor: Cursor, seen: Iterable[tuple[str, datetime]]) -> None:
    """Store the times of last use, unless the stored ones are later."""
    for session_id, moment in seen:
        at = timestamp(moment)
        cursor.execute(_SEEN, (at, session_id, at))


def _opened_at(cursor: Cursor, back: int) -> datetime:
    """Return the opening time of the session C{back} places back, the newest being 1, or C{_DAWN} if there is none."""
    row = cursor.execute(_OPENED, (back - 1,)).fetchone()
    return _DAWN if row is None else from_timestamp(row["started_at"])


def _tally(cursor: Cursor, session_id: str) -> SessionTally:
    """Return the number of runs of a session by outcome, all 0 if it requested none."""
    return SessionTally(*cursor.execute(_TALLY, (session_id,)).fetchone())


def _select(
    cursor: Cursor, live_only: bool, limit: int, before: int | None, without_ended: str | None
) -> list[tuple[int, Session]]:
    """Return pairs of ordinal and session below C{before}, newest first, one more than C{limit} if available."""
    where, values = conditions(
        ("ordinal < ?", before),
        ("CASE WHEN ended_at IS NULL THEN 1 ELSE 0 END = ?", 1 if live_only else None),
        ("(ended_at IS NULL OR agent != ?)", without_ended),
    )
    statement = f"SELECT ordinal, {SESSIONS.selection} FROM sessions {where} ORDER BY ordinal DESC LIMIT ?"
    return [(row["ordinal"], SESSIONS.value_of(row)) for row in cursor.execute(statement, (*values, limit + 1))]


def _note_lost(failure: Failure) -> None:
    failure.trap(StoreUnavailable)
    _log.warn("the times of last use of sessions were not written")
