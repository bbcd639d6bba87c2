"""The installed commands: how soon the daemon and C{aileron-mcp} serve, what they hold, what a call takes."""

from __future__ import annotations

import asyncio
import json
import os
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles
from typing import TYPE_CHECKING
from urllib.request import Request, urlopen

from attrs import frozen

from bench.connection import opened
from bench.endpoint import ACTION, CONNECTOR
from bench.starting import MOST, import_seconds, start_seconds
from bench.table import ROUNDS, row
from bench.turns import standing

if TYPE_CHECKING:
    from mcp import Client

CALLS = 100
LOOPS = 5

Call = Callable[[], Awaitable[object]]
Rounds = list[list[list[float]]]
"""For each round the seconds of calls through MCP, of those straight, and of those of the SDK alone."""

_BIN = Path(sys.executable).parent
_PASSPHRASE = b"seven quiet lamps over the harbour\n"
_LIBRARIES = (
    "import twisted.internet.reactor, twisted.web.server, twisted.web.client, twisted.enterprise.adbapi, sqlite3,"
    " klein, jsonschema, cryptography, attrs, ulid, rfc8785, yaml"
)


@frozen
class Serving:
    """A daemon that is unlocked, and offers the action C{noop}."""

    home: Path

    @property
    def url(self) -> str:
        """Its site for agents."""
        return str(self._where()["url"])

    def open_session(self) -> str:
        """The token of a new session."""
        return _open_session(self._where())

    def _where(self) -> dict[str, str]:
        where: dict[str, str] = json.loads((self.home / "aileron/daemon.json").read_text())
        return where


def report(seconds: float) -> None:
    """The daemon's rows, then those of C{aileron-mcp} over a daemon that is unlocked."""
    with _made() as home:
        _daemon(home)
        with _unlocked(home) as daemon:
            _mcp(daemon)


@contextmanager
def serving(config: str = "") -> Iterator[Serving]:
    """A daemon in a home of its own.

    :param config: the text of its C{config.yaml}.
    """
    with _made() as home:
        if config:
            (home / "aileron/config.yaml").write_text(config)
            _aileron(home, "vault", "unlock")
            _aileron(home, "config", "trust", "--yes")
            _aileron(home, "daemon", "stop")
        with _unlocked(home) as daemon:
            yield daemon


@contextmanager
def _made() -> Iterator[Path]:
    """A user's home in which Aileron's was made, and no daemon runs."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory)
        try:
            _aileron(home, "vault", "init")
        finally:
            _aileron(home, "daemon", "stop")
        yield home


@contextmanager
def _unlocked(home: Path) -> Iterator[Serving]:
    with _service() as port:
        (home / "aileron/connectors/service.toml").write_text(CONNECTOR.format(port=port))
        names = {"connector": "local://bench/service", "operation": "say"}
        (home / "aileron/actions/noop.md").write_text(ACTION.format(**names))
        try:
            _aileron(home, "vault", "unlock")
            _aileron(home, "action", "trust", "--all", "--yes")
            yield Serving(home)
        finally:
            _aileron(home, "daemon", "stop")


def _daemon(home: Path) -> None:
    """From the process to the file that says where it serves, and what it then holds in memory."""
    took, ratios, idle, heavier = [], [], [], []
    for _ in range(ROUNDS):
        libraries = _importing(_LIBRARIES)
        held = _held_by(_LIBRARIES)
        began = time.perf_counter()
        process = subprocess.Popen([sys.executable, "-I", "-m", "aileron", "serve"], env=_environment(home), cwd=home)
        try:
            while not (home / "aileron/daemon.json").exists():
                time.sleep(0.005)
            took.append(time.perf_counter() - began)
            ratios.append(took[-1] / libraries)
            idle.append(resident(process.pid))
            heavier.append(idle[-1] / held)
        finally:
            process.terminate()
            process.wait(30)
    row("daemon: start to serving", f"{median(took):.2f} s", f"{median(ratios):.2f} x importing its libraries")
    row("daemon: resident when idle", f"{median(idle):.0f} MB", f"{median(heavier):.2f} x its libraries alone")


def _mcp(daemon: Serving) -> None:
    """A client of the SDK and the installed server; behind it what keeps nothing, then the daemon; parts of that."""
    apart, whole = [], []
    _starting(daemon)
    for _ in range(ROUNDS):
        with standing("contract lean") as route:  # an agent's server takes it for a daemon
            apart += asyncio.run(_called(route.url, route.at["token"], _one_kind_at_a_time))
        whole += asyncio.run(_called(daemon.url, daemon.open_session(), _in_turn))
    _rows(apart, "a call through MCP to a route that keeps nothing", "the same call straight to that route", "")
    _rows(
        whole, "a call through MCP, daemon and connector; in turn", "the same call straight to the daemon", "; in turn"
    )


def _starting(daemon: Serving) -> None:
    """The processor time until the first answers, held against that of importing the SDK."""
    token, taken = daemon.open_session(), []
    with tempfile.TemporaryDirectory() as home:
        variables = {**_environment(Path(home)), "AILERON_URL": daemon.url, "AILERON_TOKEN": token}
        for _ in range(ROUNDS):
            sdk = import_seconds()
            taken.append([(each, each / sdk) for each in start_seconds(str(_BIN / "aileron-mcp"), variables)])
    for what, kind in zip(("initialize", "its tools"), zip(*taken, strict=True), strict=True):
        seconds, ratios = (median(each) for each in zip(*kind, strict=True))
        told = f"{ratios:.2f} x importing the SDK (must: {MOST})"
        row(f"aileron-mcp: processor time to {what}", f"{seconds:.2f} s", told)
        if ratios > MOST:
            raise SystemExit(f"aileron-mcp takes more than {MOST} x importing the SDK until {what}.")


def _rows(rounds: Rounds, through: str, straight: str, how: str) -> None:
    """What a call takes, and how much more than straight, in calls of the SDK alone: the median of the rounds."""
    halves = [list(map(median, kinds)) for kinds in rounds]
    late = median(quantiles(whole, n=100)[-1] for whole, *_ in rounds)
    called, direct, least = (median(each) * 1e3 for each in zip(*halves, strict=True))
    more = median(whole - part for whole, part, _ in halves) * 1e3
    times = median((whole - part) / alone for whole, part, alone in halves)
    told = f"p99 {late * 1e3:.1f} ms; {more:.1f} ms more than straight = {times:.2f} x the SDK alone"
    row(through, f"{called:.1f} ms", told)
    row(f"{straight}{how}", f"{direct:.1f} ms")
    row(f"a call of a server made of the SDK alone{how}", f"{least:.1f} ms")


async def _called(url: str, token: str, timed: Callable[[Sequence[Call]], Awaitable[Rounds]]) -> Rounds:
    """Calls through C{aileron-mcp}, straight, and of the SDK alone."""
    with tempfile.TemporaryDirectory() as home:
        variables = {**_environment(Path(home)), "AILERON_URL": url, "AILERON_TOKEN": token}
        async with (
            _client(str(_BIN / "aileron-mcp"), [], variables) as served,
            _client(sys.executable, ["-m", "bench.echo"], dict(os.environ)) as bare,
        ):
            connection = await opened(int(url.rpartition(":")[2]))
            calls: list[Call] = [
                lambda: served.call_tool("noop", _words()),
                # Under a key of its own, as aileron-mcp sends it: the daemon looks whether it knows it.
                lambda: connection.post(
                    "/v1/actions/noop/run", token, {"args": _words(), "idempotency_key": secrets.token_hex(16)}
                ),
                lambda: bare.call_tool("noop", _words()),
            ]
            rounds = await timed(calls)
            connection.close()
    return rounds


async def _one_kind_at_a_time(calls: Sequence[Call]) -> Rounds:
    """Short loops, in each of which a call follows the last one at once: how the bound was set."""
    return [[[await _timed(call) for _ in range(CALLS)] for call in calls] for _ in range(LOOPS)]


async def _in_turn(calls: Sequence[Call]) -> Rounds:
    """Each waits for the others before it is asked again, as an agent asks: now and then.

    A process that is asked again at once stays in the processor's caches and is never put to sleep, and is up to twice
    as quick; where calls that take unequally long are compared, that is most of the difference.
    """
    took = [[await _timed(call) for call in calls] for _ in range(CALLS * LOOPS)]
    return [[list(kind) for kind in zip(*took, strict=True)]]


def _client(command: str, arguments: list[str], variables: dict[str, str]) -> Client:
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    return Client(stdio_client(StdioServerParameters(command=command, args=arguments, env=variables)))


def _words() -> dict[str, str]:
    """Arguments of one call alone: the same call again and again is a loop, which the daemon stops."""
    return {"text": secrets.token_hex(8)}


async def _timed(call: Call) -> float:
    began = time.perf_counter()
    await call()
    return time.perf_counter() - began


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


def _held_by(statement: str) -> float:
    """Megabytes that are resident after C{statement}."""
    command = [sys.executable, "-I", "-c", f"{statement}\nprint(flush=True)\ninput()"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        process.stdout.readline()
        held = resident(process.pid)
        process.communicate("\n")
    return held


def resident(pid: int) -> float:
    """Megabytes of a process that are in memory, shared libraries included."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


def _environment(home: Path) -> dict[str, str]:
    return {"HOME": str(home), "PATH": os.environ["PATH"], "AILERON_HOME": str(home / "aileron")}


def _aileron(home: Path, *arguments: str) -> None:
    reading, writing = os.pipe()
    os.write(writing, _PASSPHRASE)
    os.close(writing)
    asked = [] if arguments[0] == "daemon" else ["--passphrase-fd", str(reading)]
    command = [str(_BIN / "aileron"), *arguments, *asked]
    subprocess.run(command, env=_environment(home), pass_fds=(reading,), capture_output=True, check=True)
    os.close(reading)
