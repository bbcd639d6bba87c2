"""The parts of a running process, and their shutdown in reverse order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger
from twisted.python.failure import Failure

_log = Logger()


@define(eq=False)
class Life:
    """The shutdown functions of a process's parts, called in reverse order of registration.

    :param expected: the errors of periodic work that are logged in one line, without a traceback.
    """

    endings: list[Callable[[], Any]] = field(factory=list)
    expected: tuple[type[Exception], ...] = ()

    def at_end(self, ending: Callable[[], Any]) -> None:
        """Register C{ending} to be called at the shutdown of the process, before the functions registered earlier.

        It may return a Deferred, which is waited for.
        """
        self.endings.append(ending)

    def repeat(
        self,
        clock: IReactorTime,
        seconds: float,
        work: Callable[[], Any],
        *,
        now: bool = False,
        to_its_end: bool = False,
    ) -> None:
        """Call C{work} periodically until the end.

        Failures are logged, and the next call waits until the previous one is done.

        :param now: whether to make the first call at once.
        :param to_its_end: whether L{end} waits for a call in progress.
        """

        def call() -> Deferred[Any]:
            return maybeDeferred(work).addErrback(self._log_failed, work)

        looping = LoopingCall(call)
        looping.clock = clock
        ended = looping.start(seconds, now=now)

        def stop() -> Deferred[Any] | None:
            looping.stop()
            return ended if to_its_end else None

        self.at_end(stop)

    def _log_failed(self, failure: Failure, work: Callable[[], Any]) -> None:
        if failure.check(*self.expected):
            _log.error("{what} failed: {why}", what=_name(work), why=failure.getErrorMessage())
        else:
            _log.failure("{what} failed", failure, what=_name(work))

    async def end(self) -> None:
        """Shut down: call all registered functions, the last one first.

        Failures are logged and do not stop the others.
        """
        while self.endings:
            ending = self.endings.pop()
            try:
                answer = ending()
                if answer is not None:
                    await answer
            except Exception:  # noqa: BLE001 - the shutdown rim: each part gets its chance
                _log.failure("shutting down {what} failed", what=_name(ending))


def _name(work: Callable[[], Any]) -> str:
    """Return the name of a function or method, without the text of its object, which may contain all others."""
    return str(getattr(work, "__qualname__", type(work).__qualname__))
