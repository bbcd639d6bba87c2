"""The machine, run."""

from __future__ import annotations

from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test
from twisted.trial.unittest import SynchronousTestCase

from .holding import Machine


class MachineTests(SynchronousTestCase):
    """The machine, run."""

    def test_promises_hold(self) -> None:
        """In any order of events nothing is lost, nothing happens twice, and nothing happens unasked."""
        run_state_machine_as_test(
            lambda: Machine(self),  # type: ignore[arg-type]
            settings=settings(
                max_examples=40,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink such a machine takes minutes
            ),
        )
