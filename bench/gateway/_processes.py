"""Processes that are measured, or measure: started on a core of their own, looked at, ended."""

from __future__ import annotations

import os
import platform
import resource
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from attrs import frozen

_PATIENCE_SECONDS = 30
_TICKS = os.sysconf("SC_CLK_TCK")
_PAGE = os.sysconf("SC_PAGE_SIZE")


@frozen
class Cores:
    """Where what is measured runs, and where the tools do; the same core where there is only one."""

    measured: int
    tools: int


def cores() -> Cores:
    """The first two cores that this process may use.

    :raises SystemExit: we could not choose.
    """
    if platform.system() != "Linux":
        raise SystemExit("the gateway's benchmark needs Linux: its tools use epoll, and processes are pinned to cores")
    first, *others = sorted(os.sched_getaffinity(0))
    return Cores(first, others[0] if others else first)


def raise_descriptor_limit() -> int:
    """How many descriptors each process started from now on may have: as many as the system lets it."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    return hard


@frozen
class Server:
    """A process that serves a port of loopback."""

    pid: int
    port: int

    def cpu_seconds(self) -> float:
        """What all of its threads have used so far."""
        return cpu_seconds(Path(f"/proc/{self.pid}/stat").read_text())

    def exact_cpu_seconds(self) -> float:
        """The same to the nanosecond, of the threads that live, where the kernel says it; else as it is."""
        try:
            each = [path.read_text() for path in Path(f"/proc/{self.pid}/task").glob("*/schedstat")]
        except (FileNotFoundError, ProcessLookupError):  # a thread has ended meanwhile
            return self.exact_cpu_seconds() if Path(f"/proc/{self.pid}").exists() else self.cpu_seconds()
        return sum(int(text.split()[0]) for text in each) / 1e9 if each else self.cpu_seconds()

    def resident_bytes(self) -> int:
        """What of it is in memory, shared libraries included."""
        return int(Path(f"/proc/{self.pid}/statm").read_text().split()[1]) * _PAGE

    def descriptors(self) -> int:
        """How many it has open."""
        return len(list(Path(f"/proc/{self.pid}/fd").iterdir()))


def cpu_seconds(stat: str) -> float:
    """The processor time in a line of C{/proc/PID/stat}; the process's name in it may hold anything."""
    user, system = stat.rpartition(")")[2].split()[11:13]
    return (int(user) + int(system)) / _TICKS


def free_port() -> int:
    """A port of loopback that nobody has at the moment."""
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port: int = taken.getsockname()[1]
        return port


@contextmanager
def serving(
    command: Sequence[str],
    core: int,
    port_of: Callable[[subprocess.Popen[str]], int],
    environment: Mapping[str, str] | None = None,
) -> Iterator[Server]:
    """A server while it is needed.

    :param port_of: waits until it serves and says where.
    :raises RuntimeError: it does not come to serve, or ended before its time; with the last that it complained of.
    """
    with tempfile.TemporaryFile("w+") as complaints:
        process = start(command, core, environment, complaints)
        try:
            yield Server(process.pid, port_of(process))
            if process.poll() is not None:
                raise RuntimeError(f"{command[0]} ended with status {process.returncode}: {_last(complaints)}")
        except _NotStarted as error:
            raise RuntimeError(f"{command[0]} did not start: {_last(complaints)}") from error
        finally:
            end(process)


def _last(complaints: IO[str]) -> str:
    complaints.seek(0)
    return complaints.read()[-1000:]


class _NotStarted(Exception):
    """A server ended, or takes too long, before it serves."""


def start(
    command: Sequence[str],
    core: int,
    environment: Mapping[str, str] | None = None,
    complaints: IO[str] | None = None,
) -> subprocess.Popen[str]:
    """A process on one core, whose output is read by us.

    :param complaints: where its standard error goes; L{None}: where ours does.
    """
    return subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=complaints,
        text=True,
        env={**os.environ, **(environment or {})},
        preexec_fn=lambda: os.sched_setaffinity(0, {core}),  # noqa: PLW1509 no threads here
    )


def end(process: subprocess.Popen[str]) -> str:
    """What it still had to say after it was told to end."""
    process.terminate()
    try:
        return process.communicate(timeout=_PATIENCE_SECONDS)[0]
    except subprocess.TimeoutExpired:
        process.kill()
        return process.communicate()[0]


def printed_port(process: subprocess.Popen[str]) -> int:
    """The port in the first line that a server prints."""
    assert process.stdout
    line = process.stdout.readline()
    if not line:
        raise _NotStarted
    return int(line)


def until(ready: Callable[[], bool], process: subprocess.Popen[str]) -> None:
    """Wait for a server that prints nothing."""
    stop = time.monotonic() + _PATIENCE_SECONDS
    while not ready():
        if process.poll() is not None or time.monotonic() > stop:
            raise _NotStarted
        time.sleep(0.01)


def answers(port: int) -> bool:
    """Whether somebody accepts connections there."""
    with socket.socket() as attempt:
        return attempt.connect_ex(("127.0.0.1", port)) == 0
