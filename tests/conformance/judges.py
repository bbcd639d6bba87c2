"""Where the judges lie, and others' servers: programs of npm and PyPI, and the Node that the newest of them needs."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from pathlib import Path

from tests.functional import npm

DIRECTORY_VARIABLE = "AILERON_TEST_MCP_JUDGES"
CONFORMANCE, INSPECTOR = "@modelcontextprotocol/conformance", "@modelcontextprotocol/inspector"
_PROCESSORS = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}
NODE = f"node-{sys.platform}-{_PROCESSORS.get(platform.machine(), 'x64')}"
VERSIONS = {CONFORMANCE: "0.2.0-alpha.12", INSPECTOR: "0.15.0", NODE: "24.21.0"}
EVERYTHING, FILES = "@modelcontextprotocol/server-everything", "@modelcontextprotocol/server-filesystem"
VERSIONS |= {EVERYTHING: "2026.8.31", FILES: "2026.8.31"}
TIME = "mcp-server-time==2026.10.19"
"""A server in Python; it wants an older SDK than ours, and so an environment of its own."""


def directory() -> Path:
    """Where they lie: ``$AILERON_TEST_MCP_JUDGES``, else in the environment of the tests."""
    return Path(os.environ.get(DIRECTORY_VARIABLE, Path(sys.prefix) / "judges"))


def install() -> None:
    """Make the pinned versions lie there.

    :raises subprocess.CalledProcessError: when npm fails.
    """
    missing = {name: version for name, version in VERSIONS.items() if not npm.lies(directory(), name, version)}
    if missing:
        npm.fetch(directory(), VERSIONS)
    if not python().is_file():
        subprocess.run((sys.executable, "-m", "venv", python().parent.parent), check=True)
        subprocess.run((python(), "-m", "pip", "install", "--quiet", TIME), check=True)


def python() -> Path:
    """The interpreter with the server in Python."""
    return directory() / "python" / "bin" / "python"


def node() -> str:
    """Its Node."""
    return str(npm.package(directory(), NODE) / "bin" / "node")


def script(name: str, path: str) -> str:
    """A script of one of the packages.

    :raises AssertionError: it is not there, saying how to install it.
    """
    found = npm.package(directory(), name) / path
    if not found.is_file():
        raise AssertionError(f"{found} is not there: run '{sys.executable} -m tests.conformance'")
    return str(found)
