"""How often each of many things was counted of late."""

from __future__ import annotations

from collections import OrderedDict, deque
from collections.abc import Hashable
from datetime import datetime, timedelta

from attrs import define, field

MOST_KEYS = 4096


@define(eq=False)
class Counts:
    """Of each key the moments at which it was counted, in memory; a key that was not counted of late is let go of.

    That happens when another one is counted.  A clock that was set back counts what lies ahead of it as well, and a key
    that does keeps those that were counted after it.

    :param within: what is of late.
    :param most_keys: beyond them the one that was counted longest ago is forgotten.
    """

    _within: timedelta
    _most_keys: int = MOST_KEYS
    _counted: OrderedDict[Hashable, deque[datetime]] = field(factory=OrderedDict, init=False)

    def __len__(self) -> int:
        """How many keys take memory."""
        return len(self._counted)

    def is_beyond(self, key: Hashable, most: int, now: datetime) -> bool:
        """Count C{key} once more: whether it was counted more than C{most} times of late."""
        times = self._counted.setdefault(key, deque())
        self._counted.move_to_end(key)
        since = now - self._within
        beyond = count(times, most, since, now)
        self._forget(since)
        return beyond

    def _forget(self, since: datetime) -> None:
        longest_ago = next(iter(self._counted))
        while len(self._counted) > self._most_keys or self._counted[longest_ago][-1] <= since:
            del self._counted[longest_ago]
            longest_ago = next(iter(self._counted))


def count(times: deque[datetime], most: int, since: datetime, now: datetime) -> bool:
    """Add C{now} to C{times} and drop what is not after C{since}: whether more than C{most} are left."""
    times.append(now)
    while len(times) > most + 1 or times[0] <= since:
        times.popleft()
    return len(times) > most
