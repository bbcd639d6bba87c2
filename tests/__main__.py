"""The test command, ``python3 -m tests``: makes an environment for tox, runs every check, counts the tests.

As many checks as there are processors run at once, but the functional tests alone; what a check prints is shown
at its end.

Arguments are handed to tox: ``python3 -m tests -e lint,mypy``. Nothing but the standard library is needed to start it.
"""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import venv
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.tally import Tally, read_records

ROOT = Path(__file__).resolve().parent.parent
HOME = ROOT / ".tox-venv"
RECORDS = ROOT / ".tox" / "tally"
RESULT = ROOT / ".tox" / "result.json"


def install_tox() -> Path:
    """Make the environment that holds tox, unless it is there.

    :return: the path of its interpreter.
    """
    python = HOME / "bin" / "python"
    if not (HOME / "bin" / "tox").exists():
        venv.create(HOME, with_pip=True, clear=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", "tox>=4.23"], check=True)
    return python


def failed_checks(result: Mapping[str, object]) -> list[str]:
    """Name the environments that failed, as tox's own result file tells it.

    The file lists environments that were not asked for as well; those have no result.
    """
    environments = result["testenvs"]
    assert isinstance(environments, Mapping)
    return [name for name, found in environments.items() if not found.get("result", {"success": True})["success"]]


def verdict(tallies: Mapping[str, Tally], failed: Sequence[str]) -> tuple[Tally, list[str]]:
    """Add the runs up; a check that failed without a failing test in its tally counts as one failure.

    :return: the sum, and the lines that tell it.
    """
    silent = [name for name in failed if not tallies.get(name, Tally()).failed]
    total = sum(tallies.values(), Tally(failed=len(silent)))
    lines = [
        f"{name}: {each.passed} passed, {each.failed} failed, {each.skipped} skipped" for name, each in tallies.items()
    ]
    lines += [f"{name}: failed" for name in silent]
    return total, [*lines, f"{total.passed} passed, {total.failed} failed"]


def main(arguments: Sequence[str]) -> int:
    """Run tox and tell what came of it.

    :return: 0 only if tox succeeded, no test failed and one at least ran.
    """
    shutil.rmtree(RECORDS, ignore_errors=True)
    RESULT.unlink(missing_ok=True)
    together = ["run-parallel", "--parallel", "auto", "--parallel-no-spinner"]
    command = [str(install_tox()), "-m", "tox", *together, "--result-json", str(RESULT), *arguments]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    failed = failed_checks(json.loads(RESULT.read_text())) if RESULT.exists() else []
    total, lines = verdict(read_records(RECORDS), failed or ["tox"] * bool(status))
    print("", *lines, sep="\n", flush=True)
    return int(bool(status or total.failed or not total.passed))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
