"""C{python -m tests.agents [NAME …]}: installs the agents, all of them unless some are named, and tries them."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

from tests.agents import choice
from tests.agents.install import install
from tests.functional.install import place


def main(names: list[str]) -> int:
    """Return trial's own status."""
    there = choice.agents()
    if unknown := set(names) - set(there):
        sys.exit(f"no such agents: {', '.join(unknown)}; there are {', '.join(there)}")
    for name in names or there:
        install(place(), name)
    modules = [f"tests.agents.test_{name}" for name in names or there]
    for more in ("permissions", "waking"):
        modules += [each for name in names or there if find_spec(each := f"tests.agents.{more}.test_{name}")]
    return subprocess.run((sys.executable, "-m", "twisted.trial", *modules), check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
