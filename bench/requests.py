"""The run endpoint beside a bare Klein route: the server in one process, the load in another."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from statistics import median
from typing import Any

from bench.table import ROUNDS, row

IN_FLIGHT = 32
KINDS = {
    "bare": "a bare Klein route, JSON in and out, 32 in flight",
    "contract": "the same with a token's hash and two schemas, nothing kept",
    "contract lean": "that one on the daemon's reactor",
    "noop": "run endpoint: ungated no-op action, audit durable",
    "http": "the same through the HTTP connector",
}
_AGAINST = {
    "bare": (),
    "contract": ("bare",),
    "contract lean": ("contract",),
    "noop": ("bare", "contract", "contract lean"),
    "http": ("noop",),
}
_FIGURES = ("per_second", "cpu_ms", "p50_ms", "p99_ms")
_PATH, _BODY = "/v1/actions/noop/run", '{"args":{"text":"hello"}}'

Figures = dict[str, float]


def report(seconds: float) -> None:
    """One row for each kind, compared to what keeps nothing in the same round."""
    rounds = [{kind: measured(kind, seconds) for kind in KINDS} for _ in range(ROUNDS)]
    for kind, what in KINDS.items():
        rate, cpu, p50, p99 = (median(each[kind][name] for each in rounds) for name in _FIGURES)
        times = f"{cpu:.2f} ms of cpu; p50 {p50:.1f} p99 {p99:.1f} ms"
        row(what, f"{rate:.0f} req/s", f"{times}{_shares(kind, rounds)}")


def _shares(kind: str, rounds: Sequence[Mapping[str, Figures]]) -> str:
    """How many requests it answers where what keeps less answers one."""
    shares = {
        against: median(each[kind]["per_second"] / each[against]["per_second"] for each in rounds)
        for against in _AGAINST[kind]
    }
    return "".join(f"; {share:.3f} of {against}" for against, share in shares.items())


def measured(kind: str, seconds: float) -> Figures:
    """What one server does under load, and the processor time of its process for one request."""
    command = [sys.executable, "-m", "bench.serving", *kind.split()]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdin and process.stdout
    at = json.loads(process.stdout.readline())
    figures = _load(at, seconds)
    process.stdin.close()
    cpu = json.loads(process.stdout.readline())["cpu_seconds"]
    process.wait(30)
    return {**figures, "cpu_ms": cpu / figures["requests"] * 1e3}


def _load(at: dict[str, Any], seconds: float) -> Figures:
    arguments = [str(at["port"]), str(IN_FLIGHT), str(seconds), at["token"], _PATH, _BODY]
    done = subprocess.run([sys.executable, "-m", "bench.load", *arguments], capture_output=True, text=True, check=True)
    figures: Figures = json.loads(done.stdout)
    if figures["wrong"]:
        raise RuntimeError(f"answers that are no success: {figures}")
    return figures
