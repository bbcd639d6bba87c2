"""Ids for everything that is kept."""

from __future__ import annotations

import random
from collections.abc import Callable

from twisted.internet.interfaces import IReactorTime
from ulid import ULID


def fresh_ids(clock: IReactorTime) -> Callable[[], str]:
    """ULIDs.  They must differ and need not be secret, so the system is asked for chance once and not at each."""

    def fresh() -> str:
        moment = int(clock.seconds() * 1000)
        return str(ULID.from_bytes(moment.to_bytes(6, "big") + random.randbytes(10)))  # noqa: S311 - no secret

    return fresh
