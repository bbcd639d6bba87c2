"""Everything in any order, for as long as one likes: the machine of the runner's tests, with what it came to."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from unittest import TestResult

from tests.runner.machine.test_machine import MachineTests

EXAMPLES = 1000
_STEPS = 50


def play(examples: int, seed: int) -> Iterator[tuple[str, bool]]:
    """The lines of what happened, each with whether it tells of a broken promise."""
    case, result, here = MachineTests("test_promises_hold"), TestResult(), os.getcwd()
    case.examples, case.steps, case.seed = examples, _STEPS, seed
    with tempfile.TemporaryDirectory(prefix="aileron-machine-") as directory:
        os.chdir(directory)
        try:
            case.run(result)
        finally:
            os.chdir(here)
    yield f"{examples} times {_STEPS} steps; on record:", False
    yield from ((f"{times:>8}  {type_}", False) for type_, times in sorted(case.told.items()))
    yield from ((why, True) for _, why in (*result.errors, *result.failures))
