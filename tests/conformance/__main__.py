"""``python -m tests.conformance``: makes the judges be there, and has them judge."""

from __future__ import annotations

import subprocess
import sys

from tests.conformance import judges


def main() -> int:
    """Return trial's own status."""
    judges.install()
    trial = (sys.executable, "-m", "twisted.trial", *(sys.argv[1:] or ["tests.conformance"]))
    return subprocess.run(trial, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
