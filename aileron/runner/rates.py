"""Remembers until when services asked to be sent nothing, and for whom that counts."""

from __future__ import annotations

from attrs import define, field, frozen
from twisted.internet.defer import CancelledError
from twisted.internet.interfaces import IReactorTime
from twisted.internet.task import deferLater

from aileron.base.json import timestamp, utc
from aileron.model.connectors import Outcome

from .plan import PlannedStep

_MOST_HELD_SECONDS = 3600.0
_MOST_EXCUSED_SECONDS = 24 * 3600.0


@frozen
class _Hold:
    """Names who is to be sent nothing.

    :ivar of_preview: whether the answer to a preview asked for it, which anybody brings about who only asks.
    """

    account: tuple[str, str | None]
    of_preview: bool


@define(eq=False)
class RateLimits:
    """Remembers, for as long as the daemon lives, until when services asked to be sent nothing.

    Each connector and account by itself, and no longer than an hour: a service cannot hold its runs for ever.  Nor can
    previews: they move no hold that stands, and put off the same run only once.
    """

    _clock: IReactorTime
    _until: dict[_Hold, float] = field(factory=dict, init=False)
    _excused: dict[str, float] = field(factory=dict, init=False)  # runs that previews put off, and when

    def noted(self, planned: PlannedStep, outcome: Outcome, *, of_preview: bool = False) -> Outcome:
        """Keep what an answer asks for, where a later moment does not stand already, and return it."""
        now = self._clock.seconds()
        self._until = {hold: until for hold, until in self._until.items() if now < until <= now + _MOST_HELD_SECONDS}
        if not outcome.retry_after_seconds or (of_preview and self.seconds_left(planned)):
            return outcome
        hold, until = _Hold(planned.account, of_preview), now + min(outcome.retry_after_seconds, _MOST_HELD_SECONDS)
        self._until[hold] = max(until, self._until.get(hold, 0.0))
        return outcome

    def are_known(self) -> bool:
        """Tell whether any service was at one lately, so that it is worth a look at what a run would do."""
        return bool(self._until)

    def seconds_left(self, planned: PlannedStep, run_id: str | None = None) -> float:
        """Return how long a step must wait.

        :param run_id: of the run that it belongs to, which may be excused from what previews brought about.
        """
        kinds = (False,) if run_id in self._excused else (False, True)
        return max(self._left(_Hold(planned.account, of_preview)) for of_preview in kinds)

    def _left(self, hold: _Hold) -> float:
        left = self._until.get(hold, 0.0) - self._clock.seconds()
        return left if 0.0 < left <= _MOST_HELD_SECONDS else 0.0

    def put_off(self, planned: PlannedStep, run_id: str) -> float:
        """Return how long a run is to be put off for its step C{planned}; previews do that only once.

        Else a run whose own preview uses up the last request would never begin.
        """
        now, left = self._clock.seconds(), self.seconds_left(planned, run_id)
        self._excused = {each: at for each, at in self._excused.items() if 0 <= now - at < _MOST_EXCUSED_SECONDS}
        if left > self._left(_Hold(planned.account, of_preview=False)):
            self._excused[run_id] = now
        return left

    async def wait(self, planned: PlannedStep, run_id: str, seconds: float) -> bool:
        """Wait until C{planned} is held no more; C{False}: that takes longer than C{seconds}, or the daemon stops."""
        left = self.seconds_left(planned, run_id)
        try:
            if 0.0 < left < seconds:
                await deferLater(self._clock, left)
        except CancelledError:
            return False  # nothing was sent: that is not in doubt
        return left < seconds

    def explain(self, planned: PlannedStep, seconds: float) -> str:
        """Say what is waited for, which takes C{seconds}."""
        until = timestamp(utc(self._clock.seconds() + seconds))
        return f"{planned.description.fqn} is at its rate limit and asked for no requests before {until}."
