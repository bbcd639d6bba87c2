"""Ids for everything that is kept."""

from __future__ import annotations

import random
from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime

_LETTERS = "0123456789ABCDEFGHJKMNPQRSTVWXYZ"
_LETTER_OF_BYTE = (_LETTERS * 8).encode("ascii")


def fresh_ids(clock: IReactorTime) -> Callable[[], str]:
    """ULIDs: ten letters of the millisecond, sixteen of chance, five bits each.

    They must differ and need not be secret, so the system is asked for chance once and not at each.
    """

    def fresh() -> str:
        moment = int(clock.seconds() * 1000)
        time = "".join([_LETTERS[moment >> shift & 31] for shift in range(45, -1, -5)])
        return time + random.randbytes(16).translate(_LETTER_OF_BYTE).decode("ascii")  # noqa: S311 - no secret

    return fresh
