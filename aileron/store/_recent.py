"""Sessions that were asked for of late, by the digest of their token or gateway key."""

from __future__ import annotations

from collections import OrderedDict

from attrs import define, field

from aileron.values import Session


@define(eq=False)
class Recent:
    """As many as were used last; one that ended is never remembered as live.

    :param size: most that are remembered.
    """

    _size: int = 256
    _sessions: OrderedDict[bytes, Session] = field(factory=OrderedDict, init=False)
    _endings: int = field(default=0, init=False)

    def get(self, digest: bytes) -> Session | None:
        """What is remembered, or L{None}."""
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
