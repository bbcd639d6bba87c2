"""A record in legs, each of which can be gone along by itself: every record names the hash before it."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from aileron.errors import AileronError
from aileron.values import Row

from ._export import NotAnExport
from ._walk import Passage, Walk

LEG = 10_000
"""How many records make a leg: some tenth of a second."""
_MOST_LEGS = 10_000


class Leg(Protocol):
    """Consecutive records of one file; it may be sent to another process."""

    @property
    def after(self) -> int:
        """The sequence of the record before the first."""

    @property
    def until(self) -> int:
        """That of the last, as the caller expects it."""

    def rows(self) -> Iterator[Sequence[Row]]:
        """The records in slices; opens the file anew.

        :raises AileronError: the file cannot be read there.
        :raises NotAnExport: the file is an export, and a line of it is no record.
        """


def seams(last: int, length: int = LEG) -> Sequence[int]:
    """After which records the legs begin of a record that ends with C{last}; none: it is too short to be shared.

    :param last: as a file says it; the legs are never more than some thousands.
    """
    length = max(length, -(-last // _MOST_LEGS))
    return range(0, last, length) if last >= 2 * length else ()


def gone_along(leg: Leg, marked: Collection[int] = ()) -> Passage | None:
    """What it is like to go along C{leg}; L{None}: something is wrong with it, and another look must tell what.

    :param marked: the sequences of the records whose hashes are wanted.
    """
    walk, previous, found = Walk(leg.after), None, {}
    try:
        for rows in leg.rows():
            if previous is None and rows:
                previous = walk.head = rows[0][12]
            before = walk.last
            if walk.follow(rows) < len(rows):
                return None
            found.update({each: rows[each - before - 1][13] for each in marked if before < each <= walk.last})
    except (AileronError, NotAnExport):
        return None
    if previous is None:
        return None
    return Passage(leg.after, previous, walk.last, walk.head, walk.excused, tuple(walk.gaps), found)
