"""What came out, point by point, and the table of it."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator

from attrs import Factory, define, field

from .book import DOUBLED, LOST, UNASKED, WRONG

BROKEN = (LOST, DOUBLED, WRONG, UNASKED)
SOUND = "the record does not hold"
STUCK = "did not end"


@define(eq=False)
class Row:
    """What followed the ends of lives at one point.

    :ivar unknown: runs that were in doubt afterwards.
    """

    kills: int = 0
    unknown: int = 0
    broken: Counter[str] = field(factory=Counter)


@define(eq=False)
class Tally:
    """All rows.

    :ivar faults: every promise that was broken, in words; none is twice.
    :ivar calls: how many were made, and how many effects there were.
    """

    rows: defaultdict[str, Row] = Factory(lambda: defaultdict(Row))
    faults: list[str] = field(factory=list)
    calls: int = 0
    effects: int = 0
    requests: int = 0
    _known: set[str] = field(factory=set)

    @property
    def kills(self) -> int:
        """Of all."""
        return sum(row.kills for row in self.rows.values())

    def broke(self, where: str, promise: str, how: str) -> None:
        """A promise was broken: told at once, and again at the end."""
        if how in self._known:
            return
        self._known.add(how)
        self.rows[where].broken[promise] += 1
        self.faults.append(f"{where}: {promise}: {how}")
        print(self.faults[-1], file=sys.stderr, flush=True)

    def add(self, other: Tally) -> None:
        """Another's, to this one."""
        for where, row in other.rows.items():
            mine = self.rows[where]
            mine.kills, mine.unknown = mine.kills + row.kills, mine.unknown + row.unknown
            mine.broken += row.broken
        self.faults += other.faults
        self.calls, self.effects = self.calls + other.calls, self.effects + other.effects
        self.requests += other.requests

    def lines(self) -> Iterator[str]:
        """The table."""
        yield f"{'the life ended':44}{'times':>7}{'in doubt':>10}" + "".join(f"{each:>16}" for each in BROKEN)
        yield "-" * 125
        for where in sorted(self.rows, key=_order):
            yield _line(where, self.rows[where])
        whole = Row()
        for row in self.rows.values():
            whole = Row(whole.kills + row.kills, whole.unknown + row.unknown, whole.broken + row.broken)
        yield "-" * 125
        yield _line(f"{self.calls} calls, {self.requests} requests, {self.effects} effects", whole)
        yield from self.faults


def _line(where: str, row: Row) -> str:
    counts = "".join(f"{row.broken[each]:>16}" for each in BROKEN)
    return f"{where:44}{row.kills:>7}{row.unknown:>10}{counts}"


def _order(where: str) -> tuple[str, str]:
    """Before stands above after."""
    first, _, rest = where.partition(" ")
    return (
        (rest, {"before": "a", "after": "b"}.get(first, "")) if rest and first in ("before", "after") else (where, "")
    )
