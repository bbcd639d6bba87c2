"""The test command, ``python3 -m tests``: makes an environment for tox, runs the checks, counts the tests.

As many checks as there are processors run at once, the functional tests last; what a check prints is shown at its
end. ``--all`` adds the checks that take longer. Other arguments go to tox: ``python3 -m tests -e lint,mypy``.
Nothing but the standard library is needed to start it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import randrange
from zlib import crc32

from tests.extent import SEED_VARIABLE, SEEDS, VARIABLE
from tests.tally import Tally, read_records

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".tox-venv"
RECORDS = ROOT / ".tox" / "tally"
RESULT = ROOT / ".tox" / "result.json"
_FAILURES = 5
_LINES = 20


def install_tox() -> Path:
    """Make the environment that holds tox, unless it is there.

    :return: the path of its interpreter.
    """
    python = HOME / "bin" / "python"
    if not (HOME / "bin" / "tox").exists():
        venv.create(HOME, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "tox>=4.23"], check=True)
    return python


def checks(result: Mapping[str, object]) -> dict[str, bool]:
    """Name the checks that ran, as tox's own result file tells it, and say of each whether it succeeded.

    The file lists environments that were not asked for as well, which have no result, and those that were skipped
    because their interpreter is missing.
    """
    environments = result["testenvs"]
    assert isinstance(environments, Mapping)
    results = {name: found["result"] for name, found in environments.items() if "result" in found}
    return {name: each["success"] for name, each in results.items() if not each.get("skipped")}


def seed_of_sources(root: Path) -> int:
    """Derive a seed from the Python files, so that a change is tried with the same parts wherever it is."""
    seed = 0
    for path in sorted((*root.glob("aileron/**/*.py"), *root.glob("tests/**/*.py"))):
        seed = crc32(path.read_bytes(), seed)
    return seed % SEEDS


def verdict(tallies: Mapping[str, Tally], ran: Mapping[str, bool]) -> tuple[Tally, list[str]]:
    """Add the runs up; a check that failed without a failing test in its tally counts as one failure.

    :param ran: the checks, and whether each succeeded.
    :return: the sum, and the lines that tell it: first each failure again, since others printed after it; last the
        number of tests, if a check with tests ran.
    """
    silent = [name for name, succeeded in ran.items() if not succeeded and not tallies.get(name, Tally()).failed]
    total = sum(tallies.values(), Tally(failed=len(silent)))
    lines = [_shortened(failure) for failure in total.failures[:_FAILURES]]
    lines += [
        f"{name}: {each.passed} passed, {each.failed} failed, {each.skipped} skipped" for name, each in tallies.items()
    ]
    lines += [f"{name}: {'passed' if ok else 'failed'}" for name, ok in ran.items() if not ok or name not in tallies]
    return total, [*lines, *([f"{total.passed} passed, {total.failed} failed"] if tallies else [])]


def _shortened(failure: str) -> str:
    """Leave out the middle of a long failure: its end has the error and the test's name."""
    lines = failure.splitlines()
    return "\n".join(lines if len(lines) <= _LINES else [lines[0], "...", *lines[2 - _LINES :]])


def main(arguments: Sequence[str]) -> int:
    """Run tox and tell what came of it.

    :return: 0 only if tox succeeded, no test failed and one check at least ran; a check with tests fails by itself
        where none of them ran.
    """
    shutil.rmtree(RECORDS, ignore_errors=True)
    RESULT.unlink(missing_ok=True)
    together = ["run-parallel", "--parallel", "auto", "--parallel-no-spinner"]
    chosen = [part for each in arguments for part in (["-m", "all"] if each == "--all" else [each])]
    command = [str(install_tox()), "-m", "tox", *together, "--result-json", str(RESULT), *chosen]
    extent = {VARIABLE: "all"} if "--all" in arguments else {}
    seed = os.environ.get(SEED_VARIABLE) or str(randrange(SEEDS) if extent else seed_of_sources(ROOT))
    environ = {**os.environ, **extent, SEED_VARIABLE: seed}
    status = subprocess.run(command, cwd=ROOT, env=environ, check=False).returncode
    ran = checks(json.loads(RESULT.read_text())) if RESULT.exists() else {}
    if status and all(ran.values()):
        ran["tox"] = False
    total, lines = verdict(read_records(RECORDS), ran)
    print("", *(lines or ["no check ran"]), sep="\n", flush=True)
    return int(bool(status or total.failed or not ran))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
