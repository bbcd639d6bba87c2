"""Stores in the database which answers of runs the later requests of agents' own tools may claim."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence

from attrs import evolve, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.base.json import compact, from_timestamp, timestamp, utc
from aileron.model.audit import Event
from aileron.model.runs import RunState
from aileron.model.sessions import Session
from aileron.model.tool_claims import KEPT, MOST_CLAIMS, ToolClaim

from ._audit import Seals
from ._connections import Readers, shielded
from ._dialect import Cursor
from ._sessions import SESSIONS
from ._writer import Writer

_CHANGE = "UPDATE tool_claims SET told = ?, given = ? WHERE run_id = ? AND session_id = ?"
_INSERT = """
    INSERT INTO tool_claims (run_id, session_id, form, size, asked_at, told, given)
    SELECT ?, ?, ?, ?, ?, ?, ? WHERE EXISTS (SELECT 1 FROM sessions WHERE id = ?)
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
class SQLToolClaims:
    """Stores C{tool_claims}. A trigger deletes those of a session whose row is deleted."""

    _writer: Writer
    _readers: Readers
    _clock: IReactorTime
    _seals: Seals

    async def note_callers(self, claim: ToolClaim | None, *events: Event) -> None:
        """Store which callers know that a claim's run waits, and which got its answer, together with events.

        Only the events are stored if there is no claim, or another session has taken it over.

        :raises StoreUnavailable: if the database cannot be written.
        """
        await shielded(self._writer.write(_note_callers, self._seals, claim, events))

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


def insert_claim(cursor: Cursor, claim: ToolClaim) -> None:
    """Store the claim of a new run, in the run's transaction.

    Claims that have expired, and the oldest of the session beyond L{MOST_CLAIMS}, are deleted. Nothing is stored if the
    session has no row, since the claim could never be used.
    """
    _expire(cursor, timestamp(claim.asked_at - KEPT))
    row = (claim.run_id, claim.session_id, claim.form, claim.size, timestamp(claim.asked_at), *_write_callers(claim))
    cursor.execute(_INSERT, (*row, claim.session_id))
    cursor.execute(_BOUND, (claim.session_id, MOST_CLAIMS))


def _write_callers(claim: ToolClaim) -> tuple[str, str]:
    return compact(sorted(claim.told)), compact(sorted(claim.given))


def _note_callers(cursor: Cursor, seals: Seals, claim: ToolClaim | None, events: Sequence[Event]) -> None:
    if claim is not None:
        cursor.execute(_CHANGE, (*_write_callers(claim), claim.run_id, claim.session_id))
    # guard of own tools: an answer is recorded in the transaction that notes it as given
    #    -> store.test_tool_claims.ToolClaimsTests.test_event, instead events = ()
    seals.append(cursor, events)


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
    # guard against attack: no live session's answer is taken -> test_own_tools_way.WayTests.test_parked
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
