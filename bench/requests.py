"""The run endpoint beside a bare Klein route: each server in a process of its own, the load in another.

All of them stand from the first to the last and are asked in turn, half a second each: a machine that others use is
twice as quick in one minute as in the next.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from statistics import median
from typing import Any

from attrs import field, frozen

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
_TURN_SECONDS = 0.5
_PATIENCE_SECONDS = 30
_PATH, _BODY = "/v1/actions/noop/run", '{"args":{"text":"hello"}}'

Figures = dict[str, float]


@frozen
class _Server:
    """One that is asked.

    :ivar at: where, and with which token.
    :ivar turns: what each turn gave.
    :ivar spent: what its process says at its end.
    """

    at: dict[str, Any]
    turns: list[Figures] = field(factory=list)
    spent: Figures = field(factory=dict)

    def middle(self, name: str) -> float:
        """What its turns gave, in the median."""
        return median(turn[name] for turn in self.turns)

    def cpu_ms(self) -> float:
        """Processor time of its process for one request, of all of them."""
        return self.spent["cpu_seconds"] / sum(turn["requests"] for turn in self.turns) * 1e3


def report(seconds: float) -> None:
    """One row for each kind, compared to what keeps nothing in the same round."""
    with ExitStack() as running:
        servers = {kind: running.enter_context(_serving(kind)) for kind in KINDS}
        order = list(servers.values())
        for _ in range(max(1, round(ROUNDS * seconds / _TURN_SECONDS))):
            for server in order:
                server.turns.append(_load(server.at))
            order.append(order.pop(0))  # so that none always follows the same other
    for kind, what in KINDS.items():
        mine = servers[kind]
        times = f"{mine.cpu_ms():.2f} ms of cpu; p50 {mine.middle('p50_ms'):.1f} p99 {mine.middle('p99_ms'):.1f} ms"
        row(what, f"{mine.middle('per_second'):.0f} req/s", f"{times}{_shares(kind, servers)}")


def _shares(kind: str, servers: Mapping[str, _Server]) -> str:
    """How many requests it answers where what keeps less answers one: the median of the rounds."""
    shares = {against: _share(servers[kind].turns, servers[against].turns) for against in _AGAINST[kind]}
    return "".join(f"; {share:.3f} of {against}" for against, share in shares.items())


def _share(turns: Sequence[Figures], others: Sequence[Figures]) -> float:
    return median(mine["per_second"] / other["per_second"] for mine, other in zip(turns, others, strict=True))


@contextmanager
def _serving(kind: str) -> Iterator[_Server]:
    command = [sys.executable, "-m", "bench.serving", *kind.split()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        server = _Server(json.loads(process.stdout.readline()))
        try:
            yield server
        finally:
            process.stdin.close()
            server.spent.update(json.loads(process.stdout.readline()))
            process.wait(_PATIENCE_SECONDS)


def _load(at: Mapping[str, Any]) -> Figures:
    arguments = [str(at["port"]), str(IN_FLIGHT), str(_TURN_SECONDS), at["token"], _PATH, _BODY]
    done = subprocess.run([sys.executable, "-m", "bench.load", *arguments], capture_output=True, text=True, check=True)
    figures: Figures = json.loads(done.stdout)
    if figures["wrong"]:
        raise RuntimeError(f"answers that are no success: {figures}")
    return figures
