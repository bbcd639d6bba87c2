"""Ids for everything that is kept."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache

from twisted.internet.interfaces import IReactorTime

_ALPHABET = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
"""Crockford's base 32, whose letters stand in the order of their code points: so ids sort by time."""
_LETTERS = bytes(ord(_ALPHABET[byte % 32]) for byte in range(256))
"""A letter for each byte: of each letter's eight bytes none is likelier than another."""
_RANDOM_LETTERS = 16


def fresh_ids(clock: IReactorTime) -> Callable[[], str]:
    """ULIDs.  They must differ and need not be secret, so the system is asked for chance once and not at each."""

    def fresh() -> str:
        chance = random.randbytes(_RANDOM_LETTERS)  # noqa: S311 - no secret
        return _time_of(int(clock.seconds() * 1000)) + chance.translate(_LETTERS).decode("ascii")

    return fresh


@lru_cache(maxsize=1)  # a run takes several at once
def _time_of(milliseconds: int) -> str:
    """The first ten letters, five bits each."""
    return "".join(_ALPHABET[milliseconds >> shift & 31] for shift in range(45, -1, -5))
