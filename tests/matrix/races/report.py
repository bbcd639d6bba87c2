"""The table of races."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

from .orders import Explored, explore
from .table import races

MOST = 20_000
"""How many orders of each race are tried at most."""


def report(most: int) -> Iterator[tuple[str, bool]]:
    """The lines of the table, each with whether it tells of something that does not hold."""
    yield f"{'at once':34}{'orders':>8}  {'of all':16}{'broken':>6}  what holds", False
    yield "-" * 120, False
    here, tried, whole = os.getcwd(), 0, True
    with tempfile.TemporaryDirectory(prefix="aileron-races-") as directory:
        os.chdir(directory)
        try:
            for race in races():
                found = explore(race, most)
                tried, whole = tried + found.tried, whole and found.within is None
                line = f"{race.name:34}{found.tried:>8}  {_share(found):16}{len(found.broken):>6}  {race.holds}"
                yield line, bool(found.broken)
                yield from ((f"    {order}: {why}", True) for order, why in found.broken[:3])
        finally:
            os.chdir(here)
    yield "-" * 120, False
    yield f"{'':34}{tried:>8}  {'all' if whole else 'not all'}", False


def _share(found: Explored) -> str:
    if found.within is None:
        return "all"
    switches = "1 switch" if found.within == 1 else f"{found.within} switches"
    return f"to {switches}" if found.within >= 0 else "few"
