"""Checks row after row of a chain, as fast as Python can, for as long as everything holds."""

from __future__ import annotations

import json
from collections.abc import Sequence
from hashlib import sha256
from json.encoder import encode_basestring as quoted

from attrs import define, field

from aileron.values import Row

from ._seal import GENESIS

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
                    self._widen(seq)
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
            pass
        self.last, self.head = self.last + held, previous
        return held

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
