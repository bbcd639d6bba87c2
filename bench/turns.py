"""Endpoints that are asked in turn: each server in a process of its own, the load in another.

All of them stand from the first to the last, and each is asked for half a second at a time: a machine that others use
is twice as quick in one minute as in the next.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from statistics import median
from typing import Any

from attrs import field, frozen

_TURN_SECONDS = 0.5
_PATIENCE_SECONDS = 30
_PATH, _BODY = "/v1/actions/noop/run", '{"args":{"text":"hello"}}'

Figures = dict[str, float]


@frozen
class Server:
    """One that is asked.

    :ivar pid: of its process.
    :ivar at: where, with which token, and which key opens sessions.
    :ivar turns: what each turn gave.
    :ivar spent: what its process says at its end.
    """

    pid: int
    at: dict[str, Any]
    turns: list[Figures] = field(factory=list)
    spent: Figures = field(factory=dict)

    @property
    def url(self) -> str:
        """Where it serves."""
        return f"http://127.0.0.1:{self.at['port']}"

    def middle(self, name: str) -> float:
        """What its turns gave, in the median."""
        return median(turn[name] for turn in self.turns)

    def times(self, name: str, other: Server) -> float:
        """What its turns gave, of what the other's gave: the median of the rounds."""
        return median(mine[name] / its[name] for mine, its in zip(self.turns, other.turns, strict=True))

    def cpu_ms(self) -> float:
        """Processor time of its process for one request, of all of them."""
        return self.spent["cpu_seconds"] / sum(turn["requests"] for turn in self.turns) * 1e3


@contextmanager
def standing(kind: str) -> Iterator[Server]:
    """A server of a kind that L{bench.serving} knows, until the end of the block."""
    command = [sys.executable, "-m", "bench.serving", *kind.split()]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        server = Server(process.pid, json.loads(process.stdout.readline()))
        try:
            yield server
        finally:
            process.stdin.close()
            server.spent.update(json.loads(process.stdout.readline()))
            process.wait(_PATIENCE_SECONDS)


def take_turns(servers: Sequence[Server], seconds: float, in_flight: int) -> None:
    """Ask each for C{seconds} in all."""
    order = list(servers)
    for _ in range(max(1, round(seconds / _TURN_SECONDS))):
        for server in order:
            server.turns.append(_load(server.at, in_flight))
        order.append(order.pop(0))  # so that none always follows the same other


def _load(at: Mapping[str, Any], in_flight: int) -> Figures:
    arguments = [str(at["port"]), str(in_flight), str(_TURN_SECONDS), at["token"], _PATH, _BODY]
    done = subprocess.run([sys.executable, "-m", "bench.load", *arguments], capture_output=True, text=True, check=True)
    figures: Figures = json.loads(done.stdout)
    if figures["wrong"]:
        raise RuntimeError(f"answers that are no success: {figures}")
    return figures
