"""What the operator says that outlasts a call: grants, limits, pauses, locks."""

from __future__ import annotations

import time
from collections.abc import Iterable

from attrs import define, field

LIMIT = "capped"
"""The action that the operator limits."""

FIRST_LIMIT = 6


@define(eq=False)
class Quiet:
    """A time in which nothing may begin: from when the operator was told so, to when that was asked to end."""

    why: str
    since: float
    until: float = float("inf")

    def holds(self, at: float) -> bool:
        """Whether a moment lies in it."""
        return self.since < at < self.until


@define(eq=False)
class Words:
    """All of them, of one home.

    :ivar uses: of each grant that was asked for, whether that was confirmed or not, by the run it was asked for with.
    :ivar most: how often C{LIMIT} may begin in an hour: the most that was asked for, C{FIRST_LIMIT} from the start.
    :ivar early: effects before their time, in words.
    """

    uses: dict[str, list[int]] = field(factory=dict)
    most: int = FIRST_LIMIT
    quiet: list[Quiet] = field(factory=list)
    early: list[str] = field(factory=list)

    def paused(self) -> None:
        """It was confirmed that nothing begins any more."""
        if not self.is_paused:
            self.quiet.append(Quiet("paused", time.time()))

    @property
    def is_paused(self) -> bool:
        """Whether a pause was confirmed that nobody has asked to end."""
        return any(each.why == "paused" for each in self._open())

    def resuming(self) -> None:
        """It is about to be asked that things begin again."""
        self._end("paused")

    def locked(self) -> None:
        """It was confirmed that the vault is locked."""
        self.quiet.append(Quiet("locked", time.time()))

    def unlocking(self) -> None:
        """A life begins that has the key."""
        self._end("locked")

    def refused(self, at: float) -> str | None:
        """Why nothing could begin at a moment; L{None}: it could."""
        return next((each.why for each in self.quiet if each.holds(at)), None)

    def _open(self) -> Iterable[Quiet]:
        return (each for each in self.quiet if each.until == float("inf"))

    def _end(self, why: str) -> None:
        for each in self._open():
            if each.why == why:
                each.until = time.time()
