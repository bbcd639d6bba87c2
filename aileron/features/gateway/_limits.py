"""Limits the bytes that exchanges hold, for each session and in total.

The buffered bytes of an exchange count, plus a small amount until its request is complete. If a limit is exceeded, an
exchange is ended instead of refusing new ones: first of the session that exceeds its own limit, then of the session
that holds most. So a session that holds less than its share never loses an exchange to another session.
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
"""The most bytes of a request that are read from its client before the upstream is connected."""

RESERVED_BYTES = 128 * 1024
"""The bytes counted for a paused direction: the connection's own buffer, and the data read before the sender paused."""

UPLOAD_BYTES = 32 * 1024
"""The bytes counted for an incomplete request even if none of it is buffered. So requests whose bodies never arrive
occupy at most half of the daemon's places for relayed requests."""


class Holder(Protocol):
    """An exchange whose bytes in memory are counted, and which can be asked to free them."""

    def free_memory(self) -> None:
        """Free the exchange's memory: discard the stored request, or end the exchange."""


class Account:
    """The count of the bytes that one session's exchanges hold.

    :ivar held_bytes: the sum over all exchanges of the session.
    """

    __slots__ = ("__weakref__", "_budget", "_holders", "held_bytes")

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._holders: dict[Holder, int] = {}  # ordered by last progress, the oldest first
        self.held_bytes = 0

    def count(self, holder: Holder, size: int) -> None:
        """Record that an exchange made progress and now holds C{size} bytes.

        If this exceeds a limit, make exchanges free memory, the one that made no progress for the longest time first.
        """
        by = size - self._holders.pop(holder, 0)
        if size:
            self._holders[holder] = size
        if by:
            self.held_bytes += by
            self._budget.held_bytes += by
            if by > 0:
                self._budget.enforce(self)

    def free_memory(self) -> None:
        """Free memory of the exchange that has made no progress for the longest time."""
        next(iter(self._holders)).free_memory()


class ByteBudget:
    """The limit on held bytes for each session and in total, with an L{Account} for each session.

    An account exists as long as an exchange uses it.

    :ivar held_bytes: the sum over all accounts.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_session_bytes: int = MOST_SESSION_BYTES) -> None:
        self.most_bytes, self.most_session_bytes = most_bytes, most_session_bytes
        self.held_bytes = 0
        self._accounts: WeakValueDictionary[str | None, Account] = WeakValueDictionary()

    def account(self, session_id: str | None) -> Account:
        """Return the account that counts a session's bytes in memory. Requests without a session share one account."""
        found = self._accounts.get(session_id)
        if found is None:
            found = self._accounts[session_id] = Account(self)
        return found

    def enforce(self, account: Account) -> None:
        """Make exchanges free memory until C{account} and the total are within their limits."""
        while account.held_bytes > self.most_session_bytes:
            account.free_memory()
        while self.held_bytes > self.most_bytes:
            max(self._accounts.values(), key=attrgetter("held_bytes")).free_memory()
