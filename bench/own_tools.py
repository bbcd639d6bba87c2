"""Reads and parked writes of agents' own tools beside a direct connection, a blind tunnel and mitmproxy."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import signal
import socket
import ssl
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from attrs import define, field, frozen

from bench.gateway._certificate import CERTIFICATE, KEY, write_certificate
from bench.gateway._processes import Server
from bench.own_tools_client import Way, connect_directly, connect_through
from bench.table import ROUNDS, row
from tests.matrix.crash.furnished import trust_all
from tests.matrix.crash.lives import Life, Nursery
from tests.matrix.crash.nursery import Birth
from tests.matrix.crash.sites import Site, operator
from tests.matrix.crash.trial import spelled
from tests.matrix.tools.home import bind, furnish
from tests.matrix.tools.tool import DIRECTORY, HOST, ToolSession, enter

KEPT, OPENED, LARGE_BYTES = 100, 15, 15 * 1024 * 1024
"""Reads of a round on one connection, and on new ones; and the bytes of a long answer."""

WARM = 10
PARKED, OF_SESSION = 1000, 20
_HOLD_SECONDS = 300
_PATIENCE_SECONDS = 30
_MITM = "mitmdump"
_ALLOWED = """[[allow]]
project = "{project}"
hosts = ["{host}:{port}"]
private_network = true
"""


@define
class Measured:
    """The figures of one way.

    :ivar kept: seconds of each read on a connection that is kept, by round; C{opened} on a new one.
    :ivar long: bytes in a second of long answers, by round.
    :ivar cpu: the proxy's milliseconds of processor time for a kept read, a new one and a long one, by round.
    """

    kept: list[list[float]] = field(factory=list)
    opened: list[list[float]] = field(factory=list)
    long: list[float] = field(factory=list)
    cpu: list[tuple[float, float, float]] = field(factory=list)


@frozen
class World:
    """What is measured, and what it is measured with.

    :ivar place: the directory of all files.
    :ivar port: the service's.
    """

    place: Path
    port: int
    trusts: ssl.SSLContext


@contextmanager
def _serving(place: Path) -> Iterator[World]:
    """The service, in a process of its own, which is known by a certificate that the daemon trusts as well."""
    write_certificate(place)
    command = [sys.executable, "-m", "bench.own_tools_service", str(place / CERTIFICATE), str(place / KEY)]
    with subprocess.Popen([*command, str(LARGE_BYTES)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout
        try:
            port = int(process.stdout.readline())
            yield World(place, port, ssl.create_default_context(cafile=str(place / CERTIFICATE)))
        finally:
            process.terminate()


@frozen
class Mitmproxy:
    """A mitmproxy that serves."""

    pid: int
    port: int
    host: str
    trusts: ssl.SSLContext

    def open(self) -> Way:
        """Open a connection through it."""
        return connect_through(self.port, b"", self.host, self.trusts)


@contextmanager
def _mitmproxy(world: World) -> Iterator[Mitmproxy | None]:
    """mitmproxy, if it is installed."""
    found = os.environ.get("AILERON_BENCH_MITMDUMP") or shutil.which(_MITM)
    if found is None:
        yield None
        return
    port, place = _free_port(), world.place / "mitm"
    options = {"confdir": str(place), "ssl_verify_upstream_trusted_ca": str(world.place / CERTIFICATE)}
    words = [word for name, value in options.items() for word in ("--set", f"{name}={value}")]
    command = [found, "--quiet", "--listen-host", "127.0.0.1", "--listen-port", str(port), *words]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        try:
            authority = place / "mitmproxy-ca-cert.pem"
            until = time.monotonic() + _PATIENCE_SECONDS
            while not _listens(port) or not authority.exists():
                if time.monotonic() > until:
                    raise RuntimeError("mitmproxy does not listen")
                time.sleep(0.1)
            trusts = ssl.create_default_context(cafile=str(authority))
            yield Mitmproxy(process.pid, port, f"{HOST}:{world.port}", trusts)
        finally:
            process.terminate()


@define
class Daemon:
    """The daemon, and a session with own tools and one without, both renewed in each round."""

    world: World
    life: Life
    found: Any
    who: Site
    tools: ToolSession
    plain: tuple[str, Site]

    async def renew(self) -> None:
        """Begin other sessions: the reads of each within a minute are limited."""
        await self.tools.end()
        self.tools, self.plain = await enter(self.found, self.world.port), await self._enter_plainly()

    async def _enter_plainly(self) -> tuple[str, Site]:
        launcher = Site(self.found.url, self.found.launch_key)
        said = await launcher.post("/v1/sessions", {"agent": "bench", "working_dir": DIRECTORY})
        return said.body["id"], launcher

    def own(self) -> Way:
        """Open a connection of a tool. The ticket is asked for as by the launcher, and its time counts."""
        return self._open(self.tools.id, self.tools.launcher, [], self.tools.context)

    def blind(self) -> Way:
        """Open a connection through which the daemon passes bytes that it does not read."""
        session_id, launcher = self.plain
        return self._open(session_id, launcher, [f"{HOST}:{self.world.port}"], self.world.trusts)

    def _open(self, session_id: str, launcher: Site, allow: list[str], trusts: ssl.SSLContext) -> Way:
        said = asyncio.run(launcher.post(f"/v1/sessions/{session_id}/egress", {"allow": allow}))
        line = b"AILERON-EGRESS " + said.body["ticket"].encode() + b"\r\n"
        return connect_through(said.body["port"], line, f"{HOST}:{self.world.port}", trusts)


async def _start(world: World, nursery: Nursery, name: str = "home") -> Daemon:
    home = world.place / name
    key = furnish(home, world.port, scheme="https", hold_seconds=_HOLD_SECONDS)
    allowed = home / "egress.toml"
    allowed.write_text(_ALLOWED.format(project=DIRECTORY, host=HOST, port=world.port))
    allowed.chmod(0o600)
    for step in (trust_all, bind):
        life = await nursery.begin(Birth(str(home), spelled(key)))
        await step(await operator(await _serves(life), key))
        life.end(signal.SIGTERM)
        await life.death
    birth = Birth(str(home), spelled(key), authority=str(world.place / CERTIFICATE))
    life = await nursery.begin(birth)
    found = await _serves(life)
    who = await operator(found, key)
    daemon = Daemon(world, life, found, who, await enter(found, world.port), ("", Site("", "")))
    await daemon.renew()
    return daemon


async def _replace(daemon: Daemon, nursery: Nursery) -> Daemon:
    """Start another daemon: in one that has freed the memory of long answers, what is parked would only reuse that."""
    daemon.life.end(signal.SIGTERM)
    await daemon.life.death
    return await _start(daemon.world, nursery, "another")


async def _serves(life: Life) -> Any:
    found = await life.found()
    if found is None:
        raise RuntimeError("the daemon does not start")
    return found


def report(seconds: float) -> None:
    """Print how long reads take by each way, how fast long answers come, and what a parked write takes in memory."""
    del seconds  # what is measured are numbers of requests
    with ExitStack() as running:
        place = Path(running.enter_context(tempfile.TemporaryDirectory(prefix="bench-"))).resolve()
        world = running.enter_context(_serving(place))
        loop = running.enter_context(asyncio.Runner())
        nursery = loop.run(Nursery.open())
        daemon = loop.run(_start(world, nursery))
        mitmproxy = running.enter_context(_mitmproxy(world))
        ways: dict[str, Callable[[], Way]] = {
            "direct": lambda: connect_directly(HOST, world.port, world.trusts),
            "tunnel": daemon.blind,
            "own tools": daemon.own,
            **({} if mitmproxy is None else {"mitmproxy": mitmproxy.open}),
        }
        pids = {"tunnel": daemon.life.pid, "own tools": daemon.life.pid}
        if mitmproxy is not None:
            pids["mitmproxy"] = mitmproxy.pid
        measured = _take_rounds(ways, pids, lambda: loop.run(daemon.renew()))
        _print_reads(measured)
        daemon = loop.run(_replace(daemon, nursery))
        _print_parked(daemon, loop)
        daemon.life.end(signal.SIGTERM)
        loop.run(nursery.close())


def _take_rounds(
    ways: Mapping[str, Callable[[], Way]], pids: Mapping[str, int], renew: Callable[[], None]
) -> dict[str, Measured]:
    measured = {name: Measured() for name in ways}
    order = list(ways)
    for _ in range(ROUNDS):
        for name in order:
            its, opening = measured[name], ways[name]
            used = [_processor_ms(pids.get(name))]
            its.kept.append(_read_kept(opening))
            used.append(_processor_ms(pids.get(name)))
            its.opened.append([_read_once(opening) for _ in range(OPENED)])
            used.append(_processor_ms(pids.get(name)))
            its.long.append(_read_long(opening))
            used.append(_processor_ms(pids.get(name)))
            kept, opened, long = (after - before for before, after in pairwise(used))
            its.cpu.append((kept / (KEPT + WARM), opened / OPENED, long))
        random.shuffle(order)
        renew()
    return measured


def _read_kept(opening: Callable[[], Way]) -> list[float]:
    with opening() as way:
        return [way.read("/small") for _ in range(KEPT + WARM)][WARM:]


def _read_once(opening: Callable[[], Way]) -> float:
    began = time.perf_counter()
    with opening() as way:
        way.read("/small")
        return time.perf_counter() - began


def _read_long(opening: Callable[[], Way]) -> float:
    with opening() as way:
        return LARGE_BYTES / way.read("/long", LARGE_BYTES)


def _print_reads(measured: Mapping[str, Measured]) -> None:
    direct, tunnel = measured["direct"], measured["tunnel"]
    for name, its in measured.items():
        kept, opened, long = (median(each) for each in zip(*its.cpu, strict=True))
        for what, mine, base, cpu in (
            ("kept", its.kept, direct.kept, kept),
            ("new", its.opened, direct.opened, opened),
        ):
            added = median(median(a) - median(b) for a, b in zip(mine, base, strict=True)) * 1e3
            times = median(median(a) / median(b) for a, b in zip(mine, base, strict=True))
            took = median(map(median, mine)) * 1e3
            row(
                f"a read, connection {what}: {name}",
                f"{took:.2f} ms",
                f"added {added:.2f} ms, {times:.1f} x direct; {cpu:.2f} ms of cpu",
            )
        share = median(a / b for a, b in zip(its.long, tunnel.long, strict=True))
        row(
            f"an answer of 15 MiB: {name}",
            f"{median(its.long) / 1e6:.0f} MB/s",
            f"{share:.2f} x tunnel; {long:.0f} ms of cpu",
        )


def _print_parked(daemon: Daemon, loop: asyncio.Runner) -> None:
    """Park writes, and print what each takes in the daemon's memory beside its body."""
    body = b'{"text": "' + b"x" * 1000 + b'"}'
    ways: list[Way] = []
    _park(daemon, loop, body, OF_SESSION, ways)  # what the first ones take once and for all
    before = _resident(daemon.life.pid)
    _park(daemon, loop, body, PARKED, ways)
    each = (_resident(daemon.life.pid) - before) / PARKED - len(body)
    row(f"{PARKED} parked writes: memory of each", f"{each / 1024:.1f} KB", "beside its body")
    for way in ways:
        way.close()


def _park(daemon: Daemon, loop: asyncio.Runner, body: bytes, count: int, ways: list[Way]) -> None:
    wanted = loop.run(_count_pending(daemon)) + count
    for number in range(count):
        if number % OF_SESSION == 0:
            daemon.tools = loop.run(enter(daemon.found, daemon.world.port))
        ways.append(daemon.own())
        ways[-1].write(f"/parked/{number}", body)
    until = time.monotonic() + _PATIENCE_SECONDS
    while loop.run(_count_pending(daemon)) < wanted:
        if time.monotonic() > until:
            raise RuntimeError("the writes are not parked")
        time.sleep(0.2)


async def _count_pending(daemon: Daemon) -> int:
    number, cursor = 0, ""
    while True:
        said = await daemon.who.get(f"/v1/action-approvals?limit=1000{cursor}")
        if not said.well:
            raise RuntimeError(f"the approvals cannot be counted: {said}")
        number += len(said.body["items"])
        if said.body["cursor"] is None:
            return number
        cursor = f"&cursor={said.body['cursor']}"


def _resident(pid: int) -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _processor_ms(pid: int | None) -> float:
    """Return the processor time of a process's threads so far, or 0 if there is no process."""
    return 0.0 if pid is None else Server(pid, 0).exact_cpu_seconds() * 1e3


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


def _listens(port: int) -> bool:
    with socket.socket() as trying:
        return trying.connect_ex(("127.0.0.1", port)) == 0
