"""Every server in turn over one daemon, round after round; medians, and ratios to ours within the round."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from statistics import median

from attrs import frozen

from bench.commands import resident, serving
from bench.table import ROUNDS, row

from ._client import Client, client_of
from ._contenders import Contender, Place, contenders

WARM = 20
TOGETHER = 10


@frozen
class Figures:
    """What one server did in one round.

    :ivar started: seconds to C{initialize}.
    :ivar took: of each call, one at a time, in seconds, sorted.
    :ivar rate: calls a second, L{TOGETHER} in flight.
    :ivar memory: megabytes resident after all that.
    """

    started: float
    took: Sequence[float]
    rate: float
    memory: float

    def of(self, part: float) -> float:
        """The time within which that part of the calls was answered, in seconds."""
        return self.took[int(len(self.took) * part)]


def report(seconds: float) -> None:
    """Its rows.

    :param seconds: of calls one at a time, and again of calls together, of each server in each round.
    """
    with serving("mcp:\n  http: true\n") as daemon:
        rounds: dict[str, list[Figures]] = {}
        there = [one for one in contenders(Place("", "")) if not one.missing]
        for one in contenders(Place("", "")):
            if one.missing:
                row(one.name, "-", one.missing)
        for _ in range(ROUNDS):
            for name in [one.name for one in there]:
                place = Place(daemon.url, daemon.open_session())
                (contender,) = [one for one in contenders(place) if one.name == name]
                rounds.setdefault(name, []).append(asyncio.run(_measured(contender, place, seconds)))
    ours = rounds[there[0].name]
    for name, theirs in rounds.items():
        _print(name, theirs, ours)


def _print(name: str, rounds: Sequence[Figures], ours: Sequence[Figures]) -> None:
    p50, p99 = (median(each.of(part) for each in rounds) * 1e3 for part in (0.5, 0.99))
    rate, started, memory = (median(getattr(each, which) for each in rounds) for which in ("rate", "started", "memory"))
    ratio = median(each.of(0.5) / mine.of(0.5) for each, mine in zip(rounds, ours, strict=True))
    faster = median(each.rate / mine.rate for each, mine in zip(rounds, ours, strict=True))
    later = median(each.started / mine.started for each, mine in zip(rounds, ours, strict=True))
    compared = f"p99 {p99:.1f} ms; {rate:.0f} calls/s; starts in {started:.2f} s; {memory:.0f} MB"
    if rounds is not ours:
        compared += f"; of ours: p50 {ratio:.2f}, calls/s {faster:.2f}, start {later:.2f}"
    row(name, f"{p50:.1f} ms", compared)


async def _measured(contender: Contender, place: Place, seconds: float) -> Figures:
    async with client_of(contender.command, contender.environment(place)) as client:
        for _ in range(WARM):
            await client.call()
        took = await _alone(client, seconds)
        rate = await _together(client, seconds)
        return Figures(client.started, sorted(took), rate, resident(client.process.pid))


async def _alone(client: Client, seconds: float) -> list[float]:
    loop, took = asyncio.get_running_loop(), []
    until = loop.time() + seconds
    while loop.time() < until:
        took.append(await client.call())
    return took


async def _together(client: Client, seconds: float) -> float:
    loop, done = asyncio.get_running_loop(), 0
    began = loop.time()

    async def one() -> int:
        calls = 0
        while loop.time() < began + seconds:
            await client.call()
            calls += 1
        return calls

    done = sum(await asyncio.gather(*(one() for _ in range(TOGETHER))))
    return done / (loop.time() - began)
