"""What the inbox costs in a browser: requests, bytes, paint, silence and the way from a decision to its result."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from bench import table

_CASE = "bench.measured_pages"
_FILE = "AILERON_BENCH_PAGES"


def report(seconds: float) -> None:
    """Print the figures of a first load of the inbox with twelve pending approvals, and of that page later.

    :param seconds: is not used, since an idle page is watched for longer.
    """
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "figures.json"
        trial = [sys.executable, "-m", "twisted.trial", "--temp-directory", f"{directory}/trial", _CASE]
        subprocess.run(trial, env={**os.environ, _FILE: str(file)}, stdout=sys.stderr, check=True)
        found = json.loads(file.read_text())
    table.row("pages: requests of a first load", str(len(found["requests"])), "at most 12")
    table.row("pages: KB of a first load, both ways", f"{found['kilobytes']:.1f}", "at most 60")
    table.row("pages: first paint", f"{found['painted_ms']:.0f} ms", "at most 100 ms")
    table.row("pages: an idle page, both ways", f"{found['idle']:.0f} B/s", "at most 200 B/s")
    table.row("pages: from a decision to its visible result", f"{found['decided_ms']:.0f} ms", "at most 200 ms")
