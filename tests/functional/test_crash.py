"""The crash matrix, in its short form: the whole is ``python -m tests.matrix``."""

import os
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import tests

KILLS = 80
SECONDS = 600


class CrashTests(SynchronousTestCase):
    """The daemon as it is composed, its files, and a service that counts."""

    def test_short(self) -> None:
        """A daemon that is killed at each point of a run's life loses nothing and does nothing twice."""
        command = (sys.executable, "-m", "tests.matrix", "crash", str(KILLS), "--seed", "7")
        there = Path(tests.__file__).parent.parent
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(there), os.environ.get("PYTHONPATH", "")])}
        done = subprocess.run(
            command, cwd=there, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
        )
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
