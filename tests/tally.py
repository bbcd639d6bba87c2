"""Runs trial and writes down how many tests passed, failed and were skipped.

Only the standard library is imported here: the test command reads the records before anything is installed beside it.

``python -m tests.tally RECORD COMMAND...`` runs the command, shows its output and leaves the tally in ``RECORD``.
"""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

_VERDICT = re.compile(r"^(?:PASSED|FAILED)(?: \((?P<counts>[^)]*)\))?\s*$", re.MULTILINE)
_PASSED = ("successes", "expectedFailures")
_FAILED = ("failures", "errors", "unexpectedSuccesses")
_NOT_RUN = ("skips", "todo")


@dataclass(frozen=True)
class Tally:
    """How many tests of one or several runs passed, failed and were skipped."""

    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(self.passed + other.passed, self.failed + other.failed, self.skipped + other.skipped)


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

    return Tally(total(_PASSED), total(_FAILED), total(_NOT_RUN))


def judge(output: str, status: int) -> Tally:
    """Tally a run, counting a run that died, or failed without saying in which test, as one failure."""
    tally = read_trial(output) or Tally(failed=1)
    return Tally(tally.passed, max(tally.failed, 1), tally.skipped) if status else tally


def read_records(directory: Path) -> dict[str, Tally]:
    """Read every record that runs have left in a directory, by the name of the run."""
    return {path.stem: Tally(**json.loads(path.read_text())) for path in sorted(directory.glob("*.json"))}


def run(record: Path, command: Sequence[str]) -> int:
    """Run a trial command, pass its output on line by line, and leave its tally in a file.

    :return: the command's exit status; 1 if it ran no test at all.
    """
    lines = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            lines.append(line)
            print(line, end="", flush=True)
    tally = judge("".join(lines), process.returncode)
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(json.dumps(asdict(tally)))
    return process.returncode or int(tally.passed == 0)


if __name__ == "__main__":
    sys.exit(run(Path(sys.argv[1]), sys.argv[2:]))
