"""Where the judges lie: programs of npm, and the Node that the newest of them needs; others' servers lie elsewhere."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path

from tests.functional import npm, servers

DIRECTORY_VARIABLE = "AILERON_TEST_MCP_JUDGES"
CONFORMANCE, INSPECTOR = "@modelcontextprotocol/conformance", "@modelcontextprotocol/inspector"
_PROCESSORS = {"x86_64": "x64", "aarch64": "arm64", "arm64": "arm64"}
NODE = f"node-{sys.platform}-{_PROCESSORS.get(platform.machine(), 'x64')}"
VERSIONS = {CONFORMANCE: "0.2.0-alpha.12", INSPECTOR: "0.15.0", NODE: "24.21.0"}


def directory() -> Path:
    """Where they lie: ``$AILERON_TEST_MCP_JUDGES``, else in the environment of the tests."""
    return Path(os.environ.get(DIRECTORY_VARIABLE, Path(sys.prefix) / "judges"))


def install() -> None:
    """Make the pinned versions lie there, and the servers where they lie.

    :raises subprocess.CalledProcessError: when npm or pip fails.
    """
    missing = {name: version for name, version in VERSIONS.items() if not npm.lies(directory(), name, version)}
    if missing:
        npm.fetch(directory(), VERSIONS)
    servers.install(servers.directory())


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
