"""Copies that are written out for speed are what L{attrs.evolve} makes, every field kept."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from attrs import evolve, fields
from twisted.trial.unittest import SynchronousTestCase

from aileron.values import Fault, Process, Run, RunState, Session, SessionEnding, Transition

_NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
_LATER = _NOON + timedelta(seconds=1)
_FAULT = Fault("not_found", "gone", "runtime")
RUN = Run(
    "run", "do", "1.0.0", "sha256:0", {"a": 1}, RunState.EXECUTING, True, "key", _NOON, _NOON,
    session_id="session", idempotency_key="again", result=1, fault=_FAULT, reason="why", audit_id="event",
    asked={"a": 0}, parent_id="earlier", start_after=_LATER,
)  # fmt: skip
_PROCESS = Process(7, "/bin/agent", "/project")
SESSION = Session("session", "agent", "/", _NOON, _NOON, _LATER, 3, _PROCESS, True, _LATER, SessionEnding.ORPHANED)


class CopiesTests(SynchronousTestCase):
    """L{Transition.applied} and L{Session.seen}."""

    def test_run(self) -> None:
        """A run that a transition is applied to keeps all but what the transition says."""
        self.assertTrue(all(getattr(RUN, each.name) for each in fields(Run)))
        ending = Transition("run", RunState.EXECUTING, RunState.FAILED, _LATER, (), {"b": 2}, None, "now", "other")
        expected = evolve(
            RUN, state=RunState.FAILED, changed_at=_LATER, result={"b": 2}, fault=None, reason="now", audit_id="other"
        )
        self.assertEqual(ending.applied(RUN), expected)

    def test_session(self) -> None:
        """A session that was seen keeps all but the moment of its last request."""
        self.assertTrue(all(getattr(SESSION, each.name) for each in fields(Session)))
        self.assertEqual(SESSION.seen(_LATER), evolve(SESSION, seen_at=_LATER))
