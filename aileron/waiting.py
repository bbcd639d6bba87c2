"""Something that will happen, and many who wait for it, each with a Deferred of its own."""

from __future__ import annotations

from twisted.internet.defer import Deferred, succeed


class Waiting:
    """Those who wait.  One that is cancelled is forgotten."""

    def __init__(self) -> None:
        self._all: list[Deferred[None]] = []

    def wait(self, *, over: bool) -> Deferred[None]:
        """A Deferred for the next L{fire}.

        :param over: whether there is nothing to wait for any more.
        """
        if over:
            return succeed(None)
        waiter: Deferred[None] = Deferred(self._forget)
        self._all.append(waiter)
        return waiter

    def fire(self) -> None:
        """It happens: everyone is told, in the order of their coming; who comes meanwhile waits for the next time."""
        told, self._all = self._all, []
        for waiter in told:
            if not waiter.called:  # who was told before may have cancelled it
                waiter.callback(None)

    def _forget(self, waiter: Deferred[None]) -> None:
        if waiter in self._all:
            self._all.remove(waiter)
