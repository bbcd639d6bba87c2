"""How fast the store is, on disk and durable: C{python bench/store.py [seconds]} prints a table.

A "run" is what an ungated call costs: one commit when it is received and started, one when it has ended,
three events and an attempt in them.
"""

from __future__ import annotations

import secrets
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import react

from aileron.audit import GENESIS, payload_digest, seal
from aileron.store import Seals, Store, make_store
from aileron.values import (
    DAEMON,
    JSON,
    AttemptRow,
    Event,
    PendingLimits,
    Run,
    RunState,
    StepRow,
    Transition,
    utc,
)

TASKS = (1, 32, 256)
ARGUMENTS = {"channel": "#engineering", "summary": "What was shipped, in one or two sentences. " * 4}


@frozen
class Figures:
    per_second: float
    p50_ms: float
    p99_ms: float
    cpu: float


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
        Transition(name, RunState.RECEIVED, RunState.APPROVED, now, (event(name, "run.received"),)),
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
        (time.process_time() - cpu) / elapsed,
    )


async def main(reactor: Any, seconds: float) -> None:
    seals = Seals(GENESIS, seal, payload_digest, lambda: secrets.token_hex(16))
    print(f"{'what':8} {'in flight':>9} {'a second':>9} {'p50 ms':>8} {'p99 ms':>8} {'cpu':>5}")
    with tempfile.TemporaryDirectory(dir=".") as directory:
        for what in (append, run, get):
            for tasks in TASKS:
                store = make_store(Path(directory, f"{what.__name__}-{tasks}.db"), reactor, reactor, seals)
                await store.open()
                await store.runs.receive(received("known"), (), PendingLimits())
                figures = await drive(seconds, tasks, lambda name, do=what, over=store: do(over, name))  # type: ignore[misc]
                await store.close()
                print(
                    f"{what.__name__:8} {tasks:9} {figures.per_second:9.0f} {figures.p50_ms:8.2f} "
                    f"{figures.p99_ms:8.2f} {figures.cpu:5.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    react(lambda reactor: Deferred.fromCoroutine(main(reactor, float(sys.argv[1] if sys.argv[1:] else 2))))
