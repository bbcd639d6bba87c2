"""Checks a record without a daemon and without a passphrase: on a copy of the database, or on an export.

What it takes are rows, in slices, and checkpoints: where they come from is the caller's business.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import islice

from attrs import define, field

from aileron.values import NO_CHECKPOINT, Break, Checkpoint, Row, Verdict

from ._checkpoints import Endorsement, fingerprint
from ._diagnosis import diagnose
from ._export import Export, Exporting, NotAnExport, read_anchor, read_export, record_line
from ._seal import GENESIS
from ._walk import Walk

__all__ = [
    "BEFORE_ALL",
    "GENESIS",
    "Export",
    "Exporting",
    "NotAnExport",
    "Verification",
    "fingerprint",
    "read_anchor",
    "read_export",
    "record_line",
]

BEFORE_ALL = -(2**63) - 1
"""Every number that a row can have is above this.  What stands from here to 0 is no record, and is fed first."""

_LOOKAHEAD = 256


@define(eq=False)
class Verification:
    """One look along a record, oldest first: L{feed} it all rows, then L{end}.

    What the checkpoints are worth is told before that, at once or by L{check} little by little: a signature takes as
    long as many rows.

    :param checkpoints: all that lie beside the record, in their order.
    :param anchored: those that the caller kept elsewhere.
    :param sealed: further pairs of sequence and hash that the record must reach, and who says so.
    :param keys: the public keys, or their fingerprints, by which checkpoints must be signed; none: any may sign.
    :param after: the sequence of the record before the first; 0: the whole record is looked at.
    :param previous: its hash.
    """

    checkpoints: Sequence[Checkpoint]
    anchored: Sequence[Checkpoint] = ()
    sealed: Mapping[str, tuple[int, str]] = field(factory=dict)
    keys: Collection[str] = ()
    after: int = 0
    previous: str = GENESIS
    _walk: Walk = field(init=False)
    _marks: dict[int, list[tuple[str, str]]] = field(init=False)
    _wrong: Sequence[Row] = field(init=False, default=())
    _broken: Break | None = field(init=False, default=None)
    _unchecked: Iterator[tuple[Endorsement, Checkpoint]] = field(init=False)
    _off_mark: int | None = field(init=False, default=None)  # where the record is another; what follows may tell why

    def __attrs_post_init__(self) -> None:
        self._walk = Walk(self.after, self.previous)
        self._marks = {}
        for name, (sequence, head) in self._named():
            self._marks.setdefault(sequence, []).append((head, name))
        self._broken = self._begun_elsewhere()
        self._unchecked = self._to_check()

    @property
    def going(self) -> bool:
        """Whether rows are still looked at: nothing is wrong yet, or what is wrong could be told better."""
        return self._off_mark == self._walk.last or (self._broken is None and len(self._wrong) < _LOOKAHEAD)

    def check(self, most: int | None = None) -> bool:
        """Look at C{most} more checkpoints, or all of them; whether there may be more."""
        for endorsement, checkpoint in islice(self._unchecked, most):
            self._broken = endorsement.follow(checkpoint)
            if self._broken is not None:
                return False
            most = None if most is None else most - 1
        return most == 0

    def feed(self, rows: Sequence[Row]) -> None:
        """Look at C{rows}, which follow those that were fed before."""
        self._check_rest()
        if self._wrong:
            self._wrong = [*self._wrong, *rows]
        elif self.going:
            before = self._walk.last
            held = self._walk.follow(rows)
            self._broken = self._broken or self._off_the_mark(before, rows[:held])
            self._wrong = rows[held:]

    def end(self, unreadable: str | None = None) -> Verdict:
        """What was found.

        :param unreadable: why no more rows could be had, if the record did not simply end.
        """
        self._check_rest()
        walk = self._walk
        covered = max((each for each in self._marks if self.after <= each <= walk.last), default=0)
        return Verdict(
            first=self.after + 1,
            last=walk.last,
            head=walk.head,
            pruned=walk.pruned,
            checkpoints=len(self.checkpoints),
            covered=covered,
            keys=tuple(dict.fromkeys(each.key for each in self.checkpoints)),
            compared=bool(self.keys),
            anchored=len(self.anchored),
            broken=self._conclusion(unreadable),
        )

    def _conclusion(self, unreadable: str | None) -> Break | None:
        last = self._walk.last
        if self._broken is not None and not (self._wrong and self._off_mark == last):
            return self._broken
        if self._wrong:
            return diagnose(self._wrong, last, self._walk.head)
        if unreadable is not None:
            return Break("unreadable", last + 1, f"After record {last} the record cannot be read: {unreadable}.")
        missing = min((sequence for sequence in self._marks if sequence > last), default=None)
        if missing is not None:
            told = self._marks[missing][0][1]
            return Break("truncated", last + 1, f"The record ends with {last}, but {told} tells of record {missing}.")
        bare = self._walk.unexcused
        if bare is not None:
            return Break("removed", bare, f"The contents of record {bare} were removed, and not by retention.")
        return None

    def _off_the_mark(self, before: int, rows: Sequence[Row]) -> Break | None:
        """Whether rows that hold together are others than those that somebody answers for."""
        for sequence in [number for number in range(before + 1, before + len(rows) + 1) if number in self._marks]:
            for head, name in self._marks[sequence]:
                if rows[sequence - before - 1][13] != head:
                    self._off_mark = sequence
                    since = max((each for each in self._marks if each < sequence), default=self.after)
                    why = f"Records {since + 1} to {sequence} are not those that {name} tells of: they were rewritten."
                    return Break("rewritten", since + 1, why)
        return None

    def _begun_elsewhere(self) -> Break | None:
        """Whether somebody answers for another record than the one that this part says to follow."""
        for head, name in self._marks.get(self.after, ()) if self.after else ():
            if head != self.previous:
                why = f"This part does not follow the record {self.after} that {name} tells of."
                return Break("rewritten", self.after + 1, why)
        return None

    def _check_rest(self) -> None:
        if self._broken is None:
            self.check()

    def _to_check(self) -> Iterator[tuple[Endorsement, Checkpoint]]:
        keys = frozenset(key.strip().lower() for key in self.keys)
        along = Endorsement(keys, NO_CHECKPOINT if self.after == 0 else None)
        for each in self.checkpoints:
            yield along, each
        for each in self.anchored:
            yield Endorsement(keys, None), each

    def _named(self) -> list[tuple[str, tuple[int, str]]]:
        here = [(f"the checkpoint of {each.at}", (each.sequence, each.head)) for each in self.checkpoints]
        there = [(f"the anchor's checkpoint of {each.at}", (each.sequence, each.head)) for each in self.anchored]
        return [*here, *there, *self.sealed.items()]
