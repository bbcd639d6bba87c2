"""Waking of agents, as a feature that runs in the daemon."""

from __future__ import annotations

from collections.abc import Mapping

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred

from aileron.base.json import JSON
from aileron.features.core import Core, ListeningSites
from aileron.features.feature import RunningFeature

from ._outcomes import OutcomeService
from .values import WakeSettings


@define(eq=False)
class RunningWake(RunningFeature):
    """The feature in the daemon that wakes agents with the outcomes of their runs."""

    outcomes: OutcomeService
    _following: Deferred[None] | None = field(default=None, init=False)

    @property
    def parts(self) -> tuple[object, ...]:  # type: ignore[override]
        """The objects that the feature's routes and pages look up by class: only this one."""
        return (self,)

    async def serve(self, sites: ListeningSites) -> None:
        self._following = Deferred.fromCoroutine(self.outcomes.follow())
        self._following.addErrback(lambda failure: failure.trap(CancelledError))

    def outcome_told(self, session_id: str, run_id: str) -> None:
        self.outcomes.outcome_told(session_id, run_id)

    def session_ended(self, session_id: str) -> None:
        self.outcomes.session_ended(session_id)

    def status(self) -> Mapping[str, JSON]:
        settings = self.outcomes.settings
        return {"wake": {"resume": settings.resume, "most_resumes": settings.most_resumes}}

    async def stop(self) -> None:
        """Stop noticing runs that end, end the requests that wait, and finish the writes for other daemons."""
        if self._following is not None:
            self._following.cancel()
        self.outcomes.stop()
        await self.outcomes.at_rest()


async def start_wake(core: Core, settings: WakeSettings) -> RunningWake:
    """Start to collect the outcomes of runs that end from now on.

    :raises StoreUnavailable: if the audit log cannot be read.
    """
    process, store = core.process, core.store
    shared = None if store.shared is None else store.shared.wakes
    outcomes = OutcomeService(settings, store.audit, store.runs, process.reactor, process.ids, shared)
    await outcomes.begin()
    running = RunningWake(outcomes)
    process.life.at_end(running.stop)
    return running
