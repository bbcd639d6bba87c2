"""A small file system for the homes, so that one can really be full: this program again, in a mount namespace."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

from tests.functional.install import SANDBOX

_INSIDE = "AILERON_MATRIX_SMALL"
_BYTES = 128 * 1024 * 1024


def is_needed() -> bool:
    """Return whether the homes are on a file system that others use, and there can be another."""
    return _INSIDE not in os.environ and SANDBOX.exists()


def run_again(arguments: Sequence[str]) -> int:
    """Run the matrix with temporary directories on a file system of their own, and return its exit code."""
    with tempfile.TemporaryDirectory(prefix="aileron-small-") as directory:
        surroundings = ("--dev-bind", "/", "/", "--size", str(_BYTES), "--tmpfs", directory)
        variables = ("--setenv", "TMPDIR", directory, "--setenv", _INSIDE, "yes")
        command = (sys.executable, "-m", "tests.matrix", *arguments)
        return subprocess.run((str(SANDBOX), *surroundings, *variables, *command), check=False).returncode
