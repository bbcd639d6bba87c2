"""Outcomes over a real store, on one clock, without a socket."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.features.wake._outcomes import OutcomeService, SharedWakes
from aileron.features.wake.values import WakeAnswer, WakeSettings
from aileron.model.authority import PendingLimits
from aileron.model.queries import AuditQuery
from aileron.model.runs import Run, RunState
from aileron.testing import (
    example_ask,
    example_event,
    example_run,
    example_session,
    example_transition,
    memory_store,
)

NOW = 1_760_000_000.0
REST = 5
ENDS: Mapping[RunState, str] = {
    RunState.COMPLETED: "execution.succeeded",
    RunState.FAILED: "execution.failed",
    RunState.UNKNOWN: "execution.unknown",
    RunState.DENIED: "approval.denied",
    RunState.EXPIRED: "approval.expired",
    RunState.CANCELLED: "run.cancelled",
}


class WakeCase(SynchronousTestCase):
    """Sessions with runs that end."""

    shared: SharedWakes | None = None

    def setUp(self) -> None:
        self.clock = Clock()
        self.clock.advance(NOW)
        self.store = memory_store(self, self.clock)
        self._ids = 0
        for number, session_id in enumerate(("session-1", "session-2"), 1):
            opening = self.store.sessions.open(
                example_session(session_id), bytes([number]) * 32, bytes([number + 8]) * 32, ()
            )
            self.successResultOf(Deferred.fromCoroutine(opening))
        self.following: Deferred[None] | None = None
        self.use()

    def use(self, audit: Any = None, **settings: Any) -> None:
        """Have a service with these settings that begins now, in place of the one before."""
        self.unfollow()
        self.outcomes, self.following = self.started(audit, **settings)
        self.addCleanup(self.unfollow)

    def started(self, audit: Any = None, **settings: Any) -> tuple[OutcomeService, Deferred[None]]:
        """A service that begins now, and its following of the audit log."""
        outcomes = OutcomeService(
            WakeSettings(**{"after_seconds": REST, **settings}),
            audit or self.store.audit,
            self.store.runs,
            self.clock,
            self.fresh_id,
            self.shared,
        )
        self.successResultOf(Deferred.fromCoroutine(outcomes.begin()))
        following = Deferred.fromCoroutine(outcomes.follow())
        following.addErrback(lambda failure: failure.trap(CancelledError))
        return outcomes, following

    def unfollow(self) -> None:
        """Have the service end."""
        if self.following is not None:
            self.following.cancel()
            self.outcomes.stop()

    def fresh_id(self) -> str:
        """An id that sorts after those before."""
        self._ids += 1
        return f"01JA{self._ids:022d}"

    def request(self, run_id: str = "run-1", session_id: str = "session-1", *, gated: bool = True) -> Run:
        """The agent calls an action, and its run waits."""
        run = example_run(run_id, session_id=session_id, gated=gated)
        if gated:
            changes = [example_transition(run, RunState.PENDING, "approval.requested", ask=example_ask())]
        else:
            changes = [example_transition(run, RunState.APPROVED, "run.approved")]
        limits = PendingLimits(100, 100)
        receiving = Deferred.fromCoroutine(self.store.runs.receive(run, changes, limits))
        return self.successResultOf(receiving)[0]

    def end(self, run: Run, state: RunState = RunState.COMPLETED) -> None:
        """A run ends."""
        event = example_event(ENDS[state], run.id, session_id=run.session_id)
        change = example_transition(run, state, events=(event,), audit_id=event.id)
        self.successResultOf(Deferred.fromCoroutine(self.store.runs.apply(change)))

    def next(self, session_id: str = "session-1", seconds: float = 0, **more: Any) -> Deferred[WakeAnswer]:
        """The agent's hook asks; its answer comes later."""
        return Deferred.fromCoroutine(self.outcomes.next(session_id, seconds, **more))

    def answered(self, session_id: str = "session-1", **more: Any) -> WakeAnswer:
        """The answer, which must come at once."""
        return self.successResultOf(self.next(session_id, **more))

    def run_of(self, answer: WakeAnswer) -> str | None:
        """The run that an answer tells of."""
        return None if answer.outcome is None else answer.outcome.run_id

    def sent(self) -> list[tuple[str | None, Mapping[str, JSON]]]:
        """By which runs agents were woken, as the audit log says, oldest first."""
        listing = self.store.audit.list(AuditQuery(type="wake.sent", limit=500))
        page = self.successResultOf(Deferred.fromCoroutine(listing))
        return [(each.event.run_id, each.event.payload) for each in reversed(page.items)]
