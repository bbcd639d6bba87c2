"""Command lines from PyPI, C{aws} and C{twine}: ``python -m tests.functional.command_lines DIRECTORY`` installs them.

If they are there already, it does nothing; nor if the tests that use them are not wanted.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.extent import is_all
from tests.functional import install as functional

VERSIONS = ("awscli==1.46.3", "twine==7.0.0")
"""In an environment of their own, since their dependencies are none of ours."""


def program(name: str, where: Path | None = None) -> Path:
    """Where a command line is, or will be."""
    return (where or functional.place() / "command-lines") / "bin" / name


def install(where: Path) -> None:
    """Install the pinned versions into a directory.

    :raises subprocess.CalledProcessError: when pip fails.
    """
    if not all(program(each.partition("=")[0].removesuffix("cli"), where).is_file() for each in VERSIONS):
        subprocess.run((sys.executable, "-m", "venv", where), check=True)
        subprocess.run((where / "bin" / "python", "-m", "pip", "install", "--quiet", *VERSIONS), check=True)


def main() -> None:
    """Install them into the directory named on the command line."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.executable} -m tests.functional.command_lines DIRECTORY")
    if is_all():
        install(Path(sys.argv[1]).absolute())


if __name__ == "__main__":
    main()
