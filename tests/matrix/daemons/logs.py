"""Failures that the daemons' logs tell of: tracebacks, and requests that were answered with 500."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from aileron.home.paths import Home

FAILED = "a failure in the log"
_BEGIN = re.compile(r"\S+ \[([^\]]*)\] (.*)")
_IDS = re.compile(r"\b01[0-9A-HJKMNP-TV-Z]{24}\b")
_UNEXPECTED, _TRACEBACK = "failed unexpectedly", "Traceback (most recent call last)"
_LAST_LINES = 7


def read_failures(root: Path) -> Iterator[str]:
    """Yield the failures in the log of a home, without times and ids: with the last lines of a traceback."""
    for path in sorted(Home(root).log.glob("aileron.log*")):
        for first, rest in _read_events(path):
            if _UNEXPECTED in first or any(_TRACEBACK in line for line in rest):
                text = "\n".join((first, *rest[-_LAST_LINES:]))
                yield _IDS.sub("RUN", text)


def _read_events(path: Path) -> Iterator[tuple[str, list[str]]]:
    """Yield each event of a log: its first line, without the time, and its further lines."""
    first, rest = "", list[str]()
    for line in path.read_text(errors="replace").splitlines():
        begun = _BEGIN.match(line)
        if begun is None:
            rest.append(line.rstrip())
            continue
        if first:
            yield first, [each for each in rest if each]
        first, rest = f"[{begun[1]}] {begun[2]}", []
    if first:
        yield first, [each for each in rest if each]
