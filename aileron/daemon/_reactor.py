"""The epoll reactor of a daemon in the foreground on Linux. It has less overhead and measures its iterations.

This is the only module that uses undocumented names of L{twisted.internet.epollreactor}: C{_poller}, C{_selectables},
C{_doReadOrWrite}, C{_disconnectSelectable}, and of its base C{_started}, C{_justStopped}, C{_newTimedCalls} and
C{_pendingTimedCalls}.
"""

from __future__ import annotations

from select import EPOLLIN

from twisted.internet.epollreactor import EPollReactor
from twisted.internet.main import installReactor
from twisted.logger import Logger

from ._watchdog import TurnClock

_MOST_EVENTS = 64
"""The most events handled in one turn, so that many requests delay neither other work nor due calls."""

_log = Logger()
_logged = _log.failureHandler("in the reactor's loop")


class LeanReactor(EPollReactor):
    """An epoll reactor with less overhead for each event than Twisted's, and which measures its iterations.

    Twisted's reactor sets up a logging context for each event, and computes the due time of the next call twice.
    Together this takes a fifth of the processor time of a relayed request.

    :ivar turns: measures the time between two waits for events.
    :ivar is_told_to_stop: True from the first call of L{stop} on.
    """

    is_told_to_stop = False

    def __init__(self) -> None:
        self.turns = TurnClock()
        super().__init__()  # type: ignore[no-untyped-call]

    def stop(self) -> None:
        """Stop. If the reactor is stopping already, as after a second signal, do nothing."""
        if not self.is_told_to_stop:
            super().stop()
            self.is_told_to_stop = True

    def mainLoop(self) -> None:
        """Run until the reactor is stopped. While no call is due, only handle events."""
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
        """Return the seconds to wait for events, None if no call is scheduled, or 0 if other work is pending."""
        if self._newTimedCalls or self.threadCallQueue or self._justStopped or not self.running:
            return 0
        pending = self._pendingTimedCalls
        return max(0, pending[0].time - self.seconds()) if pending else None

    def doPoll(self, timeout: float | None) -> None:
        """Wait at most C{timeout} seconds for events and handle them. Log a failure and disconnect its transport."""
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
            except BaseException as error:  # noqa: BLE001 - as in Twisted's reactor: logged and disconnected
                _log.failure("reading")
                why = error
            if why:
                self._disconnectSelectable(selectable, why, True)  # type: ignore[no-untyped-call]

    doIteration = doPoll


def install() -> None:
    """Install this reactor as the process's reactor.

    :raises ReactorAlreadyInstalledError: if a reactor is already installed.
    """
    installReactor(LeanReactor())
