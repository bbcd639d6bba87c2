"""What is counted against limits lets pass exactly what its window has room for."""

from __future__ import annotations

from datetime import timedelta

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.errors import LimitExceeded
from aileron.testing import example_run, example_transition
from aileron.values import Charge, PendingLimits, RunState

from .case import DatabaseCase

_TWO_A_MINUTE = Charge("key", 2, 60.0, "full")


class ChargesTests(DatabaseCase):
    """Runs that are charged when they begin, over SQLite."""

    def setUp(self) -> None:
        """A store in a temporary file."""
        super().setUp()
        self.store = self.opened()
        self.runs = 0

    def charged(self, seconds: float, *charges: Charge) -> Deferred[object]:
        """Begin a run so long after noon."""
        self.runs += 1
        run = example_run(f"run-{self.runs}", gated=False)
        begun = example_transition(run, RunState.EXECUTING, f"event-{self.runs}", charges=charges)
        begun = evolve(begun, at=run.received_at + timedelta(seconds=seconds))
        return Deferred.fromCoroutine(self.store.runs.receive(run, [begun], PendingLimits()))

    def passes(self, seconds: float, *charges: Charge) -> None:
        """Check that it begins."""
        self.successResultOf(self.charged(seconds, *charges))

    def waits(self, seconds: float, *charges: Charge) -> object:
        """Check that it is refused; for how long."""
        return self.failureResultOf(self.charged(seconds, *charges), LimitExceeded).value.details["retry_after"]

    def test_window(self) -> None:
        """There is room until as many were counted, and again once the oldest has left the window."""
        self.passes(0, _TWO_A_MINUTE)
        self.passes(20, _TWO_A_MINUTE)
        self.assertEqual(self.waits(30, _TWO_A_MINUTE), 30)
        self.passes(60, _TWO_A_MINUTE)
        self.assertEqual(self.waits(61, _TWO_A_MINUTE), 19)

    def test_refused_counts_nothing(self) -> None:
        """What is refused by one limit is not counted against another."""
        other = Charge("other", 1, 60.0, "full")
        self.passes(0, _TWO_A_MINUTE, _TWO_A_MINUTE)  # one run, however many limits name the key
        self.passes(0, _TWO_A_MINUTE)
        self.waits(1, other, _TWO_A_MINUTE)
        self.passes(2, other)

    def test_set_back(self) -> None:
        """A clock that was set back counts what lies ahead of it as well: nothing is won by turning it."""
        self.passes(0, _TWO_A_MINUTE)
        self.passes(0, _TWO_A_MINUTE)
        self.waits(-90, _TWO_A_MINUTE)

    def test_forgotten(self) -> None:
        """What no window reaches any more is forgotten."""
        self.passes(0, _TWO_A_MINUTE)
        self.passes(3 * 86400, _TWO_A_MINUTE)
        self.assertEqual(self.query("SELECT count(*) FROM charges"), [(1,)])
