"""Those that are compared: each a command that serves MCP on standard input and asks the same daemon."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen

PEERS = "AILERON_BENCH_PEERS"
"""Names a directory with others' servers in it: see L{bench.mcp.install}."""

_HERE = Path(__file__).parent / "peers"
_BIN = Path(sys.executable).parent


@frozen
class Place:
    """Where the daemon is.

    :ivar url: its site for agents.
    :ivar token: a session's.
    """

    url: str
    token: str = field(repr=False)


@frozen
class Contender:
    """One of them.

    :ivar missing: what to do to have it; empty where it is there.
    :ivar alone: whether it asks no daemon.
    """

    name: str
    command: tuple[str, ...] = ()
    missing: str = ""
    alone: bool = False

    def environment(self, place: Place) -> Mapping[str, str]:
        """Of its process."""
        ours = {"AILERON_URL": place.url, "AILERON_TOKEN": place.token}
        return {**os.environ, **ours, "BENCH_URL": place.url, "BENCH_TOKEN": place.token}


def contenders(place: Place) -> list[Contender]:
    """All of them, ours first."""
    directory = Path(os.environ.get(PEERS, "/nonexistent"))
    return [
        Contender("aileron-mcp", (str(_BIN / "aileron-mcp"),)),
        _mcp_proxy(directory / "mcp-proxy/bin/mcp-proxy", place),
        _fastmcp(directory / "fastmcp/bin/python"),
        _node(directory / "node"),
        Contender("a server of the SDK alone, no daemon", (sys.executable, "-m", "bench.echo"), alone=True),
    ]


def _mcp_proxy(program: Path, place: Place) -> Contender:
    # Its only way to send a header is an argument: whoever looks at the processes sees the token.
    header = ("-H", "Authorization", f"Bearer {place.token}")
    command = (str(program), "--transport", "streamablehttp", *header, f"{place.url}/mcp")
    return Contender("mcp-proxy, to the daemon's /mcp", command, _missing(program))


def _fastmcp(python: Path) -> Contender:
    return Contender(
        "FastMCP's proxy, to the daemon's /mcp", (str(python), str(_HERE / "fastmcp_proxy.py")), _missing(python)
    )


def _node(directory: Path) -> Contender:
    node = shutil.which("node") or "node"
    command = (node, str(directory / "server.mjs"))
    return Contender("a server of the Node SDK and fetch", command, _missing(directory / "server.mjs"))


def _missing(path: Path) -> str:
    return "" if path.exists() else f"python -m bench.mcp.install DIRECTORY, and {PEERS}=DIRECTORY"
