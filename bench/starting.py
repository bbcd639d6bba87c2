"""The processor time of C{aileron-mcp} until it has answered C{initialize}, and until it has listed its tools."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

SDK = "import mcp.server.lowlevel"
MOST = 0.5
"""Both in times of importing the SDK's server: some clients give a server up after three seconds, and a loaded machine
takes five times as long."""

_INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}},
}
_INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}
_LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def start_seconds(command: str, environment: Mapping[str, str]) -> tuple[float, float]:
    """Start C{aileron-mcp} once: its seconds of processor time until C{initialize} was answered, and C{tools/list}."""
    with subprocess.Popen([command], stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment) as process:
        assert process.stdin and process.stdout
        greeted = _ask(process.stdin, process.stdout, process.pid, _INITIALIZE)
        listed = _ask(process.stdin, process.stdout, process.pid, _INITIALIZED, _LIST)
        process.kill()
    return greeted, listed


def import_seconds() -> float:
    """Processor time of a Python that imports the SDK's server and ends."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, "-I", "-c", SDK], check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _ask(to: IO[bytes], answers: IO[bytes], pid: int, *messages: Mapping[str, Any]) -> float:
    to.write(b"".join(json.dumps(message).encode() + b"\n" for message in messages))
    to.flush()
    assert "result" in json.loads(answers.readline())
    return _processor_seconds(pid)


def _processor_seconds(pid: int) -> float:
    """Sum the processor time of a process's threads, to the nanosecond."""
    tasks = Path(f"/proc/{pid}/task")
    return sum(int((tasks / thread / "schedstat").read_text().split()[0]) for thread in os.listdir(tasks)) / 1e9
