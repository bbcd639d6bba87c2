"""Who has said nothing for too long: asked of all exchanges by one clock, since a timer for each would cost more."""

from __future__ import annotations

import math
from typing import Any

from ._exchange import Exchange

_LOOKS = 4
_LONGEST_SECONDS = 10.0


class Silence:
    """The exchanges under way.

    An exchange is told that it is L{Exchange.silent} once nothing of it has stirred for C{seconds}, and at the latest a
    quarter or ten seconds after that, whichever is less.
    """

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        looks = max(_LOOKS, math.ceil(seconds / _LONGEST_SECONDS))
        self.step = seconds / looks
        self._most = looks - 1
        self._quiet: dict[Exchange[Any], int] = {}

    def watch(self, exchange: Exchange[Any]) -> None:
        """Begin with an exchange."""
        self._quiet[exchange] = 0

    def forget(self, exchange: Exchange[Any]) -> None:
        """It is over.  Twice is safe."""
        self._quiet.pop(exchange, None)

    def watched(self) -> list[Exchange[Any]]:
        """All of them."""
        return list(self._quiet)

    def look(self) -> None:
        """Time has gone on by C{step}."""
        for exchange, quiet in list(self._quiet.items()):
            if exchange.over:
                continue  # since this look began
            if exchange.stirred:
                exchange.stirred = False
                self._quiet[exchange] = 0
            elif quiet < self._most:
                self._quiet[exchange] = quiet + 1
            else:
                exchange.silent(self.seconds)
