"""Runs a test case that measures in a browser, and hands its figures over in a file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

_FILE = "AILERON_BENCH_FIGURES"


def run_case(module: str) -> dict[str, Any]:
    """Run the test case of C{module} and return the figures that it wrote.

    :raises SystemExit: if the test case fails. Its output is printed first.
    """
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "figures.json"
        trial = [sys.executable, "-m", "twisted.trial", "--temp-directory", f"{directory}/trial", module]
        ended = subprocess.run(trial, env={**os.environ, _FILE: str(file)}, capture_output=True, text=True, check=False)
        if ended.returncode:
            print(ended.stdout, ended.stderr, sep="\n", file=sys.stderr)
            raise SystemExit(f"{module} failed.")
        found: dict[str, Any] = json.loads(file.read_text())
    return found


def write_figures(figures: Mapping[str, Any]) -> None:
    """Write the figures for L{run_case}."""
    Path(os.environ[_FILE]).write_text(json.dumps(figures))
