"""A store that several daemons share: C{python -m bench.scale SECONDS [URL]}.

With the URL of an empty database on a server of this machine: one daemon alone, and one, two and four that share the
database. Without: one with a file. Each daemon is a process with a store and 32 runs in flight. Prints one JSON line
for each number of daemons.

In each daemon a caller waits for one decision after another, which the next daemon makes as soon as it is notified.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import react
from twisted.internet.threads import deferToThread

from aileron.base.json import utc
from aileron.model.authority import PendingLimits
from aileron.model.daemons import ProcessFacts
from aileron.model.runs import RunState, Transition
from aileron.store import Decided, News, Store, Tuning
from aileron.testing import example_ask, example_decision
from bench.store import event, make, received, run

CALLERS = 32
NUMBERS = (1, 2, 4)
_VAULT = "bench"
_LIMITS = PendingLimits(per_session=10**6, per_action=10**6, per_home=10**6)
_TICK = os.sysconf("SC_CLK_TCK")
_LOOK_SECONDS = 0.05
_WAITING = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
_PIDS = "SELECT pid FROM pg_stat_activity WHERE pid <> pg_backend_pid()"
_UNDONE = "SELECT xact_rollback, deadlocks FROM pg_stat_database WHERE datname = current_database()"


@define
class Daemon:
    """One process, which keeps runs, asks for decisions and decides what the daemon before it asked.

    :ivar number: the number of daemons that share the database, or 0 for one that has it alone.
    :ivar took: the seconds from each decision until its caller had it.
    """

    store: Store
    index: int
    number: int
    ended: int = 0
    took: list[float] = field(factory=list)
    _waits: dict[str, Deferred[None]] = field(factory=dict)
    _numbers: Iterator[int] = field(factory=lambda: count(1))

    async def work(self, seconds: float) -> float:
        """Keep runs for some seconds. Return the processor time."""
        stop, cpu = time.perf_counter() + seconds, time.process_time()
        work = [self._keep_runs(stop) for _ in range(CALLERS)]
        await gatherResults([Deferred.fromCoroutine(each) for each in (*work, self._ask(stop))])
        return time.process_time() - cpu

    async def _keep_runs(self, stop: float) -> None:
        while time.perf_counter() < stop:
            await run(self.store, self._name(""))
            self.ended += 1

    async def _ask(self, stop: float) -> None:
        while time.perf_counter() < stop:
            name = self._name(f"ask-{self.index}-")
            asked = Transition(
                name, RunState.RECEIVED, RunState.PENDING, utc(time.time()), (event(name, "asked"),), ask=example_ask()
            )
            self._waits[name] = heard = Deferred[None]()
            await self.store.runs.receive(evolve(received(name), gated=True), (asked,), _LIMITS)
            if self.number <= 1:
                await self._decide(name)
            await heard
            found = await self.store.runs.get(name)
            assert found is not None
            self.took.append(time.time() - found.changed_at.timestamp())

    async def _decide(self, name: str) -> None:
        decided = Transition(
            name,
            RunState.PENDING,
            RunState.DENIED,
            utc(time.time()),
            (event(name, "decided"),),
            decision=example_decision(approved=False),
        )
        await self.store.runs.apply(decided)
        self._tell(name)

    def hear(self, news: News) -> None:
        """Decide what the daemon before this one has asked, and wake the caller of what was decided."""
        before = f"ask-{(self.index - 1) % max(self.number, 1)}-"
        for name in news.runs or ():
            if name.startswith(before):
                Deferred.fromCoroutine(self._decide(name))
            else:
                self._tell(name)

    def _tell(self, name: str) -> None:
        heard = self._waits.pop(name, None)
        if heard is not None:
            heard.callback(None)

    def _name(self, kind: str) -> str:
        return f"{kind}{self.number}{self.index}{next(self._numbers):024}"


async def serve(reactor: Any, place: str, index: int, number: int, seconds: float) -> None:
    """Be one of the daemons: open the store, begin at a line on stdin, print figures, and close at its end."""
    process = ProcessFacts(f"d{number}-{index}")
    store = make(reactor, place, Tuning(process=process, several=number > 0, lease_seconds=3600))
    daemon = Daemon(store, index, number)
    await store.open()
    if store.shared is not None:
        await store.shared.daemons.join()
        store.shared.daemons.known = lambda: Decided(_VAULT, "decided", "pauses", None)
        store.shared.listener.heard = daemon.hear
        store.shared.listener.start()
    print("ready", flush=True)
    await deferToThread(sys.stdin.readline)
    cpu = await daemon.work(seconds)
    print(json.dumps({"ended": daemon.ended, "cpu": cpu, "took": daemon.took}), flush=True)
    await deferToThread(sys.stdin.readline)
    if store.shared is not None:
        await store.shared.daemons.leave()
    await store.close()


async def prepare(reactor: Any, url: str) -> None:
    """Make the tables, and a row of the vault."""
    store = make(reactor, url)
    await store.open()
    await store.close()
    shared = make(reactor, url, Tuning(several=True)).shared
    assert shared is not None
    shared.vaults.put(_VAULT, None, 1, "decided", b"{}")
    shared.vaults.close()


@contextmanager
def started(place: str, number: int, seconds: float) -> Iterator[Sequence[subprocess.Popen[str]]]:
    """Start the daemons, which are ready then."""
    daemons = [
        subprocess.Popen(
            [sys.executable, "-m", "bench.scale", "serve", place, str(index), str(number), str(seconds)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for index in range(max(number, 1))
    ]
    try:
        for each in daemons:
            answer(each)
        yield daemons
        for each in daemons:
            each.communicate()
    finally:
        for each in daemons:
            each.kill()
            each.communicate()


def answer(daemon: subprocess.Popen[str]) -> str:
    """Return the next line of a daemon."""
    assert daemon.stdout is not None
    line = daemon.stdout.readline()
    if not line:
        raise RuntimeError("a daemon of the benchmark has ended")
    return line


@define
class Server:
    """What is read from the server beside the daemons."""

    connection: Any

    def processor_seconds(self) -> Mapping[int, float]:
        """Return the processor time of each process of the server but that of this connection."""
        found = {}
        for (pid,) in self.connection.execute(_PIDS).fetchall():
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            found[pid] = (int(fields[11]) + int(fields[12])) / _TICK
        return found

    def undone(self) -> int:
        """Return the number of transactions that were undone."""
        return sum(self.connection.execute(_UNDONE).fetchone())

    def waiting(self) -> int:
        """Return the number of daemons that wait for a lock now."""
        return int(self.connection.execute(_WAITING).fetchone()[0])


def measure(place: str, number: int, seconds: float, server: Server | None) -> Mapping[str, float]:
    """Return the figures of some daemons.

    :param number: 0 for one daemon that has the place alone.
    """
    waiting = [0]
    with started(place, number, seconds) as daemons:
        before, undone = ({}, 0) if server is None else (server.processor_seconds(), server.undone())
        for each in daemons:
            assert each.stdin is not None
            each.stdin.write("\n")
            each.stdin.flush()
        stop = time.monotonic() + seconds
        while server is not None and time.monotonic() < stop:
            waiting.append(server.waiting())
            time.sleep(_LOOK_SECONDS)
        found = [json.loads(answer(each)) for each in daemons]
        after = {} if server is None else server.processor_seconds()
    ended = sum(each["ended"] for each in found)
    took = sorted(second for each in found for second in each["took"])
    return {
        "daemons": number or 1,
        "alone": not number,
        "per_second": ended / seconds,
        "cpu_ms": sum(each["cpu"] for each in found) / ended * 1e3,
        "server_cpu_ms": sum(spent - before.get(pid, 0.0) for pid, spent in after.items()) / ended * 1e3,
        "decision_p50_ms": took[len(took) // 2] * 1e3,
        "decision_p99_ms": took[int(len(took) * 0.99)] * 1e3,
        "waiting": sum(waiting) / len(waiting),
        "undone_per_1000": 0 if server is None else (server.undone() - undone) / ended * 1e3,
    }


def main(seconds: float, url: str = "") -> None:
    """Print the figures of a file, or of the numbers of daemons on a server."""
    if not url:
        with tempfile.TemporaryDirectory() as directory:
            print(json.dumps(measure(f"{directory}/bench.db", 0, seconds, None)))
        return
    import psycopg

    command = [sys.executable, "-m", "bench.scale", "prepare", url]
    subprocess.run(command, check=True)
    with psycopg.connect(url, autocommit=True) as connection:
        for number in (0, *NUMBERS):
            print(json.dumps(measure(url, number, seconds, Server(connection))), flush=True)


if __name__ == "__main__":
    if sys.argv[1] == "serve":
        _place, _index, _number, _seconds = sys.argv[2:]
        react(lambda it: Deferred.fromCoroutine(serve(it, _place, int(_index), int(_number), float(_seconds))))
    elif sys.argv[1] == "prepare":
        react(lambda it: Deferred.fromCoroutine(prepare(it, sys.argv[2])))
    else:
        main(float(sys.argv[1]), *sys.argv[2:])
