"""Sends the reads of tools, a few of each session at once."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field
from twisted.internet.defer import DeferredSemaphore

from aileron.base.json import JSON
from aileron.model.connectors import Outcome
from aileron.model.sessions import Session
from aileron.model.streams import StreamedAnswer
from aileron.runner import ToolReads

MOST_READS_AT_ONCE = 4
"""The most reads of one session that wait for their answer at once. Further ones are sent later, so that other sessions
get their turn. Long answers that are passed on do not count."""


@define(eq=False)
class SessionReads:
    """Sends the read requests of all sessions' tools, a few of each session at once."""

    _reads: ToolReads
    _turns: dict[str, DeferredSemaphore] = field(factory=dict, init=False)

    def check(self, session: Session, action_name: str) -> None:
        """Check that a session's tools may use an action.

        :raises NotFound, Conflict: if the action is not offered, or disabled.
        :raises Forbidden: if the session may not use it.
        """
        self._reads.find(session, action_name)

    async def read(self, session: Session, action_name: str, inputs: Mapping[str, JSON]) -> Outcome | StreamedAnswer:
        """Send a read request as soon as the session has few others in progress: see L{ToolReads.read}."""
        # guard of own tools: the reads of one session leave room for those of others
        #    -> features.own_tools.test_reads.SessionReadsTests.test_turns,
        #    instead turns = DeferredSemaphore(MOST_READS_AT_ONCE)
        turns = self._turns.setdefault(session.id, DeferredSemaphore(MOST_READS_AT_ONCE))
        async with turns:
            return await self._reads.read(session, action_name, inputs)

    def session_ended(self, session_id: str) -> None:
        """Delete what is stored in memory about a session that has ended. Idempotent."""
        self._turns.pop(session_id, None)
