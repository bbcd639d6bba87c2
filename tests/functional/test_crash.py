"""The crash matrix and the table of faults, in short forms: the whole is ``python -m tests.matrix``."""

import os
import subprocess
import sys
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import tests

KILLS = 80
SECONDS = 1200


class CrashTests(SynchronousTestCase):
    """The daemon as it is composed, its files, and a service that counts."""

    def test_short(self) -> None:
        """A daemon that is killed at each point of a run's life loses nothing and does nothing twice."""
        done = _matrix("crash", str(KILLS), "--seed", "7")
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")


class FaultsTests(SynchronousTestCase):
    """Likewise, while what the daemon needs goes wrong."""

    def test_one(self) -> None:
        """A daemon that begins on an older copy of its vault asks anew what was approved, and goes on."""
        done = _matrix("faults", "--only", "vault put back, next life")
        self.assertEqual(done.returncode, 0, f"{done.stdout}\n{done.stderr}")
        self.assertIn("\n1 faults, 0 promises broken", done.stdout)


def _matrix(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = (sys.executable, "-m", "tests.matrix", *arguments)
    there = Path(tests.__file__).parent.parent
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(there), os.environ.get("PYTHONPATH", "")])}
    return subprocess.run(
        command, cwd=there, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False
    )
