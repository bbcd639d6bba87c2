"""Checks the chain."""

from __future__ import annotations

from collections.abc import Iterable

from aileron.values import Link, Record, compact

from ._seal import GENESIS, payload_digest, seal


def check_chain(records: Iterable[Record], previous_hash: str = GENESIS, after: int = 0) -> int | None:
    """The sequence of the first record that does not hold, or L{None} if all do.

    A record holds if it follows the one before it without a gap, and its hash and its payload's digest are right.
    What was cut off at the end leaves no trace in the chain itself.

    :param records: oldest first.
    :param previous_hash: of the record before the first of C{records}.
    :param after: its sequence.
    """
    for expected, record in enumerate(records, after + 1):
        if not _holds(record, expected, previous_hash):
            return expected
        previous_hash = record.hash
    return None


def _holds(record: Record, sequence: int, previous_hash: str) -> bool:
    link = Link(record.sequence, record.event, record.payload_digest)
    return (
        record.sequence == sequence
        and record.previous_hash == previous_hash
        and (record.salt is None or record.payload_digest == payload_digest(record.salt, compact(record.event.payload)))
        and record.hash == seal(previous_hash, link)
    )
