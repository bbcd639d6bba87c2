"""Ids for everything that is kept."""

from __future__ import annotations

import random
from collections.abc import Callable
from functools import lru_cache

from twisted.internet.interfaces import IReactorTime
from ulid import base32

_LETTERS = bytes(ord(base32.ENCODE[byte % 32]) for byte in range(256))
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
    """The first ten letters."""
    return base32.encode_timestamp(milliseconds.to_bytes(6, "big"))
