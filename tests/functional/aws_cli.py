"""AWS's command line: ``python -m tests.functional.aws_cli DIRECTORY`` installs it.

Where the right version lies already, it does nothing; nor where the tests that use it are not wanted.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.extent import is_all
from tests.functional import install as functional

VERSION = "awscli==1.46.3"
"""In an environment of its own: what it needs is its own affair."""


def program(where: Path | None = None) -> Path:
    """Where it lies, or will lie."""
    return (where or functional.place() / "aws") / "bin" / "aws"


def install(where: Path) -> None:
    """Make the pinned version lie there.

    :raises subprocess.CalledProcessError: when pip fails.
    """
    if not program(where).is_file():
        subprocess.run((sys.executable, "-m", "venv", where), check=True)
        subprocess.run((where / "bin" / "python", "-m", "pip", "install", "--quiet", VERSION), check=True)


def main() -> None:
    """Install it into the directory named on the command line."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.executable} -m tests.functional.aws_cli DIRECTORY")
    if is_all():
        install(Path(sys.argv[1]).absolute())


if __name__ == "__main__":
    main()
