"""Tells what was done to the first record that does not hold: altered, removed, inserted or moved."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from aileron.values import Break, Row

from ._seal import seal_row

_NEAR = 256
"""How far a record may have been moved and still be told from one that was altered."""


def diagnose(rows: Sequence[Row], last: int, head: str) -> Break:
    """Find what is wrong with the first of C{rows}, given that all up to record C{last}, of hash C{head}, holds.

    :param rows: it and some of those that follow it.
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
    """Its hash is not that of what it says: altered, unless it is as it was under another number."""
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
    return Break("altered", last, f"Record {last} was altered or put in, and its hash made anew: {why}.")


def _is_removed(first: int, end: int, how: str) -> Break:
    which = f"Record {first} was" if first == end else f"Records {first} to {end} were"
    return Break("removed", first, f"{which} removed: {how}.")


def _find_near(expected: int) -> Iterable[int]:
    near = (number for step in range(1, _NEAR) for number in (expected - step, expected + step))
    return (number for number in near if number > 0)


def _number_of(row: Row, numbers: Iterable[int]) -> int | None:
    """Find the one of C{numbers} under which the row's hash is that of what it says."""
    return next((number for number in numbers if _hash((number, *row[1:])) == row[13]), None)


def _hash(row: Row) -> str | None:
    """Hash what a row says, its contents by the digest that it names; L{None}: it says nothing that has a hash."""
    try:
        return seal_row(row[12], row)
    except ValueError:
        return None
