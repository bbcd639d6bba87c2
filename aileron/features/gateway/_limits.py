"""Bounds the bytes that exchanges hold: for each session and in total.

An exchange counts while bytes of it are buffered, and a little more until its request is complete. If a bound is
exceeded, an exchange is ended instead of refusing new ones: first of the session that exceeds its own bound, then of
the session that holds most. So a session that holds less than its share never loses an exchange to another session.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Protocol
from weakref import WeakValueDictionary

MOST_BYTES = 64 * 1024 * 1024
"""The limit for all exchanges together."""

MOST_SESSION_BYTES = 16 * 1024 * 1024
"""The limit for the exchanges of one session."""

MOST_WAITING_BYTES = 256 * 1024
"""How much of a request is read from its client before the upstream is connected."""

RESERVED_BYTES = 128 * 1024
"""Counted for a direction that waits: what a connection's own buffer holds before its sender is told to stop, and
what had been read by then."""

UPLOAD_BYTES = 32 * 1024
"""Counted for a request that has not come whole, although none of it waits: so no more than half of the places that a
daemon has for relayed requests can be taken by bodies that never come."""


class Holder(Protocol):
    """An exchange whose buffered bytes are counted."""

    def give_way(self) -> None:
        """Free memory: release the stored request, or end the exchange."""


class Account:
    """The bytes that one session's exchanges hold.

    :ivar held_bytes: the sum over all of them.
    """

    __slots__ = ("__weakref__", "_budget", "_holders", "held_bytes")

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._holders: dict[Holder, int] = {}  # ordered by last progress, the oldest first
        self.held_bytes = 0

    def count(self, holder: Holder, size: int) -> None:
        """Set the bytes that an exchange holds after progress. If a bound is exceeded, make exchanges free memory."""
        by = size - self._holders.pop(holder, 0)
        if size:
            self._holders[holder] = size
        if by:
            self.held_bytes += by
            self._budget.held_bytes += by
            if by > 0:
                self._budget.enforce(self)

    def give_way(self) -> None:
        """Make the exchange free memory that has made no progress for the longest time."""
        next(iter(self._holders)).give_way()


class ByteBudget:
    """The accounts of all sessions. An account exists as long as an exchange uses it.

    :ivar held_bytes: the sum over all of them.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_session_bytes: int = MOST_SESSION_BYTES) -> None:
        self.most_bytes, self.most_session_bytes = most_bytes, most_session_bytes
        self.held_bytes = 0
        self._accounts: WeakValueDictionary[str | None, Account] = WeakValueDictionary()

    def account(self, session_id: str | None) -> Account:
        """Return a session's account. Requests without a session share one account."""
        found = self._accounts.get(session_id)
        if found is None:
            found = self._accounts[session_id] = Account(self)
        return found

    def enforce(self, account: Account) -> None:
        """Make exchanges free memory until C{account} and the total are within their bounds."""
        while account.held_bytes > self.most_session_bytes:
            account.give_way()
        while self.held_bytes > self.most_bytes:
            max(self._accounts.values(), key=attrgetter("held_bytes")).give_way()
