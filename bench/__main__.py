"""C{python -m bench [seconds]}: one table.  Times of a shared machine say little: read the ratios."""

from __future__ import annotations

import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

BIN = Path(sys.executable).parent
PASSPHRASE = b"seven quiet lamps over the harbour\n"
ROUNDS = 5


def row(what: str, value: str, compared: str = "") -> None:
    print(f"{what:58} {value:>14}  {compared}", flush=True)


def endpoint(kind: str, seconds: float) -> dict[str, float]:
    """Load one kind of endpoint; its figures, and the processor time of its process for one request."""
    process = subprocess.Popen(
        [sys.executable, "-m", "bench.endpoint", kind], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin and process.stdout
    at = json.loads(process.stdout.readline())
    figures = load(at, 32, seconds)
    process.stdin.close()
    cpu = json.loads(process.stdout.readline())["cpu_seconds"]
    process.wait(30)
    return {**figures, "cpu_ms": cpu / figures["requests"] * 1e3}


def load(at: dict[str, Any], connections: int, seconds: float) -> dict[str, float]:
    path, body = "/v1/actions/noop/run", '{"args":{"text":"hello"}}'
    arguments = [str(at["port"]), str(connections), str(seconds), at["token"], path, body]
    done = subprocess.run([sys.executable, "-m", "bench.load", *arguments], capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    assert not figures["wrong"], figures
    return figures


def endpoints(seconds: float) -> None:
    bare: dict[str, float] = {}
    for kind, what in (
        ("bare", "a bare Klein route, JSON in and out, 32 in flight"),
        ("noop", "run endpoint, ungated no-op action, audit durable"),
        ("http", "the same through the HTTP connector"),
    ):
        found = endpoint(kind, seconds)
        bare = bare or found
        ratio = f"{found['per_second'] / bare['per_second']:.2f} of bare"
        cpu = f"cpu {found['cpu_ms']:.2f} ms a request, {found['cpu_ms'] / bare['cpu_ms']:.2f} of bare"
        row(
            what,
            f"{found['per_second']:.0f} req/s",
            f"{ratio}; {cpu}; p50 {found['p50_ms']:.1f} p99 {found['p99_ms']:.1f} ms",
        )


def environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "AILERON_HOME": str(home / "aileron")}


def aileron(home: Path, *arguments: str) -> str:
    reading, writing = os.pipe()
    os.write(writing, PASSPHRASE)
    os.close(writing)
    command = [
        str(BIN / "aileron"),
        *arguments,
        *(["--passphrase-fd", str(reading)] if arguments[0] == "vault" else []),
    ]
    done = subprocess.run(
        command, env=environment(home), pass_fds=(reading,), capture_output=True, text=True, check=True
    )
    os.close(reading)
    return done.stdout


def daemon_start(home: Path) -> None:
    """From the process to the first healthy answer, and what it then holds in memory."""
    aileron(home, "vault", "init")
    aileron(home, "daemon", "stop")
    serve = [sys.executable, "-I", "-m", "aileron", "serve"]
    took, python = [], []
    for _ in range(ROUNDS):
        began = time.perf_counter()
        subprocess.run([sys.executable, "-I", "-c", "import twisted.web.server, klein, treq, cryptography"], check=True)
        python.append(time.perf_counter() - began)
        began = time.perf_counter()
        process = subprocess.Popen(serve, env=environment(home), cwd=home)
        discovery = home / "aileron" / "daemon.json"
        while not discovery.exists():
            time.sleep(0.005)
        took.append(time.perf_counter() - began)
        resident = int(Path(f"/proc/{process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e6
        process.terminate()
        process.wait(30)
    ratio = statistics.median(took) / statistics.median(python)
    row("daemon, start to serving", f"{statistics.median(took):.2f} s", f"{ratio:.2f} of importing its libraries")
    row("daemon, resident when idle", f"{resident:.0f} MB")


async def mcp(home: Path, calls: int) -> None:
    """A real client of the installed server, against a real daemon: its start, and calls of a read of nothing."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    where = json.loads((home / "aileron" / "daemon.json").read_text())
    token = open_session(where)
    variables = {**environment(home), "AILERON_URL": where["url"], "AILERON_TOKEN": token}
    parameters = StdioServerParameters(command=str(BIN / "aileron-mcp"), args=[], env=variables)
    began = time.perf_counter()
    async with Client(stdio_client(parameters)) as client:
        started = time.perf_counter() - began
        took = []
        for _ in range(calls):
            at = time.perf_counter()
            await client.call_tool("noop", {"text": "hello"})
            took.append(time.perf_counter() - at)
    took.sort()
    imported = time.perf_counter()
    subprocess.run([sys.executable, "-c", "import mcp.server.lowlevel"], check=True)
    imported = time.perf_counter() - imported
    row("aileron-mcp, start to initialize", f"{started:.2f} s", f"{started / imported:.2f} of importing the SDK")
    row(
        "a call through MCP, daemon and service, p50",
        f"{took[len(took) // 2] * 1e3:.2f} ms",
        f"p99 {took[int(len(took) * 0.99)] * 1e3:.2f} ms",
    )


def open_session(where: dict[str, str]) -> str:
    from urllib.request import Request, urlopen

    body = json.dumps({"agent": "bench", "working_dir": "/"}).encode()
    headers = {"Authorization": f"Bearer {where['launch_key']}", "Content-Type": "application/json"}
    with urlopen(Request(f"{where['url']}/v1/sessions", body, headers), timeout=10) as answer:  # our own daemon
        return str(json.load(answer)["token"])


def through_mcp(home: Path) -> None:
    from bench.endpoint import ACTION, CONNECTOR

    world = subprocess.Popen([sys.executable, "-m", "bench.world"], stdout=subprocess.PIPE, text=True)
    assert world.stdout
    port = int(world.stdout.readline())
    try:
        (home / "aileron/connectors/service.toml").write_text(CONNECTOR.format(port=port))
        (home / "aileron/actions/noop.md").write_text(ACTION.format(connector="local://bench/service", operation="say"))
        aileron(home, "vault", "unlock")
        asyncio.run(mcp(home, 300))
    finally:
        aileron(home, "daemon", "stop")
        world.terminate()
        world.wait(10)


def main(seconds: float) -> None:
    endpoints(seconds)
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        daemon_start(home)
        through_mcp(home)


if __name__ == "__main__":
    main(float(sys.argv[1]) if sys.argv[1:] else 3.0)
