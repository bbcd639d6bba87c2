"""Stores in SQLite which answers of runs the later requests of agents' own tools may claim."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import compact, from_timestamp, timestamp, utc
from aileron.model.runs import RunState
from aileron.model.sessions import Session
from aileron.model.tool_claims import KEPT, MOST_CLAIMS, ToolClaim

from ._connections import Readers, shielded
from ._dialect import Cursor
from ._sessions import SESSIONS
from ._writer import Writer

_CHANGE = "UPDATE tool_claims SET told = ?, given = ? WHERE run_id = ? AND session_id = ?"
_KEEP = """
    INSERT INTO tool_claims (run_id, session_id, form, size, asked_at, told, given)
    SELECT ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ? AND ended_at IS NULL)
    ON CONFLICT (run_id) DO NOTHING
"""
_SETTLED = tuple(each.value for each in RunState if each.settled)
_EXPIRE = """
    DELETE FROM tool_claims WHERE run_id IN (
        SELECT id FROM runs WHERE {settled} AND changed_at < ?
    )
"""
_BOUND = f"""
    DELETE FROM tool_claims WHERE run_id IN (
        SELECT run_id FROM tool_claims WHERE session_id = ? ORDER BY asked_at DESC, run_id DESC
        LIMIT {2**63 - 1} OFFSET ?
    )
"""
_OF_SESSION = """
    SELECT run_id, session_id, form, size, asked_at, told, given FROM tool_claims WHERE session_id = ? ORDER BY run_id
"""
_OF_FORM = """
    SELECT run_id, tool_claims.session_id, form, size, asked_at, told, given
    FROM tool_claims JOIN runs ON runs.id = run_id
    WHERE form = ? AND runs.action = ? AND given = '[]' AND tool_claims.session_id != ? ORDER BY run_id
"""
_TAKE_OVER = "UPDATE tool_claims SET session_id = ?, told = ? WHERE run_id = ?"
_OPEN = """
    SELECT tool_claims.session_id, count(*), CAST(sum(size) AS bigint) FROM tool_claims JOIN runs ON runs.id = run_id
    WHERE NOT ({settled}) GROUP BY tool_claims.session_id
"""


@frozen
class SQLiteToolClaims:
    """Stores C{tool_claims}. A trigger deletes those of a session whose row is deleted."""

    _writer: Writer
    _readers: Readers
    _clock: IReactorTime

    async def keep(self, claim: ToolClaim) -> None:
        """Store a claim, or change its callers. If its session has ended, no new claim is stored.

        Nothing is changed if another session has taken over the claim. Claims that have expired, and the oldest beyond
        L{MOST_CLAIMS}, are deleted.

        :raises StoreUnavailable: if the database cannot be written.
        """
        await shielded(self._writer.write(_keep, _to_row(claim), self._expired_before()))

    async def of_session(self, session_id: str) -> Sequence[ToolClaim]:
        """Return the claims of a session, the oldest first.

        :raises StoreUnavailable: if the database cannot be read.
        """
        return await self._readers.read(_select, session_id)

    async def take_over(self, session: Session, form: str, action: str) -> ToolClaim | None:
        """Make the oldest claim that a session may take over its own, and return it, or None if there is none.

        A session may take over the claims of an ended session that it follows (see L{Session.follows}), if the run is
        of the same action and the request of the same form, and nobody got the answer.

        :raises StoreUnavailable: if the database cannot be written.
        """
        return await shielded(self._writer.write(_take_over, session, form, action, self._expired_before()))

    async def count_open(self) -> dict[str, tuple[int, int]]:
        """Return the number of claims whose run is not settled, and the bytes of their requests, by session.

        :raises StoreUnavailable: if the database cannot be read.
        """
        return await self._readers.read(_count_open)

    def _expired_before(self) -> str:
        return timestamp(utc(self._clock.seconds()) - KEPT)


def _to_row(claim: ToolClaim) -> tuple[object, ...]:
    callers = compact(sorted(claim.told)), compact(sorted(claim.given))
    return (claim.run_id, claim.session_id, claim.form, claim.size, timestamp(claim.asked_at), *callers)


def _keep(cursor: Cursor, row: tuple[object, ...], before: str) -> None:
    _expire(cursor, before)
    cursor.execute(_CHANGE, (*row[-2:], *row[:2]))
    if not cursor.rowcount:
        cursor.execute(_KEEP, (*row, row[1]))
        cursor.execute(_BOUND, (row[1], MOST_CLAIMS))


def _take_over(cursor: Cursor, session: Session, form: str, action: str, before: str) -> ToolClaim | None:
    _expire(cursor, before)
    for row in cursor.execute(_OF_FORM, (form, action, session.id)).fetchall():
        claim = _from_row(*row)
        earlier = SESSIONS.find_by(cursor, "id", claim.session_id)
        if earlier is not None and _may_take_over(session, earlier):
            cursor.execute(_TAKE_OVER, (session.id, compact([]), claim.run_id))
            return evolve(claim, session_id=session.id, told=frozenset())
    return None


def _may_take_over(session: Session, earlier: Session) -> bool:
    # guard of own tools: no live session loses an answer to another one
    #    -> store.test_tool_claims.TakingOverTests.test_live
    if earlier.live:
        return False
    # guard of own tools: no other agent and no other project gets an answer
    #    -> store.test_tool_claims.TakingOverTests.test_others, instead return True
    return session.follows(earlier)


def _expire(cursor: Cursor, before: str) -> None:
    settled, states = cursor.dialect.among("state", _SETTLED)
    cursor.execute(_EXPIRE.format(settled=settled), (states, before))


def _select(cursor: Cursor, session_id: str) -> list[ToolClaim]:
    return [_from_row(*row) for row in cursor.execute(_OF_SESSION, (session_id,))]


def _from_row(run_id: str, session_id: str, form: str, size: int, asked_at: str, *callers: str) -> ToolClaim:
    told, given = (_read_callers(each) for each in callers)
    return ToolClaim(run_id, session_id, form, size, from_timestamp(asked_at), told, given)


def _read_callers(text: str) -> frozenset[str]:
    found: Iterable[str] = json.loads(text)
    return frozenset(found)


def _count_open(cursor: Cursor) -> dict[str, tuple[int, int]]:
    settled, states = cursor.dialect.among("runs.state", _SETTLED)
    return {row[0]: (row[1], row[2]) for row in cursor.execute(_OPEN.format(settled=settled), (states,))}
