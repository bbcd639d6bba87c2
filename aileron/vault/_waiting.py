"""Something that happens once, and many who wait for it, each with a Deferred of its own."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed


class Waiting:
    """Those who wait.  One that is cancelled is forgotten."""

    def __init__(self) -> None:
        self._all: list[Deferred[None]] = []

    def wait(self, *, over: bool) -> Deferred[None]:
        """A Deferred for L{fire}.

        :param over: whether it happened already.
        """
        if over:
            return succeed(None)
        waiter: Deferred[None] = Deferred(self._all.remove)
        self._all.append(waiter)
        return waiter

    def fire(self) -> None:
        """It happens: everyone is told, in the order of their coming."""
        while self._all:  # A callback may cancel one that still waits.
            self._all.pop(0).callback(None)
