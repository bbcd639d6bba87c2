"""Checks row after row of a chain, for as long as everything holds."""

from __future__ import annotations

import json
from collections.abc import Sequence

from attrs import define, field

from aileron.values import Row

from ._seal import GENESIS, payload_digest, seal_row

PRUNED = "audit.pruned"
"""The type of event that says up to which record the contents were deleted."""


@define(eq=False)
class ChainVerifier:
    """Knows how far a chain was found to hold, and goes on from there.

    :ivar last: the sequence of the last record that holds.
    :ivar head: its hash.
    :ivar gaps: the runs of records without contents, each as first and last sequence.
    :ivar excused: up to which sequence the record says that contents were deleted.
    """

    last: int = 0
    head: str = GENESIS
    excused: int = 0
    gaps: list[tuple[int, int]] = field(factory=list)

    @property
    def pruned(self) -> int:
        """The number of records that have no contents."""
        return sum(end - first + 1 for first, end in self.gaps)

    @property
    def unexcused(self) -> int | None:
        """The first record without contents of which the record does not say that they were deleted."""
        return next((max(first, self.excused + 1) for first, end in self.gaps if end > self.excused), None)

    def follow(self, rows: Sequence[Row]) -> int:
        """Check C{rows}, each of which must follow the one before.

        :return: how many hold; where that is not all, the next one does not.
        """
        for held, row in enumerate(rows):
            if not self._holds(row):
                return held
            self.last, self.head = row[0], row[13]
            if row[14] is None and row[15] is None:
                self._widen(self.last)
            if row[2] == PRUNED:
                self._excuse(row[15], self.last)
        return len(rows)

    def _holds(self, row: Row) -> bool:
        digest, before, own, salt, payload = row[11:]
        if row[0] != self.last + 1 or before != self.head:
            return False
        try:
            is_bare = payload is None and salt is None
            if not is_bare and payload_digest(salt, payload) != digest:
                return False
            return bool(seal_row(self.head, row) == own)
        except ValueError:  # no Unicode
            return False

    def _widen(self, sequence: int) -> None:
        if self.gaps and self.gaps[-1][1] == sequence - 1:
            self.gaps[-1] = (self.gaps[-1][0], sequence)
        else:
            self.gaps.append((sequence, sequence))

    def _excuse(self, payload: str | None, sequence: int) -> None:
        """Take in what a record says of those before it; of those that come after it none can."""
        try:
            told = {} if payload is None else json.loads(payload)
        except (ValueError, RecursionError):  # of a strange file: such contents excuse nothing
            return
        up_to = told.get("up_to") if isinstance(told, dict) else None
        if type(up_to) is int and up_to < sequence:
            self.excused = max(self.excused, up_to)
