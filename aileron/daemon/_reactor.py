"""Linux's reactor for a daemon that runs in the foreground: epoll's, with less around each event.

The only place where names of L{twisted.internet.epollreactor} are used that it does not document: C{_poller},
C{_selectables}, C{_doReadOrWrite}, C{_disconnectSelectable}, and of its base C{_started}, C{_justStopped},
C{_newTimedCalls} and C{_pendingTimedCalls}.
"""

from __future__ import annotations

from select import EPOLLIN

from twisted.internet.epollreactor import EPollReactor
from twisted.internet.main import installReactor
from twisted.logger import Logger

from ._watchdog import TurnClock

_MOST_EVENTS = 64
"""Of one turn: that many requests do not keep waiting who has something else to do, nor what is due."""

_log = Logger()
_logged = _log.failureHandler("in the reactor's loop")


class LeanReactor(EPollReactor):
    """Twisted's own tells the log, for each event, whose it is, and looks twice what is due around a lone one.

    The first is a quarter of a relayed request, the second a third of a relayed event.

    :ivar turns: measures what passes between two looks for events.
    """

    def __init__(self) -> None:
        self.turns = TurnClock()
        super().__init__()  # type: ignore[no-untyped-call]

    def mainLoop(self) -> None:
        """See L{EPollReactor.mainLoop}; events are followed until a call is due or the reactor was stopped."""
        while self._started:
            with _logged:
                self.runUntilCurrent()
                timeout = self.timeout() if self.running else 0
                self.doPoll(timeout)
                while timeout != 0:
                    timeout = self._patience()
                    if timeout != 0:
                        self.doPoll(timeout)

    def _patience(self) -> float | None:
        """For how long only events matter, in seconds; L{None}: without limit; 0: something else is to be done."""
        if self._newTimedCalls or self.threadCallQueue or self._justStopped or not self.running:
            return 0
        pending = self._pendingTimedCalls
        return max(0, pending[0].time - self.seconds()) if pending else None

    def doPoll(self, timeout: float | None) -> None:
        """See L{EPollReactor.doPoll}; what an event fails with is logged."""
        self.turns.end()
        try:
            events = self._poller.poll(-1 if timeout is None else timeout, _MOST_EVENTS)
        except InterruptedError:
            return
        finally:
            self.turns.begin()
        selectables = self._selectables
        for descriptor, event in events:
            selectable = selectables.get(descriptor)
            if selectable is None:
                continue
            if event != EPOLLIN:
                self._doReadOrWrite(selectable, descriptor, event)  # type: ignore[no-untyped-call]
                continue
            try:
                why = selectable.doRead()
            except BaseException as error:  # noqa: BLE001 - as Twisted's own: whoever fails is logged and dropped
                _log.failure("reading")
                why = error
            if why:
                self._disconnectSelectable(selectable, why, True)  # type: ignore[no-untyped-call]

    doIteration = doPoll


def install() -> None:
    """Make it the process's reactor.

    :raises ReactorAlreadyInstalledError: there is one.
    """
    installReactor(LeanReactor())
