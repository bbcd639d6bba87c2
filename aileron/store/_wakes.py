"""Stores for several daemons which outcomes agents know, so that each is given out once, at one daemon."""

from __future__ import annotations

from attrs import frozen

from aileron.model.audit import Event
from aileron.model.wakes import WakeClaim, WakeHow, WakeWaiter

from ._audit import Seals
from ._connections import shielded
from ._dialect import Cursor
from ._writer import Writer

_BEGIN = """
    INSERT INTO wake_waiters (session_id, number, conversation) VALUES (?, 1, ?)
    ON CONFLICT (session_id) DO UPDATE SET number = wake_waiters.number + 1,
        conversation = CASE WHEN excluded.conversation = '' THEN wake_waiters.conversation
                            ELSE excluded.conversation END
"""
_NAME = """
    INSERT INTO wake_waiters (session_id, number, conversation) VALUES (?, 0, ?)
    ON CONFLICT (session_id) DO UPDATE SET conversation = excluded.conversation
"""
_WAITER = "SELECT number, conversation FROM wake_waiters WHERE session_id = ?"
_RESUMES = "SELECT count(*) FROM wakes WHERE session_id = ? AND how = 'resumed'"
_TELL = "INSERT INTO wakes (session_id, run_id, how) VALUES (?, ?, ?) ON CONFLICT (session_id, run_id) DO NOTHING"


@frozen
class SQLWakes:
    """Stores C{wakes} and C{wake_waiters}. Every method raises L{StoreUnavailable} if nothing could be stored."""

    _writer: Writer
    _seals: Seals

    async def begin(self, session_id: str, conversation: str) -> WakeWaiter:
        """Note a request that waits for an outcome, in the place of the session's earlier ones, and return it.

        :param conversation: the agent's own ID of its conversation; empty to keep the one known.
        """
        return await shielded(self._writer.write(_begin, session_id, conversation))

    async def name_conversation(self, session_id: str, conversation: str) -> None:
        """Store the agent's own ID of its conversation."""
        await shielded(self._writer.write(_name, session_id, conversation))

    async def tell(self, session_id: str, run_id: str) -> None:
        """Note that the agent has fetched the outcome of a run. Idempotent."""
        await shielded(self._writer.write(_tell, session_id, run_id))

    async def claim(self, event: Event, how: WakeHow, number: int, most_resumes: int) -> WakeClaim:
        """Give the outcome of a run to the request with this number, and record the event, in one transaction.

        :param event: the event that records it, with the run and the session.
        :param most_resumes: how often an agent may be resumed in one session.
        :return: what became of it. If it is not given, nothing is stored.
        """
        return await shielded(self._writer.write(_claim, self._seals, event, how, number, most_resumes))


def _begin(cursor: Cursor, session_id: str, conversation: str) -> WakeWaiter:
    cursor.execute(_BEGIN, (session_id, conversation))
    number, known = cursor.execute(_WAITER, (session_id,)).fetchone()
    return WakeWaiter(number, known, _count_resumes(cursor, session_id))


def _name(cursor: Cursor, session_id: str, conversation: str) -> None:
    cursor.execute(_NAME, (session_id, conversation))


def _tell(cursor: Cursor, session_id: str, run_id: str) -> None:
    cursor.execute(_TELL, (session_id, run_id, WakeHow.FETCHED.value))


def _claim(cursor: Cursor, seals: Seals, event: Event, how: WakeHow, number: int, most_resumes: int) -> WakeClaim:
    session_id = event.session_id or ""
    waiter = cursor.execute(_WAITER, (session_id,)).fetchone()
    # guard of several daemons: of two requests at two daemons the later one gets the outcome
    #    -> store.test_wakes.WakeTests.test_later
    if waiter is None or waiter[0] != number:
        return WakeClaim.SUPERSEDED
    # guard of several daemons: an agent is resumed only so often in a session, by all daemons together
    #    -> store.test_wakes.WakeTests.test_resumes
    if how is WakeHow.RESUMED and _count_resumes(cursor, session_id) >= most_resumes:
        return WakeClaim.NO_MORE
    # guard of several daemons: an outcome is given out once, by one of several daemons
    #    -> store.test_wakes.WakeTests.test_once
    if cursor.execute(_TELL, (session_id, event.run_id, how.value)).rowcount != 1:
        return WakeClaim.TOLD
    seals.append(cursor, [event])
    return WakeClaim.GIVEN


def _count_resumes(cursor: Cursor, session_id: str) -> int:
    return int(cursor.execute(_RESUMES, (session_id,)).fetchone()[0])
