"""The service of the daemon: it starts completely or not at all, and stops its parts in the opposite order."""

from __future__ import annotations

import sys
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from twisted.application.service import IService, Service
from twisted.internet.defer import CancelledError, Deferred
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.base.life import Life
from aileron.model.errors import StoreUnavailable

_log = Logger()


@implementer(IService)
class AileronService(Service):
    """The service of the daemon, from its start to its stop.

    :param start: a function that builds every part and registers with the L{Life} how each is stopped.
    :ivar failed: the failure of the start, or None.
    """

    name: str | None = "aileron"

    def __init__(self, reactor: Any, start: Callable[[Life], Deferred[None]]) -> None:
        self.failed: Failure | None = None
        self._reactor = reactor
        self._start = start
        self._life = Life(expected=(StoreUnavailable,))
        self._starting: Deferred[None] | None = None

    def startService(self) -> None:
        """Start the parts. A failure is logged and stored in C{failed}, and stops the reactor."""
        super().startService()  # type: ignore[no-untyped-call]
        self._starting = self._start(self._life)
        self._starting.addErrback(self._give_up)

    def stopService(self) -> Deferred[None]:
        """Stop accepting calls, wait for running effects and close every part. The result fires when all is closed."""
        super().stopService()  # type: ignore[no-untyped-call]
        if self._starting is not None:
            self._starting.cancel()
        return Deferred.fromCoroutine(self._life.end())

    def _give_up(self, failure: Failure) -> None:
        if failure.check(CancelledError):
            return  # it was stopped during the start
        self.failed = failure
        # twistd starts services before the reactor: a reactor that is not running yet is stopped once it runs
        self._reactor.callWhenRunning(self._stop)
        _log.failure("aileron cannot start", failure)
        with suppress(OSError):  # standard error may be a file on a full disk
            sys.stderr.write(f"aileron: cannot start: {failure.getErrorMessage()}\n")

    def _stop(self) -> None:
        if self._reactor.running:
            self._reactor.stop()
