"""What came out, point by point, and the table of it."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator

from attrs import Factory, define, field

from .book import BEYOND, DOUBLED, LOST, UNASKED, WRONG
from .world import World

BROKEN = (LOST, DOUBLED, WRONG, UNASKED, BEYOND)
_WORDS = {
    "approval.approved": "approvals",
    "grant.issued": "grants",
    "grant.used": "uses of them",
    "pause.ended": "resumptions",
    "approval.stale": "asked anew",
    "cap.set": "limits",
    "run.cancelled": "taken back",
    "run.run_again": "done again",
    "own_tools.answered": "answers to tools",
}
"""Of what is on record, what is told of."""

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
    :ivar told: what is on record of all, by the types of the events.
    """

    rows: defaultdict[str, Row] = Factory(lambda: defaultdict(Row))
    faults: list[str] = field(factory=list)
    calls: int = 0
    effects: int = 0
    requests: int = 0
    told: Counter[str] = field(factory=Counter)
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

    def count(self, calls: int, *worlds: World) -> None:
        """Count the calls of a home, and what its services saw of them."""
        self.calls += calls
        self.effects += sum(sum(each.effects.values()) for each in worlds)
        self.requests += sum(sum(each.requests.values()) for each in worlds)

    def lines(self) -> Iterator[str]:
        """The table."""
        yield f"{'the life ended':44}{'times':>7}{'in doubt':>10}" + "".join(f"{each:>16}" for each in BROKEN)
        yield "-" * 141
        for where in sorted(self.rows, key=_order):
            yield _line(where, self.rows[where])
        whole = Row()
        for row in self.rows.values():
            whole = Row(whole.kills + row.kills, whole.unknown + row.unknown, whole.broken + row.broken)
        yield "-" * 141
        yield _line(f"{self.calls} calls, {self.requests} requests, {self.effects} effects", whole)
        if self.told:
            yield "on record: " + ", ".join(f"{self.told[type_]} {what}" for type_, what in _WORDS.items())
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
