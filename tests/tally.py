"""Runs trial and writes down how many tests passed, failed and were skipped.

Only the standard library is imported here: the test command reads the records before anything is installed beside it.

``python -m tests.tally RECORD COMMAND...`` runs the command, shows its output and leaves the tally in ``RECORD``.
``python -m tests.tally --jobs 2 RECORD COMMAND...`` has two processes share the work, if it is that of `tests.unit`.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

TAKEN = "AILERON_TESTS_TAKEN"
"""Names the directory in which processes that run side by side say which tests they have taken."""

_SECTION = re.compile(
    r"^={70,}\n(?P<text>\[(?:FAIL|ERROR|SUCCESS!\?!)\]\n.*?)(?=^={70,}$|^-{70,}$|\Z)", re.MULTILINE | re.DOTALL
)
_VERDICT = re.compile(r"^(?:PASSED|FAILED)(?: \((?P<counts>[^)]*)\))?\s*$", re.MULTILINE)
_PASSED = ("successes", "expectedFailures")
_FAILED = ("failures", "errors", "unexpectedSuccesses")
_NOT_RUN = ("skips", "todo")


@dataclass(frozen=True)
class Tally:
    """How many tests of one or several runs passed, failed and were skipped.

    :ivar failures: what trial printed of each failure, with the tests' names.
    """

    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: tuple[str, ...] = ()

    def __add__(self, other: Tally) -> Tally:
        counts = (self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)
        return Tally(*counts, (*self.failures, *other.failures))


def read_trial(output: str) -> Tally | None:
    """Read the verdict at the end of what trial printed.

    :return: ``None`` if there is no verdict, as when trial died.
    """
    verdicts = list(_VERDICT.finditer(output))
    if not verdicts:
        return None
    pairs = (part.split("=") for part in (verdicts[-1]["counts"] or "").split(", ") if part)
    counts = {name: int(number) for name, number in pairs}

    def total(names: Iterable[str]) -> int:
        return sum(counts.get(name, 0) for name in names)

    failures = tuple(found["text"].rstrip() for found in _SECTION.finditer(output))
    return Tally(total(_PASSED), total(_FAILED), total(_NOT_RUN), failures)


def judge(output: str, status: int) -> Tally:
    """Tally a run, counting a run that died, or failed without saying in which test, as one failure.

    Of such a run the end of its output is the failure.
    """
    tally = read_trial(output) or Tally(failed=1)
    if not status or (tally.failed and tally.failures):
        return tally
    return replace(tally, failed=max(tally.failed, 1), failures=(output[-2_000:],))


def read_records(directory: Path) -> dict[str, Tally]:
    """Read every record that runs have left in a directory, by the name of the run."""
    found = {path.stem: Tally(**json.loads(path.read_text())) for path in sorted(directory.glob("*.json"))}
    return {name: replace(tally, failures=tuple(tally.failures)) for name, tally in found.items()}


def run(record: Path, command: Sequence[str], jobs: int = 1) -> int:
    """Run a trial command, pass its output on line by line, and leave its tally in a file.

    :param jobs: how many processes of that command run side by side; each takes tests that no other has taken.
    :return: the command's exit status; 1 if it ran no test at all.
    """
    with TemporaryDirectory() as taken, ThreadPoolExecutor(jobs) as pool:
        environ = {**os.environ, TAKEN: taken} if jobs > 1 else {**os.environ}
        ended = list(pool.map(lambda _: _follow(command, environ), range(jobs)))
    tally = sum((judge(output, status) for output, status in ended), Tally())
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(asdict(tally)))
    return next((status for _, status in ended if status), int(tally.passed == 0))


def _follow(command: Sequence[str], environ: Mapping[str, str]) -> tuple[str, int]:
    """Run a command, show what it prints, and say what that was and how it ended."""
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=environ) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            print(line, end="", flush=True)
    return "".join(lines), process.returncode


def main() -> int:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("record", type=Path)
    parser.add_argument("command", nargs=argparse.REMAINDER)
    chosen = parser.parse_args()
    shared = chosen.command[-1] == "tests.unit"
    return run(chosen.record, chosen.command, chosen.jobs if shared else 1)


if __name__ == "__main__":
    sys.exit(main())
