"""Limits the memory for requests and answers of tools that are being received, held or sent."""

from __future__ import annotations

from attrs import define, field

MOST_HELD_OF_SESSION, MOST_HELD = 32 * 1024 * 1024, 128 * 1024 * 1024
"""The most bytes of requests and answers in memory, of one session's connections and of all."""

STREAM_BYTES = 512 * 1024
"""The bytes that a long answer takes while it is passed on: what the parts of both its connections hold at most."""


@define(eq=False)
class HeldBytes:
    """Counts the bytes that the connections of all sessions hold. The default limits are those for memory.

    :param most_of_session: the maximum number of bytes of one session.
    :param most: the maximum number of bytes of all sessions together.
    """

    _most_of_session: int = MOST_HELD_OF_SESSION
    _most: int = MOST_HELD
    _of_sessions: dict[str, int] = field(factory=dict, init=False)

    def change(self, session_id: str, before: int, now: int) -> bool:
        """Count that a connection of a session holds C{now} bytes in place of C{before}.

        Return False, and count nothing, if it would hold more than before, and more than the limits allow.
        """
        own = self._of_sessions.get(session_id, 0) - before + now
        total = sum(self._of_sessions.values()) - before + now
        # guard of own tools: what connections hold does not fill the memory
        #    -> features.own_tools.test_budget.HeldBytesTests.test_limits
        # guard against attack: unfinished requests do not fill the memory -> test_own_tools_way.FloodTests.test_memory
        if now > before and (own > self._most_of_session or total > self._most):
            return False
        if own:
            self._of_sessions[session_id] = own
        else:
            self._of_sessions.pop(session_id, None)
        return True
