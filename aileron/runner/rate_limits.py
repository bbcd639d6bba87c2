"""Knows until when services asked for no further requests, and postpones the steps that would send some."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from attrs import define, field
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater
from twisted.logger import Logger

from aileron.base.json import timestamp, utc
from aileron.model.connectors import Outcome
from aileron.model.errors import StoreUnavailable
from aileron.model.rate_limits import MOST_HELD_SECONDS, RateLimit

from .plan import PlannedStep
from .tasks import Tasks

_MOST_EXCUSED_SECONDS = 24 * 3600.0

_log = Logger()


class SharedRateLimits(Protocol):
    """Stores rate limits for several daemons. Its seconds are those of one clock for all daemons."""

    async def note(self, limit: RateLimit, seconds: float) -> None:
        """Store a limit that lasts C{seconds} from now.

        :raises StoreUnavailable: if it cannot be stored.
        """

    async def all(self) -> Mapping[RateLimit, float]:
        """Return the limits that apply now, each with the seconds that are left of it.

        :raises StoreUnavailable: if they cannot be read.
        """


@define(eq=False)
class RateLimits:
    """Knows, in memory, until when services asked for no further requests ("rate limits").

    A limit applies to one connector and credential, and lasts at most an hour, so that a service cannot delay runs for
    ever. Previews are reads that an agent can cause without an approval, so their responses are trusted less: they do
    not extend a limit, and the limits that they set postpone each run only once.

    :param shared: stores the limits for the other daemons on the database, or None if there are none.
    """

    _clock: IReactorTime
    _tasks: Tasks
    _shared: SharedRateLimits | None = None
    _until: dict[RateLimit, float] = field(factory=dict, init=False)
    _excused: dict[str, float] = field(factory=dict, init=False)  # runs that previews postponed, and when

    def noted(self, planned: PlannedStep, outcome: Outcome, *, of_preview: bool = False) -> Outcome:
        """If the response C{outcome} asks for no further requests for some time, store that as a rate limit.

        A limit never becomes shorter.

        :param planned: the step whose response it is.
        :param of_preview: whether the step is the read of a preview. Then nothing is stored while another limit
            applies.
        :return: C{outcome}.
        """
        now = self._clock.seconds()
        self._until = {hold: until for hold, until in self._until.items() if now < until <= now + MOST_HELD_SECONDS}
        if not outcome.retry_after_seconds or (of_preview and self.seconds_left(planned)):
            return outcome
        hold, until = RateLimit(planned.account, of_preview), now + min(outcome.retry_after_seconds, MOST_HELD_SECONDS)
        self._until[hold] = max(until, self._until.get(hold, 0.0))
        if self._shared is not None:
            self._tasks.start(
                f"storing the rate limit of {hold} until {until}", self._share(self._shared, hold, until - now)
            )
        return outcome

    async def _share(self, shared: SharedRateLimits, limit: RateLimit, seconds: float) -> None:
        try:
            await shared.note(limit, seconds)
        except StoreUnavailable as error:
            _log.warn("other daemons do not know of a rate limit: {why}", why=error.message)

    async def learn(self) -> None:
        """Read the limits that services told other daemons. Without other daemons, do nothing.

        If they cannot be read, those known here apply. A run is not refused for that.
        """
        if self._shared is None:
            return
        try:
            found = await self._shared.all()
        except StoreUnavailable as error:
            _log.warn("the rate limits known to other daemons cannot be read: {why}", why=error.message)
            return
        now = self._clock.seconds()
        for limit, left in found.items():
            # guard of several daemons: a service that one daemon must leave alone, the others leave alone too
            #    -> runner.test_several.RateTests.test_elsewhere
            if 0.0 < left <= MOST_HELD_SECONDS:
                self._until[limit] = max(now + left, self._until.get(limit, 0.0))

    def are_known(self) -> bool:
        """Return whether any rate limit is stored."""
        return bool(self._until)

    def seconds_left(self, planned: PlannedStep, run_id: str | None = None) -> float:
        """Return how long a step must wait for the rate limit of its service, or 0 if there is none.

        :param run_id: the step's run. If previews postponed this run before, limits that previews set are ignored.
        """
        kinds = (False,) if run_id in self._excused else (False, True)
        return max(self._left(RateLimit(planned.account, of_preview)) for of_preview in kinds)

    def _left(self, hold: RateLimit) -> float:
        left = self._until.get(hold, 0.0) - self._clock.seconds()
        return left if 0.0 < left <= MOST_HELD_SECONDS else 0.0

    def put_off(self, planned: PlannedStep, run_id: str) -> float:
        """Return how many seconds to postpone a run for its step C{planned}, or 0 if the service has no rate limit.

        A limit that a preview set postpones a run only once. Otherwise a run whose own preview uses up the last allowed
        request would never start.
        """
        now, left = self._clock.seconds(), self.seconds_left(planned, run_id)
        self._excused = {each: at for each, at in self._excused.items() if 0 <= now - at < _MOST_EXCUSED_SECONDS}
        if left > self._left(RateLimit(planned.account, of_preview=False)):
            self._excused[run_id] = now
        return left

    async def wait(self, planned: PlannedStep, run_id: str, seconds: float) -> bool:
        """Wait until C{planned} may be sent. Return False if that takes longer than C{seconds} or the daemon stops."""
        left = self.seconds_left(planned, run_id)
        try:
            if 0.0 < left < seconds:
                await deferLater(self._clock, left)
        except CancelledError:
            return False  # nothing was sent, so the outcome is certain
        return left < seconds

    def explain(self, planned: PlannedStep, seconds: float) -> str:
        """Return a sentence that says until when the service of C{planned} is rate-limited.

        :param seconds: the rest of the limit.
        """
        until = timestamp(utc(self._clock.seconds() + seconds))
        return f"{planned.description.name} is at its rate limit and asked for no requests before {until}."
