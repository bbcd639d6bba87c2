"""What is under way: started, never forgotten, waited for or stopped at the end."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure

_log = Logger()


@define(eq=False)
class Tasks:
    """At most one task a name; a failure of one is logged and ends only that one."""

    clock: IReactorTime
    _running: dict[str, Deferred[None]] = field(factory=dict)
    _at_rest: list[Deferred[None]] = field(factory=list)
    _closed: bool = False

    def start(self, name: str, work: Coroutine[Deferred[Any], Any, None]) -> None:
        """Start C{work}, unless one of that name runs already or the daemon stops."""
        if self._closed or name in self._running:
            work.close()
            return
        self._running[name] = task = Deferred.fromCoroutine(work)
        task.addErrback(self._log_failure, name).addBoth(self._ended, name)

    def running(self, name: str) -> bool:
        """Whether a task of that name has not ended."""
        return name in self._running

    def at_rest(self) -> Deferred[None]:
        """Fires when nothing runs; each caller its own."""
        waiter: Deferred[None] = Deferred()
        if self._running:
            self._at_rest.append(waiter)
        else:
            waiter.callback(None)
        return waiter

    async def drain(self, seconds: float) -> None:
        """Start nothing more, let what runs finish within C{seconds}, then stop it and wait until it has stopped."""
        self._closed = True
        waiting = self.at_rest()
        late = self.clock.callLater(seconds, self._stop_all)
        await waiting
        if late.active():
            late.cancel()

    def _stop_all(self) -> None:
        for task in list(self._running.values()):
            task.cancel()

    def _log_failure(self, failure: Failure, name: str) -> None:
        if not failure.check(CancelledError):
            _log.failure("the task {name} failed", failure, name=name)

    def _ended(self, _: object, name: str) -> None:
        self._running.pop(name, None)
        if not self._running:
            waiting, self._at_rest = self._at_rest, []
            for waiter in waiting:
                if not waiter.called:
                    waiter.callback(None)
