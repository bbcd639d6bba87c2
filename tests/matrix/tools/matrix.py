"""Each named point of a tool's write, and the table of what came of the daemon's end there."""

from __future__ import annotations

import asyncio
import random
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.matrix.crash.lives import Nursery
from tests.matrix.crash.world import World

from .points import CLAIM, NO_CLAIM, RECOGNISED
from .trial import PROMISES, End, ToolTrial

_KILLS_AFTER, _KILLS_BEFORE = End(habit="kills after"), End(habit="kills before")
_TOLD = ("before claims.note told", "after claims.note told")
POINTS = (
    RECOGNISED,
    "before runs.receive pending_approval",
    NO_CLAIM,
    CLAIM,
    "after runs.receive pending_approval",
    "before runs.apply approved",
    "after runs.apply approved",
    "before runs.apply executing",
    "after runs.apply executing",
    "before control.spend",
    "spent",
    "executing",
    "answered",
    "before runs.apply completed",
    "after runs.apply completed",
    "before claims.note given",
    "after claims.note given",
)
"""Of a write that is approved while its connection is held, in their order."""

_OF_REPETITION = (
    RECOGNISED,
    "before claims.take_over",
    "after claims.take_over",
    "before claims.note given",
    "after claims.note given",
)
_OF_APPROVAL = (
    "after runs.apply approved",
    "after runs.apply executing",
    "before runs.apply completed",
    "after runs.apply completed",
)


def named() -> Iterator[tuple[End, ...]]:
    """Return the ends of the lives of each trial: of the first life, and of that in which the write is repeated."""
    for point in POINTS:
        yield (End(point),)
    for point in (*_TOLD, *_OF_APPROVAL):
        yield (End(point, waits=True),)
    yield (_KILLS_BEFORE,)
    yield (_KILLS_AFTER,)
    for point in _OF_REPETITION:
        yield (End("after runs.apply completed"), End(point))
    for point in _OF_REPETITION[:3]:
        yield (_KILLS_AFTER, End(point))
    for point in (*_OF_APPROVAL, "before claims.note given"):
        yield (End(_TOLD[1], waits=True), End(point))


def some(count: int, chance: random.Random) -> Iterator[tuple[End, ...]]:
    """Return ends shortly after points that chance chooses."""
    for _ in range(count):
        points = chance.choices(POINTS, k=chance.randint(1, 2))
        yield tuple(End(point, delay=chance.random() * 0.004) for point in points)


def _name(ends: tuple[End, ...]) -> str:
    return "; then ".join(map(str, ends))


async def _run(count: int, seed: int, only: str) -> tuple[ToolTrial, list[str]]:
    chance = random.Random(seed)
    trials = [ends for ends in (*named(), *some(count, chance)) if only in _name(ends)]
    with tempfile.TemporaryDirectory(prefix="aileron-tools-") as directory:
        world = World(chance, lambda: None)
        await world.open()
        nursery = await Nursery.open()
        trial = ToolTrial(Path(directory).resolve() / "home", nursery, world)
        await trial.settle_in()
        lines = []
        for number, ends in enumerate(trials):
            broken, text = len(trial.faults), f"t{number}"
            await trial.run(text, ends)
            effects = world.effects[(text, "only")]
            lines.append(f"{_name(ends):90}{trial.asked[text]:>10}{effects:>9}{len(trial.faults) - broken:>8}")
            print(lines[-1], file=sys.stderr, flush=True)
        await nursery.close()
        world.close()
    return trial, lines


def strike_tools(count: int, seed: int, only: str = "") -> tuple[Iterator[str], bool]:
    """Kill the daemon at each named point, and C{count} times shortly after others.

    :param only: trials whose name has this text.
    :return: the table, and whether something broke or was not reached.
    """
    trial, lines = asyncio.run(_run(count, seed, only))
    return _table(trial, lines), bool(trial.faults or trial.not_reached)


def _table(trial: ToolTrial, lines: list[str]) -> Iterator[str]:
    yield f"{'the daemon ended':90}{'approvals':>10}{'effects':>9}{'broken':>8}"
    yield "-" * 117
    yield from lines
    yield "-" * 117
    yield f"{trial.kills} kills; " + ", ".join(
        f"{sum(promise == each[1] for each in trial.faults)} {promise}" for promise in PROMISES
    )
    yield "answers to the last repetition: " + ", ".join(f"{n} {code}" for code, n in sorted(trial.answers.items()))
    yield from (f"not reached: {each}" for each in trial.not_reached)
    yield from (f"{where}: {promise}: {how}" for where, promise, how in trial.faults)
