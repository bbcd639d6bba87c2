"""Verifies an audit log without a daemon or passphrase: in a copy of the database or in an export."""

from __future__ import annotations

from bisect import bisect
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice

from attrs import define, field

from aileron.model.audit import NO_CHECKPOINT, Break, Checkpoint, Row, Verdict

from ._chain import GENESIS, ChainVerifier, Endorsement, fingerprint, seal_row
from ._decisions import DecisionCheck
from ._export import Export, Exporting, NotAnExport, read_anchor, read_export, record_line

_NEAR = 256
"""The maximum distance over which a moved record is distinguished from an altered one."""


def diagnose(rows: Sequence[Row], last: int, head: str) -> Break:
    """Return the fault of the first of C{rows}, given that all records up to C{last}, with the hash C{head}, are valid.

    :param rows: the invalid record and some of those that follow it.
    """
    row, expected = rows[0], last + 1
    sequence = row[0]
    if type(sequence) is not int:
        return Break("altered", expected, f"Record {expected} was altered: it has no number.")
    if sequence != expected:
        return _another_number(sequence, expected, last)
    if _hash(row) != row[13]:
        return _another_content(rows, expected, head)
    if row[12] != head:
        return _another_before(expected, last)
    return Break("altered", expected, f"The contents of record {expected} were altered.")


def _another_number(sequence: int, expected: int, last: int) -> Break:
    if sequence > expected:
        return _is_removed(expected, sequence - 1, f"record {sequence} follows record {last}")
    if sequence < 1:
        return Break("inserted", expected, f"A record was put in before the first one, as number {sequence}.")
    return Break("reordered", expected, f"Record {sequence} stands again, or late, after record {last}.")


def _another_content(rows: Sequence[Row], expected: int, head: str) -> Break:
    """Return the fault of a record whose hash does not match its content.

    If the hash matches with another number nearby, records were moved, inserted or removed. Otherwise the record was
    altered.
    """
    was = _number_of(rows[0], _find_near(expected))
    if was is None:
        return Break("altered", expected, f"Record {expected} was altered: its hash is not that of what it says.")
    if was < expected:
        how = f"what stands as record {expected} was record {was}"
        return Break("inserted", was, f"{expected - was} inserted from record {was} on: {how}.")
    if any(each[12] == head and _number_of(each, (expected,)) for each in rows[1:]):
        how = f"what stands as record {expected} was record {was}"
        return Break("reordered", expected, f"Records were put in another order from {expected} on: {how}.")
    return _is_removed(expected, was - 1, f"what stands as record {expected} was record {was}")


def _another_before(expected: int, last: int) -> Break:
    if not last:
        return Break("removed", expected, f"Record {expected} does not follow what comes before it.")
    why = f"record {expected} was sealed to another one"
    return Break("altered", last, f"Record {last} was altered or inserted, and its hash recomputed: {why}.")


def _is_removed(first: int, end: int, how: str) -> Break:
    which = f"Record {first} was" if first == end else f"Records {first} to {end} were"
    return Break("removed", first, f"{which} removed: {how}.")


def _find_near(expected: int) -> Iterable[int]:
    near = (number for step in range(1, _NEAR) for number in (expected - step, expected + step))
    return (number for number in near if number > 0)


def _number_of(row: Row, numbers: Iterable[int]) -> int | None:
    """Return the first of C{numbers} with which, as its sequence, the row has the right hash, or None if none has."""
    return next((number for number in numbers if _hash((number, *row[1:])) == row[13]), None)


def _hash(row: Row) -> str | None:
    """Return the hash of a row computed from its columns, or None if one of its texts is not valid Unicode."""
    try:
        return seal_row(row[12], row)
    except ValueError:
        return None


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
"""Less than every possible number of a row. Rows from here to 0 are not records, and must be fed first."""

_LOOKAHEAD = 256


@define(eq=False)
class Verification:
    """A verification of an audit log, oldest record first. Call L{feed} for all rows, then L{end}.

    The checkpoints are verified before the rows, at once or in steps by L{check}, because a signature takes as long as
    many rows.

    :param checkpoints: all checkpoints stored with the audit log, in their order.
    :param anchored: the checkpoints that the caller stored elsewhere.
    :param sealed: maps each further witness, such as the vault, to the sequence and hash that the log must contain.
    :param keys: the accepted public keys, or their fingerprints. If empty, every key is accepted.
    :param after: the sequence of the record before the first one to verify, or 0 for the complete log.
    :param previous: the hash of that record.
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
    _unproved: Break | None = field(init=False, default=None)
    _unchecked: Iterator[tuple[Endorsement, Checkpoint]] = field(init=False)
    _decisions: DecisionCheck = field(init=False)
    _off_mark: bool = field(init=False, default=False)  # the last record differs from its mark: the next may explain it

    def __attrs_post_init__(self) -> None:
        self._chain = ChainVerifier(self.after, self.previous)
        self._decisions = DecisionCheck(self.after == 0)
        self._marks = {}
        for name, (sequence, head) in self._name():
            self._marks.setdefault(sequence, []).append((head, name))
        self._marked = sorted(self._marks)
        self._broken = self._begins_elsewhere()
        self._unchecked = self._to_check()

    @property
    def going(self) -> bool:
        """True while verification should continue: no fault is found, or more rows may explain the fault better."""
        if self._wrong:
            return len(self._wrong) < _LOOKAHEAD
        return self._broken is None or self._off_mark

    @property
    def reached(self) -> int:
        """The sequence number of the last audit record that was found valid."""
        return self._chain.last

    def check(self, most: int | None = None) -> bool:
        """Verify the next C{most} checkpoints, or all if C{most} is None. Return True if more may remain.

        At the first fault, stop and return False.
        """
        for endorsement, checkpoint in islice(self._unchecked, most):
            self._broken = endorsement.follow(checkpoint)
            if self._broken is not None:
                return False
            most = None if most is None else most - 1
        return most == 0

    def feed(self, rows: Sequence[Row]) -> None:
        """Verify C{rows}, the next ones after the rows of the last call. L{end} returns the result."""
        self._check_rest()
        for piece in self._to_each_mark(rows):
            if self.going:
                self._look_along(piece)

    def end(self, unreadable: str | None = None) -> Verdict:
        """Return the verdict.

        :param unreadable: the reason why no more rows could be read, or None if the audit log ended.
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
            proved=self._decisions.proved,
            broken=self._conclusion(unreadable),
        )

    def _furthest(self, told: Iterable[int]) -> int:
        """Return the largest number in C{told} that is the sequence of a valid record, or 0 if there is none."""
        return max((each for each in told if self.after <= each <= self.reached), default=0)

    def _conclusion(self, unreadable: str | None) -> Break | None:
        last = self._chain.last
        if self._wrong:
            return diagnose(self._wrong[:_LOOKAHEAD], last, self._chain.head)
        fault = self._broken or self._unproved
        if fault is not None:
            return fault
        if unreadable is not None:
            return Break("unreadable", last + 1, f"After record {last} the record cannot be read: {unreadable}.")
        missing = min((sequence for sequence in self._marks if sequence > last), default=None)
        if missing is not None:
            told = self._marks[missing][0][1]
            return Break("truncated", last + 1, f"The record ends with {last}, but {told} tells of record {missing}.")
        # guard against attack: missing contents are detected -> test_agent.RecordTests.test_while_none_runs,
        #    instead bare = None
        bare = self._chain.unexcused
        if bare is not None:
            return Break("removed", bare, f"The contents of record {bare} were removed, and not by retention.")
        return None

    def _to_each_mark(self, rows: Sequence[Row]) -> Iterator[Sequence[Row]]:
        """Split the rows into pieces, each ending at a record that a checkpoint or witness confirms, except the last.

        A witness is another place that stores a record's hash, such as the vault.
        """
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
            valid = self._chain.follow(rows)
            self._wrong = rows[valid:]
            self._broken = None if self._wrong else self._off_the_mark()
            self._off_mark = self._broken is not None
            if self._broken is None:
                self._unproved = self._unproved or self._decisions.check(rows[:valid])

    def _off_the_mark(self) -> Break | None:
        """Return a fault if a checkpoint or witness gives another hash for the last valid record, else None."""
        last = self.reached
        for head, name in self._marks.get(last, ()):
            if head != self._chain.head:
                since = max((each for each in self._marks if each < last), default=self.after)
                why = f"Records {since + 1} to {last} are not the ones that {name} confirms: they were rewritten."
                return Break("rewritten", since + 1, why)
        return None

    def _begins_elsewhere(self) -> Break | None:
        """Return a fault if a checkpoint or witness contradicts the audit log before the first row, else None."""
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
