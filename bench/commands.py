"""The installed commands: how soon the daemon and C{aileron-mcp} serve, what they hold, what a call takes."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from urllib.request import Request, urlopen

from bench.endpoint import ACTION, CONNECTOR
from bench.table import ROUNDS, row

CALLS = 300
_BIN = Path(sys.executable).parent
_PASSPHRASE = b"seven quiet lamps over the harbour\n"
_LIBRARIES = "import twisted.internet.reactor, twisted.web.server, twisted.web.client, klein, jsonschema, cryptography"
_SDK = "import mcp.server.lowlevel"


def report(seconds: float) -> None:
    """The daemon's rows, then those of C{aileron-mcp} over a daemon that is unlocked."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        _aileron(home, "vault", "init")
        _aileron(home, "daemon", "stop")
        _daemon(home)
        with _service() as port:
            (home / "aileron/connectors/service.toml").write_text(CONNECTOR.format(port=port))
            names = {"connector": "local://bench/service", "operation": "say"}
            (home / "aileron/actions/noop.md").write_text(ACTION.format(**names))
            _aileron(home, "vault", "unlock")
            try:
                _mcp(home)
            finally:
                _aileron(home, "daemon", "stop")


def _daemon(home: Path) -> None:
    """From the process to the file that says where it serves, and what it then holds in memory."""
    took, ratios, resident = [], [], []
    for _ in range(ROUNDS):
        libraries = _importing(_LIBRARIES)
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-I", "-m", "aileron", "serve"], env=_environment(home), cwd=home)
        while not (home / "aileron/daemon.json").exists():
            time.sleep(0.005)
        took.append(time.perf_counter() - began)
        ratios.append(took[-1] / libraries)
        pages = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1])
        resident.append(pages * os.sysconf("SC_PAGE_SIZE") / 1e6)
        process.terminate()
        process.wait(30)
    row("daemon: start to serving", f"{median(took):.2f} s", f"{median(ratios):.2f} x importing its libraries")
    row("daemon: resident when idle", f"{median(resident):.0f} MB")


def _mcp(home: Path) -> None:
    """A client of the SDK, the installed server, the daemon, a service on loopback."""
    starts, ratios, calls = [], [], []
    for _ in range(ROUNDS):
        sdk = _importing(_SDK)
        started, took = asyncio.run(_session(home))
        starts.append(started)
        ratios.append(started / sdk)
        calls.append(sorted(took))
    row("aileron-mcp: start to initialize", f"{median(starts):.2f} s", f"{median(ratios):.2f} x importing the SDK")
    p50, p99 = (median(took[int(len(took) * part)] for took in calls) * 1e3 for part in (0.5, 0.99))
    row("a call through MCP, daemon and connector, one at a time", f"{p50:.2f} ms", f"p99 {p99:.2f} ms")


async def _session(home: Path) -> tuple[float, Sequence[float]]:
    """The seconds until C{initialize} was answered, and those of each call."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    where = json.loads((home / "aileron/daemon.json").read_text())
    variables = {**_environment(home), "AILERON_URL": where["url"], "AILERON_TOKEN": _open_session(where)}
    parameters = StdioServerParameters(command=str(_BIN / "aileron-mcp"), args=[], env=variables)
    took = []
    began = time.perf_counter()
    async with Client(stdio_client(parameters)) as client:
        started = time.perf_counter() - began
        for _ in range(CALLS):
            at = time.perf_counter()
            await client.call_tool("noop", {"text": "hello"})
            took.append(time.perf_counter() - at)
    return started, took


def _open_session(where: dict[str, str]) -> str:
    body = json.dumps({"agent": "bench", "working_dir": "/"}).encode()
    headers = {"Authorization": f"Bearer {where['launch_key']}", "Content-Type": "application/json"}
    with urlopen(Request(f"{where['url']}/v1/sessions", body, headers), timeout=10) as answer:  # our own daemon
        return str(json.load(answer)["token"])


@contextmanager
def _service() -> Iterator[int]:
    """The port of a service that says yes."""
    world = subprocess.Popen([sys.executable, "-m", "bench.world"], stdout=subprocess.PIPE, text=True)
    assert world.stdout
    try:
        yield int(world.stdout.readline())
    finally:
        world.terminate()
        world.wait(10)


def _importing(statement: str) -> float:
    began = time.perf_counter()
    subprocess.run([sys.executable, "-I", "-c", statement], check=True)
    return time.perf_counter() - began


def _environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "AILERON_HOME": str(home / "aileron")}


def _aileron(home: Path, *arguments: str) -> None:
    reading, writing = os.pipe()
    os.write(writing, _PASSPHRASE)
    os.close(writing)
    asked = ["--passphrase-fd", str(reading)] if arguments[0] == "vault" else []
    command = [str(_BIN / "aileron"), *arguments, *asked]
    subprocess.run(command, env=_environment(home), pass_fds=(reading,), capture_output=True, check=True)
    os.close(reading)
