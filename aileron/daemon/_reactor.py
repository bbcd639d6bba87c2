"""Linux's reactor for a daemon that runs in the foreground: epoll's, which measures what passes between two looks.

The only place where a name of L{twisted.internet.epollreactor} is used that it does not document: C{_poller}.
"""

from __future__ import annotations

from typing import Any

from twisted.internet.epollreactor import EPollReactor
from twisted.internet.main import installReactor

from ._watchdog import TurnClock


class MeasuredPoller:
    """Looks for events as another does, and tells a clock when a turn of the reactor ends and begins."""

    def __init__(self, poller: Any, turns: TurnClock) -> None:
        self.register, self.modify, self.unregister = poller.register, poller.modify, poller.unregister
        self._poll, self._turns = poller.poll, turns

    def poll(self, timeout: float, most: int) -> list[tuple[int, int]]:
        """Wait for events; a turn lies between two calls of this."""
        self._turns.end()
        try:
            events: list[tuple[int, int]] = self._poll(timeout, most)
            return events
        finally:
            self._turns.begin()


class MeasuredReactor(EPollReactor):
    """Twisted's own reactor, whose turns are measured.

    :ivar turns: measures them.
    """

    def __init__(self) -> None:
        self.turns = TurnClock()
        super().__init__()  # type: ignore[no-untyped-call]
        self._poller = MeasuredPoller(self._poller, self.turns)


def install() -> None:
    """Make it the process's reactor.

    :raises ReactorAlreadyInstalledError: there is one.
    """
    installReactor(MeasuredReactor())
