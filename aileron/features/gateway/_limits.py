"""Bounds the bytes that exchanges hold: for each session and in total.

An exchange is counted while bytes of it wait, and for a little more while its request has not come whole.  Where a
bound is passed an exchange gives way, and nobody is refused: first one of the session that is past its own bound, then
one of the session that holds most.  So a session that holds less than its share of all never gives way to another.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Protocol
from weakref import WeakValueDictionary

MOST_BYTES = 64 * 1024 * 1024
"""That all exchanges hold together."""

MOST_SESSION_BYTES = 16 * 1024 * 1024
"""That the exchanges of one session hold."""

MOST_WAITING_BYTES = 256 * 1024
"""How much of a request is taken from its client before there is a connection to send it on."""

RESERVED_BYTES = 128 * 1024
"""Counted for a direction that waits: what a connection's own buffer holds before its sender is told to stop, and
what had been read by then."""

UPLOAD_BYTES = 32 * 1024
"""Counted for a request that has not come whole, although none of it waits: so no more than half of the places that a
daemon has for relayed requests can be taken by bodies that never come."""


class Holder(Protocol):
    """An exchange, as far as it is counted."""

    def give_way(self) -> None:
        """Hold less from now on, and if nothing else helps by ending."""


class Account:
    """The bytes that one session's exchanges hold.

    :ivar held_bytes: of all of them.
    """

    __slots__ = ("__weakref__", "_budget", "_holders", "held_bytes")

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self._holders: dict[Holder, int] = {}  # those first that have made no progress for longest
        self.held_bytes = 0

    def count(self, holder: Holder, size: int) -> None:
        """Count what an exchange holds now that it has made progress.  If that is too much, one or more give way."""
        by = size - self._holders.pop(holder, 0)
        if size:
            self._holders[holder] = size
        if by:
            self.held_bytes += by
            self._budget.held_bytes += by
            if by > 0:
                self._budget.enforce(self)

    def give_way(self) -> None:
        """Have the exchange give way that has made no progress for longest."""
        next(iter(self._holders)).give_way()


class ByteBudget:
    """The accounts of all sessions; one is kept as long as an exchange uses it.

    :ivar held_bytes: of all of them.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_session_bytes: int = MOST_SESSION_BYTES) -> None:
        self.most_bytes, self.most_session_bytes = most_bytes, most_session_bytes
        self.held_bytes = 0
        self._accounts: WeakValueDictionary[str | None, Account] = WeakValueDictionary()

    def account(self, session_id: str | None) -> Account:
        """Return a session's account; those without a session share one."""
        found = self._accounts.get(session_id)
        if found is None:
            found = self._accounts[session_id] = Account(self)
        return found

    def enforce(self, account: Account) -> None:
        """Have exchanges give way until C{account}, and all together, are within their bounds."""
        while account.held_bytes > self.most_session_bytes:
            account.give_way()
        while self.held_bytes > self.most_bytes:
            max(self._accounts.values(), key=attrgetter("held_bytes")).give_way()
