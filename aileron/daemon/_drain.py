"""The stop of one daemon among several: it leaves new work to the others, and finishes what it has begun."""

from __future__ import annotations

from typing import Any, Protocol

from attrs import frozen
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.runner import Runner

from ._config import StoreSettings
from ._several import Company

_LOOK_SECONDS = 0.1
_CLOSE_SECONDS = 10.0
_log = Logger()


class WorkingSites(Protocol):
    """The sites of a daemon that stops."""

    def refuse_work(self) -> None:
        """Answer that the daemon is not ready, and refuse new work."""

    @property
    def is_working(self) -> bool:
        """True if an agent still gets an answer."""


def longest_stop(settings: StoreSettings) -> float | None:
    """Return the most seconds that a stop takes, or None if this daemon does not leave its work to others."""
    if settings.daemons == "one":
        return None
    return max(settings.drain_seconds, settings.notice_seconds) + _CLOSE_SECONDS


@frozen(eq=False)
class Drain:
    """Lets the daemon finish what it has begun, while both sites still answer. Its parts are closed afterwards.

    From its beginning, C{/v1/ready} answers 503, new work is refused with an error that asks to try again, and runs
    that have not begun are left to the other daemons. A run that is executing may take C{store.drain_seconds}, and its
    caller gets the outcome. C{store.notice_seconds} is the least time for which the sites answer, so that a balancer
    notices.

    :param reactor: the reactor.
    """

    _reactor: Any
    _settings: StoreSettings
    _sites: WorkingSites
    _company: Company
    _runner: Runner

    async def run(self) -> None:
        """Finish what has begun. Each step can be the last one: what a killed daemon leaves, the others recover."""
        _log.info("this daemon stops: new work is left to the others")
        began = self._reactor.seconds()
        # guard of several daemons: a daemon that stops refuses new work before it leaves its runs
        #    -> daemon.test_drain.DrainTests.test_order
        self._sites.refuse_work()
        await self._runner.drain(float(self._settings.drain_seconds), self._company.hand_over)
        # guard of several daemons: agents get their outcomes before a daemon that stops closes its sites
        #    -> daemon.test_drain.DrainTests.test_answers
        while self._sites.is_working and self._passed(began) < self._settings.drain_seconds:
            await deferLater(self._reactor, _LOOK_SECONDS)
        notice = self._settings.notice_seconds - self._passed(began)
        # guard of several daemons: a balancer has the time to notice that a daemon stops
        #    -> daemon.test_drain.DrainTests.test_notice
        if notice > 0:
            await deferLater(self._reactor, notice)

    def _passed(self, began: float) -> float:
        passed: float = self._reactor.seconds() - began
        return passed
