"""Linux's reactor for a daemon that runs in the foreground: epoll's, without a logging context for each event.

The only place where names of L{twisted.internet.epollreactor} are used that it does not document: C{_poller},
C{_selectables} and C{_doReadOrWrite}.
"""

from __future__ import annotations

from twisted.internet.epollreactor import EPollReactor
from twisted.internet.main import installReactor

_MOST_EVENTS = 512


class LeanReactor(EPollReactor):
    """Twisted's own tells the log, for each event, whose it is; a quarter of a relayed request goes into that."""

    def doPoll(self, timeout: float | None) -> None:
        """See L{EPollReactor.doPoll}; what an event fails with is logged below."""
        try:
            events = self._poller.poll(-1 if timeout is None else timeout, _MOST_EVENTS)
        except InterruptedError:
            return
        for descriptor, event in events:
            selectable = self._selectables.get(descriptor)
            if selectable is not None:
                self._doReadOrWrite(selectable, descriptor, event)  # type: ignore[no-untyped-call]

    doIteration = doPoll


def install() -> None:
    """Make it the process's reactor.

    :raises ReactorAlreadyInstalledError: there is one.
    """
    installReactor(LeanReactor())  # type: ignore[no-untyped-call]
