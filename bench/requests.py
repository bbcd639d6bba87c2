"""The run endpoint beside a bare Klein route."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack

from bench.table import ROUNDS, row
from bench.turns import Server, standing, take_turns

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


def report(seconds: float) -> None:
    """One row for each kind, compared to what keeps nothing in the same round."""
    with ExitStack() as running:
        servers = {kind: running.enter_context(standing(kind)) for kind in KINDS}
        take_turns(list(servers.values()), ROUNDS * seconds, IN_FLIGHT)
    for kind, what in KINDS.items():
        mine = servers[kind]
        times = f"{mine.cpu_ms():.2f} ms of cpu; p50 {mine.middle('p50_ms'):.1f} p99 {mine.middle('p99_ms'):.1f} ms"
        row(what, f"{mine.middle('per_second'):.0f} req/s", f"{times}{_shares(kind, servers)}")


def _shares(kind: str, servers: Mapping[str, Server]) -> str:
    """How many requests it answers where what keeps less answers one."""
    shares = {against: servers[kind].times("per_second", servers[against]) for against in _AGAINST[kind]}
    return "".join(f"; {share:.3f} of {against}" for against, share in shares.items())
