"""The table of races."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator

from .orders import orders
from .table import races

MOST = 300
"""How often each race is tried; what chance brings twice counts once."""


def report(most: int) -> Iterator[tuple[str, bool]]:
    """The lines of the table, each with whether it tells of something that does not hold."""
    yield f"{'at once':30}{'orders':>8}{'broken':>8}  what holds", False
    yield "-" * 110, False
    here = os.getcwd()
    with tempfile.TemporaryDirectory(prefix="aileron-races-") as directory:
        os.chdir(directory)
        try:
            for race in races():
                found = list(orders(race, most))
                broken = [(order, why) for order, why in found if why is not None]
                yield f"{race.name:30}{len(found):>8}{len(broken):>8}  {race.holds}", bool(broken)
                yield from ((f"    {order}: {why}", True) for order, why in broken[:3])
        finally:
            os.chdir(here)
