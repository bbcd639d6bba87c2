"""The machine, run."""

from __future__ import annotations

import os
from collections import Counter

from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis.stateful import run_state_machine_as_test
from twisted.trial.unittest import SynchronousTestCase

from tests.extent import SEED, is_all

from .holding import Machine

EXAMPLES = "AILERON_TEST_GAMES"
"""How often it plays, where somebody wants more than the checks have time for."""


class MachineTests(SynchronousTestCase):
    """The machine, run.

    :ivar examples: how often, each of C{steps} steps.
    :ivar seed: of chance.
    :ivar told: what is on record of all, by the types of the events.
    """

    examples, steps = int(os.environ.get(EXAMPLES, "15" if is_all() else "8")), 30
    seed = SEED

    def test_promises_hold(self) -> None:
        """In any order of events nothing is lost, nothing happens twice, and nothing happens unasked."""
        self.told: Counter[str] = Counter()

        def machine() -> Machine:
            return Machine(self, self.told)

        run_state_machine_as_test(
            seed(self.seed)(machine),  # type: ignore[arg-type]
            settings=settings(
                max_examples=self.examples,
                stateful_step_count=self.steps,
                deadline=None,
                database=None,
                print_blob=False,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.explicit, Phase.generate),  # to shrink such a machine takes minutes
            ),
        )
