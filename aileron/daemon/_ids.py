"""Ids for everything that is kept."""

from __future__ import annotations

import random
from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_PAIRS = [high + low for high in _LETTERS for low in _LETTERS]
_SHIFTS = range(120, -1, -10)  # a pair of letters is ten bits


def fresh_ids(clock: IReactorTime) -> Callable[[], str]:
    """ULIDs: 48 bits of milliseconds and 80 of chance, as 26 letters that sort by time.

    They must differ and need not be secret, so the system is asked for chance once and not at each.
    """

    def fresh() -> str:
        number = int(clock.seconds() * 1000) << 80 | random.getrandbits(80)
        return "".join([_PAIRS[number >> shift & 1023] for shift in _SHIFTS])

    return fresh
