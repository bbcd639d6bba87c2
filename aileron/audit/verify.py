"""Checks a record without a daemon and without a passphrase: on a copy of the database, or on an export.

What it takes are rows, in slices, and checkpoints: where they come from is the caller's business.
"""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from attrs import define, field

from aileron.values import NO_CHECKPOINT, Break, Checkpoint, Row, Verdict

from ._chain_verifier import ChainVerifier
from ._checkpoints import Endorsement, fingerprint
from ._diagnosis import diagnose
from ._export import Export, Exporting, NotAnExport, read_anchor, read_export, record_line
from ._seal import GENESIS

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
"""Every number that a row can have is above this.  What stands from here to 0 is no record, and must be fed first."""

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
    _chain: ChainVerifier = field(init=False)
    _marks: dict[int, list[tuple[str, str]]] = field(init=False)
    _marked: Sequence[int] = field(init=False)
    _wrong: Sequence[Row] = field(init=False, default=())
    _broken: Break | None = field(init=False, default=None)
    _unchecked: Iterator[tuple[Endorsement, Checkpoint]] = field(init=False)
    _off_mark: bool = field(init=False, default=False)  # the last record is another one; the next may tell why

    def __attrs_post_init__(self) -> None:
        self._chain = ChainVerifier(self.after, self.previous)
        self._marks = {}
        for name, (sequence, head) in self._name():
            self._marks.setdefault(sequence, []).append((head, name))
        self._marked = sorted(self._marks)
        self._broken = self._begins_elsewhere()
        self._unchecked = self._to_check()

    @property
    def going(self) -> bool:
        """True while rows are still looked at: nothing is wrong yet, or what is wrong could be told better."""
        if self._wrong:
            return len(self._wrong) < _LOOKAHEAD
        return self._broken is None or self._off_mark

    @property
    def reached(self) -> int:
        """The sequence of the last record that was found to hold."""
        return self._chain.last

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
        for piece in self._to_each_mark(rows):
            if self.going:
                self._look_along(piece)

    def end(self, unreadable: str | None = None) -> Verdict:
        """Return what was found.

        :param unreadable: why no more rows could be had, if the record did not simply end.
        """
        self._check_rest()
        chain = self._chain
        signed = (each.sequence for each in (*self.checkpoints, *self.anchored))
        return Verdict(
            first=self.after + 1,
            last=chain.last,
            head=chain.head,
            pruned=chain.pruned,
            checkpoints=len(self.checkpoints),
            signed=self._furthest(signed),
            covered=self._furthest(self._marks),
            keys=tuple(dict.fromkeys(each.key for each in self.checkpoints)),
            compared=bool(self.keys),
            anchored=len(self.anchored),
            broken=self._conclusion(unreadable),
        )

    def _furthest(self, told: Iterable[int]) -> int:
        """Find the last of the records that holds and of which somebody told."""
        return max((each for each in told if self.after <= each <= self.reached), default=0)

    def _conclusion(self, unreadable: str | None) -> Break | None:
        last = self._chain.last
        if self._wrong:
            return diagnose(self._wrong[:_LOOKAHEAD], last, self._chain.head)
        if self._broken is not None:
            return self._broken
        if unreadable is not None:
            return Break("unreadable", last + 1, f"After record {last} the record cannot be read: {unreadable}.")
        missing = min((sequence for sequence in self._marks if sequence > last), default=None)
        if missing is not None:
            told = self._marks[missing][0][1]
            return Break("truncated", last + 1, f"The record ends with {last}, but {told} tells of record {missing}.")
        bare = self._chain.unexcused
        if bare is not None:
            return Break("removed", bare, f"The contents of record {bare} were removed, and not by retention.")
        return None

    def _to_each_mark(self, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        """Those rows in pieces, each of which ends where somebody answers for the record, if all holds."""
        begin, last = 0, self.reached
        for mark in self._marked[bisect(self._marked, last) : bisect(self._marked, last + len(rows))]:
            yield rows[begin : mark - last]
            begin = mark - last
        if begin < len(rows):
            yield rows[begin:]

    def _look_along(self, rows: Sequence[Row]) -> None:
        if self._wrong:
            self._wrong = [*self._wrong, *rows]
        elif self._off_mark:
            self._off_mark = False
            self._wrong = () if ChainVerifier(self.reached, self._chain.head).follow(rows[:1]) else rows
        else:
            self._wrong = rows[self._chain.follow(rows) :]
            self._broken = None if self._wrong else self._off_the_mark()
            self._off_mark = self._broken is not None

    def _off_the_mark(self) -> Break | None:
        """Tell whether the last record, which holds, is another than the one that somebody answers for."""
        last = self.reached
        for head, name in self._marks.get(last, ()):
            if head != self._chain.head:
                since = max((each for each in self._marks if each < last), default=self.after)
                why = f"Records {since + 1} to {last} are not those that {name} tells of: they were rewritten."
                return Break("rewritten", since + 1, why)
        return None

    def _begins_elsewhere(self) -> Break | None:
        """Tell whether somebody answers for another record than the one that this part says to follow."""
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

    def _name(self) -> list[tuple[str, tuple[int, str]]]:
        here = [(f"the checkpoint of {each.at}", (each.sequence, each.head)) for each in self.checkpoints]
        there = [(f"the anchor's checkpoint of {each.at}", (each.sequence, each.head)) for each in self.anchored]
        return [*here, *there, *self.sealed.items()]
