"""The table of races."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator, Sequence

from tests.functional.install import database

from .orders import Explored, Race, explore
from .several import races_of_two
from .table import races

MOST = 20_000
"""How many orders of each race are tried at most."""

MOST_OF_TWO = 100
"""How many of each race of two daemons, whose orders take long."""


def report(most: int, most_of_two: int) -> Iterator[tuple[str, bool]]:
    """The lines of the tables, each with whether it tells of something that does not hold.

    :param most: how many orders of each race of one daemon are tried at most, and C{most_of_two} of two daemons.
    """
    yield from _report("at once", races(), most)
    if database() is None:
        yield "PostgreSQL is not installed: nothing at two daemons is tried", False
    else:
        yield from _report("at once, at two daemons", races_of_two(races()), most_of_two)


def _report(title: str, of: Sequence[Race], most: int) -> Iterator[tuple[str, bool]]:
    yield f"{title:34}{'orders':>8}  {'of all':16}{'broken':>6}  what holds", False
    yield "-" * 120, False
    here, tried, whole = os.getcwd(), 0, True
    with tempfile.TemporaryDirectory(prefix="aileron-races-") as directory:
        os.chdir(directory)
        try:
            for race in of:
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
