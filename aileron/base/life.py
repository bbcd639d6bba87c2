"""One life of a process: what was started, and how each part is taken down, in the opposite order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred, maybeDeferred
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import LoopingCall
from twisted.logger import Logger

_log = Logger()


@define(eq=False)
class Life:
    """The parts that one life has built, so that its end can take them down in the opposite order."""

    endings: list[Callable[[], Any]] = field(factory=list)

    def at_end(self, ending: Callable[[], Any]) -> None:
        """Call C{ending}, which may answer later, before whatever was registered earlier."""
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
        """Call C{work} again and again, whatever one time may fail with; the next waits until it is done.

        :param now: whether at once, too.
        :param to_its_end: whether the end waits for what is under way then.
        """

        def call() -> Deferred[Any]:
            return maybeDeferred(work).addErrback(lambda why: _log.failure("{what} failed", why, what=_name(work)))

        looping = LoopingCall(call)
        looping.clock = clock
        ended = looping.start(seconds, now=now)

        def stop() -> Deferred[Any] | None:
            looping.stop()
            return ended if to_its_end else None

        self.at_end(stop)

    async def end(self) -> None:
        """Take everything down; what fails is logged and does not keep the rest."""
        while self.endings:
            ending = self.endings.pop()
            try:
                answer = ending()
                if answer is not None:
                    await answer
            except Exception:  # noqa: BLE001 - the shutdown rim: each part gets its chance
                _log.failure("taking down {what}", what=_name(ending))


def _name(work: Callable[[], Any]) -> str:
    return getattr(work, "__qualname__", repr(work))
