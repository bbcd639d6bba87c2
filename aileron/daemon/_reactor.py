"""Linux's reactor for a daemon that runs in the foreground: epoll's, with less around each event.

The only place where names of L{twisted.internet.epollreactor} are used that it does not document: C{_poller},
C{_selectables}, C{_doReadOrWrite}, C{_disconnectSelectable}, and of its base C{_started}, C{_justStopped},
C{_newTimedCalls} and C{_pendingTimedCalls}.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from select import EPOLLIN
from threading import get_ident

from twisted.internet.epollreactor import EPollReactor
from twisted.internet.main import installReactor
from twisted.logger import Logger

_MOST_EVENTS = 512
_SET_SECONDS = 1.0  # a clock that differs by less goes a little faster or slower, as clocks do

_log = Logger()
_logged = _log.failureHandler("in the reactor's loop")


class LeanReactor(EPollReactor):
    """Twisted's own tells the log, for each event, whose it is, and looks twice what is due around a lone one.

    The first is a quarter of a relayed request, the second a third of a relayed event.

    Twisted's own waits for a time of the wall clock.  Here whatever is due in so many seconds is due then, also where
    that clock is set back meanwhile, and right again.  Set forward it finds due what would be by then.

    :param monotonic: seconds by a clock that nobody sets.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic, self._owner = monotonic, get_ident()
        self._ahead, self._back = super().seconds() - monotonic(), 0.0
        super().__init__()  # type: ignore[no-untyped-call]

    def seconds(self) -> float:
        """See L{IReactorTime.seconds}; by whom it is asked first, it finds that the clock was set."""
        now = super().seconds()
        ahead = now - self._monotonic()
        if abs(self._ahead - ahead) > _SET_SECONDS and get_ident() == self._owner:
            self._follow(ahead)
        return now

    def _follow(self, ahead: float) -> None:
        """Set back what waits together with the clock, and forward no further than it was set back before."""
        shift = max(self._ahead - ahead, -self._back)
        self._ahead, self._back = ahead, self._back + shift
        for call in (*self._pendingTimedCalls, *self._newTimedCalls):
            call.time -= shift

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
        try:
            events = self._poller.poll(-1 if timeout is None else timeout, _MOST_EVENTS)
        except InterruptedError:
            return
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
