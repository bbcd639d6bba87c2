"""Many homes, each killed many times, a few at once."""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
import tempfile
from pathlib import Path

from .lives import Nursery
from .tally import Tally
from .trial import Points, Trial

LIVES = 40
"""Of one home, before another is tried."""
_TOGETHER = 2


async def _many(kills: int, chance: random.Random, points: Points, tally: Tally) -> None:
    nursery = await Nursery.open()
    left = kills
    while left > 0:
        lives = min(left, LIVES)
        left -= lives
        with tempfile.TemporaryDirectory(prefix="aileron-matrix-") as directory:
            trial = Trial(Path(directory).resolve() / "home", nursery, points, tally, chance)
            broken = len(tally.faults)
            await trial.run(lives)
            if len(tally.faults) > broken:
                kept = tempfile.mkdtemp(prefix="aileron-broken-")
                shutil.copytree(directory, kept, dirs_exist_ok=True)
                print(f"a promise was broken; the home is kept in {kept}", file=sys.stderr, flush=True)
        print(f"{tally.kills} kills, {len(tally.faults)} faults", file=sys.stderr, flush=True)
    await nursery.close()


async def _all(kills: int, seed: int, together: int) -> Tally:
    tally, points = Tally(), Points(random.Random(seed))
    shares = [kills // together + (index < kills % together) for index in range(together)]
    await asyncio.gather(
        *(_many(share, random.Random(seed + index), points, tally) for index, share in enumerate(shares))
    )
    return tally


def crash(kills: int, seed: int, together: int = _TOGETHER) -> Tally:
    """Kill so often, and tell what came of it.

    :param together: how many homes at once.
    """
    return asyncio.run(_all(kills, seed, together))
