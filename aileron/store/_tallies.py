"""How much is counted against limits at the most, so that few charges need a look at all that was counted."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from attrs import define, field

from aileron.values import Charge

MOST_KEYS = 4096


@define(eq=False)
class _Bound:
    """No more than C{most} were counted after C{since}."""

    since: datetime
    most: int


@define(eq=False)
class Tallies:
    """An upper bound for each key and window that was counted lately; for the writer's thread alone.

    It holds as long as all that is counted is told to L{add}.  What was told and then undone stays in it, and so does
    what has left the window: either only has it counted anew the sooner.

    :param most_keys: beyond them the one that was counted first is forgotten.
    """

    _most_keys: int = MOST_KEYS
    _bounds: dict[str, dict[float, _Bound]] = field(factory=dict, init=False)

    def has_room(self, charge: Charge, since: datetime) -> bool:
        """Whether C{charge} is surely not full; C{False}: it is to be counted.

        :param since: where its window begins.  Before what was counted, where a clock was set back, nothing is known.
        """
        bound = self._bounds.get(charge.key, {}).get(charge.seconds)
        return bound is not None and bound.since <= since and bound.most < charge.most

    def learn(self, charge: Charge, since: datetime, counted: int) -> None:
        """C{counted} is what there is after C{since}."""
        self._bounds.setdefault(charge.key, {})[charge.seconds] = _Bound(since, counted)
        if len(self._bounds) > self._most_keys:
            del self._bounds[next(iter(self._bounds))]

    def add(self, keys: Iterable[str]) -> None:
        """One more is counted under each of C{keys}, in whatever window."""
        for key in keys:
            for bound in self._bounds.get(key, {}).values():
                bound.most += 1
