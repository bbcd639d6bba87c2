"""MCP servers that others have written: ``python -m tests.functional.servers DIRECTORY`` installs them.

Where the right versions lie already, it does nothing; nor where the tests that use them are not wanted.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

from tests.extent import is_all
from tests.functional import install as functional
from tests.functional import npm

EVERYTHING, FILES = "@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem"
GITLAB = "@modelcontextprotocol/server-gitlab"
VERSIONS = {EVERYTHING: "2026.8.31", FILES: "2026.8.31", GITLAB: "2025.4.25"}
TIME = "mcp-server-time==2026.10.19"
"""A server in Python, in an environment of its own: its SDK is its own affair."""


def directory() -> Path:
    """Where they lie."""
    return functional.place() / "servers"


def install(where: Path) -> None:
    """Make the pinned versions lie there.

    :raises subprocess.CalledProcessError: when npm or pip fails.
    """
    if not all(npm.lies(where, name, version) for name, version in VERSIONS.items()):
        npm.fetch(where, VERSIONS)
    if not _python(where).with_name("mcp-server-time").is_file():
        subprocess.run((sys.executable, "-m", "venv", _python(where).parent.parent), check=True)
        subprocess.run((_python(where), "-m", "pip", "install", "--quiet", TIME), check=True, stdout=sys.stderr)


def _python(where: Path) -> Path:
    return where / "python" / "bin" / "python"


def of_node(name: str, *arguments: str) -> tuple[str, ...]:
    """The command of a server of npm.

    :raises AssertionError: it is not there, saying how to install it.
    """
    return (str(shutil.which("node")), str(_there(npm.package(directory(), name) / "dist" / "index.js")), *arguments)


def of_python(module: str, *arguments: str) -> tuple[str, ...]:
    """The command of the server in Python; raises as L{of_node}."""
    return (str(_there(_python(directory()))), "-m", module, *arguments)


def _there(path: Path) -> Path:
    if not path.is_file():
        raise AssertionError(f"{path} is not there: run '{sys.executable} -m tests.functional.servers {directory()}'")
    return path


def main() -> None:
    """Install them into the directory named on the command line."""
    if len(sys.argv) != 2:
        sys.exit(f"usage: {sys.executable} -m tests.functional.servers DIRECTORY")
    if is_all():
        install(Path(sys.argv[1]).absolute())


if __name__ == "__main__":
    main()
