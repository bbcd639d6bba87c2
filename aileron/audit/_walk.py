"""The fast way along a chain: from row to row as long as everything holds, and no look at anything else."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from json.encoder import encode_basestring as quoted

from attrs import define, field, frozen

from aileron.values import Row

from ._seal import GENESIS

PRUNED = "audit.pruned"
"""The type of event that says up to which record the contents were deleted."""


@frozen
class Passage:
    """A part of a chain that holds, if what its first record names as the hash before it is that.

    :ivar after: the sequence of the record before its first.
    :ivar previous: the hash that the first names.
    :ivar last: the sequence of its last record.
    :ivar head: its hash.
    :ivar excused: up to which sequence this part says that contents were deleted.
    :ivar gaps: its stretches of records without contents.
    :ivar marked: the hashes of those of its records that were asked for, by sequence.
    """

    after: int
    previous: str
    last: int
    head: str
    excused: int
    gaps: Sequence[tuple[int, int]]
    marked: Mapping[int, str]


@define(eq=False)
class Walk:
    """How far a chain was found to hold.

    :ivar last: the sequence of the last record that holds.
    :ivar head: its hash.
    :ivar gaps: the stretches of records without contents, each as first and last sequence.
    :ivar excused: up to which sequence the record says that contents were deleted.
    """

    last: int = 0
    head: str = GENESIS
    excused: int = 0
    gaps: list[tuple[int, int]] = field(factory=list)

    @property
    def pruned(self) -> int:
        """How many records have no contents."""
        return sum(end - first + 1 for first, end in self.gaps)

    @property
    def unexcused(self) -> int | None:
        """The first record without contents of which the record does not say that they were deleted."""
        return next((max(first, self.excused + 1) for first, end in self.gaps if end > self.excused), None)

    def follow(self, rows: Sequence[Row]) -> int:
        """Go on along C{rows}; each must follow the one before.

        Written out for speed: it is what L{aileron.audit.seal} does, without a value and a call for each record.

        :return: how many hold; where that is not all, the next one does not.
        """
        expected, previous, held = self.last, self.head, 0
        null = "null"
        try:
            for row in rows:
                (
                    seq,
                    id_,
                    type_,
                    at,
                    who,
                    whom,
                    run,
                    session,
                    action,
                    fqn,
                    kind,
                    digest,
                    before,
                    own,
                    salt,
                    payload,
                ) = row
                expected += 1
                if payload is None and salt is None:
                    self._widen(seq, seq)
                elif "sha256:" + sha256(f"{salt}\n{payload}".encode()).hexdigest() != digest:
                    break
                line = (
                    f'{{"action":{null if action is None else quoted(action)}'
                    f',"actor_id":{quoted(whom)},"actor_type":{quoted(who)},"at":{quoted(at)}'
                    f',"connector":{null if fqn is None else quoted(fqn)}'
                    f',"failure_class":{null if kind is None else quoted(kind)}'
                    f',"form":"aileron.audit.v1","id":{quoted(id_)},"payload_digest":{quoted(digest)}'
                    f',"previous_hash":"{previous}","run_id":{null if run is None else quoted(run)}'
                    f',"sequence":{seq},"session_id":{null if session is None else quoted(session)}'
                    f',"type":{quoted(type_)}}}'
                )
                hashed = "sha256:" + sha256(line.encode()).hexdigest()
                if hashed != own or before != previous or seq != expected:
                    break
                previous = hashed
                held += 1
                if type_ == PRUNED:
                    self._excuse(payload, seq)
        except (TypeError, ValueError, AttributeError):  # a column of another type, or no Unicode: it does not hold
            return self._come(held, previous)
        return self._come(held, previous)

    def join(self, passage: Passage) -> bool:
        """Go on to the end of C{passage}, if it begins where this one stands; whether it does."""
        if (passage.after, passage.previous) != (self.last, self.head):
            return False
        self.last, self.head = passage.last, passage.head
        self.excused = max(self.excused, passage.excused)
        for first, end in passage.gaps:
            self._widen(first, end)
        return True

    def _come(self, held: int, head: str) -> int:
        self.last, self.head = self.last + held, head
        return held

    def _widen(self, first: int, end: int) -> None:
        if self.gaps and self.gaps[-1][1] == first - 1:
            self.gaps[-1] = (self.gaps[-1][0], end)
        else:
            self.gaps.append((first, end))

    def _excuse(self, payload: str | None, sequence: int) -> None:
        """What a record says of those before it; of those that come after it none can."""
        told = {} if payload is None else json.loads(payload)
        up_to = told.get("up_to") if isinstance(told, dict) else None
        if type(up_to) is int and up_to < sequence:
            self.excused = max(self.excused, up_to)
