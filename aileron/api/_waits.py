"""Limits how many requests of one agent's session may wait for something at a time."""

from __future__ import annotations

from collections import deque
from collections.abc import Coroutine
from typing import Any, TypeVar

from twisted.internet.defer import CancelledError, Deferred

from aileron.errors import LimitExceeded, Unauthorized

T = TypeVar("T")

MOST_WAITS = 64
"""Of one session.  An agent that waits for more than that waits for nothing in particular."""

RETRY_AFTER_SECONDS = 5

_REMEMBERED = 256
"""So many sessions that ended last are remembered: more than can end while a request is on its way to its wait."""


class Waits:
    """The long polls of all sessions.

    :param most: of each session.
    """

    def __init__(self, most: int = MOST_WAITS) -> None:
        self._most = most
        self._waiting: dict[str, set[Deferred[Any]]] = {}
        self._ended: deque[str] = deque(maxlen=_REMEMBERED)

    def allows(self, session_id: str | None) -> bool:
        """Whether one more request may wait.

        :param session_id: the agent's; L{None}: it is the operator's, whose are not counted.
        """
        return session_id is None or len(self._waiting.get(session_id, ())) < self._most

    async def wait(self, session_id: str | None, waiting: Coroutine[Any, Any, T]) -> T:
        """What C{waiting} brings.

        :param session_id: as of L{allows}.
        :raises LimitExceeded: the session has too many already; C{waiting} was not begun.
        :raises Unauthorized: the session has ended meanwhile, so that nobody may learn what it brings.
        """
        if session_id is None:
            return await waiting
        if session_id in self._ended:
            waiting.close()
            raise _ended()
        if not self.allows(session_id):
            waiting.close()
            raise LimitExceeded(
                f"This session has {self._most} requests that wait already. Ask again when one of them is answered, "
                "or ask without a wait.",
                {"retry_after": RETRY_AFTER_SECONDS},
            )
        return await self._counted(session_id, Deferred.fromCoroutine(waiting))

    def end(self, session_id: str) -> None:
        """The session has ended, and so does whatever of it waits or is on its way to."""
        self._ended.append(session_id)
        for waiting in self._waiting.pop(session_id, ()):
            waiting.cancel()

    async def _counted(self, session_id: str, waiting: Deferred[T]) -> T:
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
