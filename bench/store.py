"""The store alone, on disk and durable, in a process of its own: C{python -m bench.store WORK CALLERS SECONDS [URL]}.

With the URL of an empty database, the store uses that in place of a file. Compare the two only if both were measured
one after the other.

A "run" is what an ungated call costs: one commit when it is received and started, one when it has ended,
two events and an attempt in them.  Prints one JSON line for each figure.
"""

from __future__ import annotations

import json
import secrets
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import count, product
from pathlib import Path
from statistics import median
from typing import Any

from attrs import asdict, astuple, frozen
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import react

from aileron.audit import GENESIS, payload_digest, seal
from aileron.base.json import JSON, utc
from aileron.model.audit import DAEMON, Event
from aileron.model.authority import PendingLimits
from aileron.model.runs import AttemptRow, Run, RunState, StepRow, Transition
from aileron.store import Seals, Store, Tuning, make_store, read_address
from bench.table import ROUNDS, row

TASKS = (1, 32)
ARGUMENTS = {"channel": "#engineering", "summary": "What was shipped, in one or two sentences. " * 4}


@frozen
class Figures:
    per_second: float
    p50_ms: float
    p99_ms: float
    cpu_ms: float


def report(seconds: float) -> None:
    """One row for each kind of work and number of callers."""
    for what, tasks in product(WORK, TASKS):
        command = [sys.executable, "-m", "bench.store", what, str(tasks), str(seconds)]
        done = [subprocess.run(command, capture_output=True, text=True, check=True) for _ in range(ROUNDS)]
        rounds = [Figures(**json.loads(each.stdout)) for each in done]
        rate, p50, p99, cpu = (median(figures) for figures in zip(*map(astuple, rounds), strict=True))
        row(
            f"the store alone: {what}, {tasks} in flight",
            f"{rate:.0f} /s",
            f"{cpu:.2f} ms of cpu; p50 {p50:.1f} p99 {p99:.1f} ms",
        )


def event(name: str, type_: str) -> Event:
    payload: dict[str, JSON] = {"effect_key": name, "output": {"ts": "1700000000.000100", "channel": "C024BE91L"}}
    return Event(f"{name}-{type_}", type_, utc(time.time()), DAEMON, payload, run_id=name, action="ship-update")


def received(name: str) -> Run:
    now = utc(time.time())
    return Run(name, "ship-update", "1.0.0", "sha256:" + "0" * 64, ARGUMENTS, RunState.RECEIVED, False, name, now, now)


async def append(store: Store, name: str) -> None:
    await store.audit.append(event(name, "operator.login"))


async def run(store: Store, name: str) -> None:
    now = utc(time.time())
    started = (
        Transition(name, RunState.RECEIVED, RunState.APPROVED, now, ()),
        Transition(
            name,
            RunState.APPROVED,
            RunState.EXECUTING,
            now,
            (event(name, "execution.started"),),
            attempts=(AttemptRow(name, "post", 1, "started", now),),
        ),
    )
    await store.runs.receive(received(name), started, PendingLimits())
    now = utc(time.time())
    ended = Transition(
        name,
        RunState.EXECUTING,
        RunState.COMPLETED,
        now,
        (event(name, "execution.succeeded"),),
        result={"output": {"ts": "1700000000.000100"}},
        steps=(StepRow(name, "post", 0, "succeeded", {"ts": "1700000000.000100"}),),
        attempts=(AttemptRow(name, "post", 1, "succeeded", now, now, sent=True),),
    )
    await store.runs.apply(ended)


async def get(store: Store, name: str) -> None:
    await store.runs.get("known")


WORK: Mapping[str, Callable[[Store, str], Awaitable[None]]] = {"append": append, "run": run, "get": get}


async def drive(seconds: float, tasks: int, one: Callable[[str], Awaitable[None]]) -> Figures:
    """C{tasks} callers, each doing C{one} after the other."""
    took: list[float] = []
    numbers = count(1)
    stop = time.perf_counter() + seconds

    async def caller() -> None:
        while (began := time.perf_counter()) < stop:
            await one(f"{next(numbers):026}")  # like a ULID: sorts by time
            took.append(time.perf_counter() - began)

    began, cpu = time.perf_counter(), time.process_time()
    await gatherResults([Deferred.fromCoroutine(caller()) for _ in range(tasks)])
    elapsed = time.perf_counter() - began
    took.sort()
    return Figures(
        len(took) / elapsed,
        took[len(took) // 2] * 1e3,
        took[int(len(took) * 0.99)] * 1e3,
        (time.process_time() - cpu) / len(took) * 1e3,
    )


def make(reactor: Any, place: str, tuning: Tuning | None = None) -> Store:
    """Make a store that is not open, in a file or in the database at a URL."""
    seals = Seals(GENESIS, seal, payload_digest, lambda: secrets.token_hex(16))
    found = read_address(place) if place.startswith("postgresql:") else Path(place)
    return make_store(found, reactor, reactor, seals, tuning)


async def main(reactor: Any, what: str, tasks: int, seconds: float, url: str = "") -> None:
    with tempfile.TemporaryDirectory() as directory:
        store = make(reactor, url or f"{directory}/bench.db")
        await store.open()
        await store.runs.receive(received("known"), (), PendingLimits())
        figures = await drive(seconds, tasks, lambda name: WORK[what](store, name))
        await store.close()
    print(json.dumps(asdict(figures)))


if __name__ == "__main__":
    _what, _tasks, _seconds, *_url = sys.argv[1:]
    react(lambda reactor: Deferred.fromCoroutine(main(reactor, _what, int(_tasks), float(_seconds), *_url)))
