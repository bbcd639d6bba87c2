"""Bounds the bytes of requests and answers that the gateway holds, for each session and in total."""

from __future__ import annotations

from weakref import WeakValueDictionary

MOST_BYTES = 64 * 1024 * 1024
"""That all exchanges hold together."""

MOST_SESSION_BYTES = 16 * 1024 * 1024
"""That the exchanges of one session hold."""

RESERVED_BYTES = 128 * 1024
"""Counted for a direction that waits: what a connection's own buffer holds before its sender is told to stop, and
what had been read by then."""


class Account:
    """The bytes that one session's exchanges hold."""

    __slots__ = ("__weakref__", "_budget", "held_bytes")

    def __init__(self, budget: ByteBudget) -> None:
        self._budget = budget
        self.held_bytes = 0

    def change(self, by: int) -> bool:
        """Count bytes that are held from now on, or fewer.

        :return: whether the session and the gateway are within their bounds.
        """
        budget = self._budget
        self.held_bytes += by
        budget.held_bytes += by
        return self.held_bytes <= budget.most_session_bytes and budget.held_bytes <= budget.most_bytes

    def has_room(self, wanted: int) -> bool:
        """Whether so many bytes more are within the bounds."""
        budget = self._budget
        return self.held_bytes + wanted <= budget.most_session_bytes and budget.held_bytes + wanted <= budget.most_bytes


class ByteBudget:
    """The accounts of all sessions; one is kept as long as an exchange uses it.

    :ivar held_bytes: of all of them.
    """

    def __init__(self, most_bytes: int = MOST_BYTES, most_session_bytes: int = MOST_SESSION_BYTES) -> None:
        self.most_bytes, self.most_session_bytes = most_bytes, most_session_bytes
        self.held_bytes = 0
        self._accounts: WeakValueDictionary[str | None, Account] = WeakValueDictionary()

    def account(self, session_id: str | None) -> Account:
        """A session's account; those without a session share one."""
        found = self._accounts.get(session_id)
        if found is None:
            found = self._accounts[session_id] = Account(self)
        return found


class RequestBuffer:
    """What has come of one request, until it cannot be needed again; counted in an account once that is known.

    :ivar replayable: whether all of it is there.
    """

    __slots__ = ("_account", "_counted", "_pieces", "_reserved", "replayable", "size")

    def __init__(self) -> None:
        self._pieces: list[bytes] = []
        self.size = self._reserved = self._counted = 0
        self._account: Account | None = None
        self.replayable = True

    def keep(self, data: bytes) -> bool:
        """Add what came, unless an earlier part is gone.

        :return: whether there is room for more.
        """
        if not self.replayable:
            return True
        self._pieces.append(data)
        self.size += len(data)
        return self._count()

    def open(self, head: bytes, account: Account) -> None:
        """Put the request's head before all that has come, and count it from now on."""
        self._pieces.insert(0, head)
        self.size += len(head)
        self._account = account

    def whole(self) -> bytes:
        """All of it."""
        return b"".join(self._pieces)

    def forget(self) -> None:
        """Keep no more of it.  Twice is safe."""
        self.replayable, self._pieces, self.size = False, [], 0
        self._count()

    def reserve(self, size: int) -> None:
        """Count so many bytes beside it, for what waits elsewhere."""
        self._reserved = size
        self._count()

    def _count(self) -> bool:
        if self._account is None:
            return True
        by, self._counted = self.size + self._reserved - self._counted, self.size + self._reserved
        return not by or self._account.change(by)
