"""A record as lines of JSON: a header, the checkpoints, the records, and a line that says that this is all."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence

from attrs import frozen

from aileron.values import JSON, ROW, Checkpoint, Row, compact, writer

from ._seal import GENESIS

FORMAT = "aileron.audit.export.v1"
_PAYLOAD = ROW.index("payload")
_RECORD, _HEADER, _END = (
    frozenset(names)
    for names in (
        ("kind", *ROW),
        ("kind", "format", "version", "vaults", "public_keys", "after", "previous_hash", "until"),
        ("kind", "until"),
    )
)
_CONTROL = re.compile(r"[\x00-\x1f]")
_written = writer(sort_keys=False, allow_nan=False)


class NotAnExport(ValueError):
    """The file is no export, or a line of it is not what its place asks for."""


@frozen
class Exporting:
    """What one export holds.

    :ivar after: the sequence of the record before its first.
    :ivar previous: its hash.
    :ivar until: the sequence of its last record.
    :ivar checkpoints: about its records.
    """

    after: int
    previous: str
    until: int
    checkpoints: Sequence[Checkpoint]

    def head(self, version: str) -> Iterator[str]:
        """The lines before the records.

        :param version: of who writes it.
        """
        yield _line(
            {
                "kind": "header",
                "format": FORMAT,
                "version": version,
                "vaults": list(dict.fromkeys(each.vault for each in self.checkpoints)),
                "public_keys": list(dict.fromkeys(each.key for each in self.checkpoints)),
                "after": self.after,
                "previous_hash": self.previous,
                "until": self.until,
            }
        )
        for each in self.checkpoints:
            yield _line({"kind": "checkpoint", **each.as_json()})

    def end(self) -> str:
        """The line after them."""
        return _line({"kind": "end", "until": self.until})


def record_line(row: Row) -> str:
    """One record.  Its contents stand there as they were kept and hashed: nothing is read and written anew."""
    rest = dict(zip(ROW[:_PAYLOAD], row[:_PAYLOAD], strict=True))
    return _inert(f'{{"kind":"record",{_written(rest)[1:-1]},"payload":{_contents(row[_PAYLOAD])}}}') + "\n"


def _contents(payload: str | None) -> str:
    """C{payload}, if we can have written it; else, as a text, what a strange file has in its place."""
    if payload is None:
        return "null"
    ours = isinstance(payload, str) and payload.isascii() and not _CONTROL.search(payload)
    return payload if ours and payload else _written(str(payload))


def _line(value: dict[str, JSON]) -> str:
    return _inert(_written(value)) + "\n"


def _inert(line: str) -> str:
    """C{line} without the one control character that JSON leaves as it is."""
    return line.replace("\x7f", "\\u007f")


@frozen
class Export:
    """An export as it is read.

    :ivar exported: what its header and checkpoints say.
    :ivar rows: the records in slices, read as they are taken; L{NotAnExport} where a line is none or the end missing.
    """

    exported: Exporting
    rows: Iterator[list[Row]]


def read_export(lines: Iterable[str], slice_size: int = 1000) -> Export:
    """Read an export, whose lines are taken as they are needed.

    :raises NotAnExport: it does not begin as one.
    """
    left = iter(lines)
    header = _object(next(left, ""), "header")
    checkpoints = []
    line = next(left, "")
    while line and (found := _object(line)).pop("kind", None) == "checkpoint":
        checkpoints.append(_checkpoint(found))
        line = next(left, "")
    after, until, previous = header.get("after"), header.get("until"), header.get("previous_hash")
    if header.get("format") != FORMAT or type(after) is not int or type(until) is not int or type(previous) is not str:
        raise NotAnExport("its header is not understood")
    if header.keys() != _HEADER or not 0 <= after <= until:
        raise NotAnExport("its header is not as an export's is")
    if after == 0 and previous != GENESIS:
        raise NotAnExport("its header names a record before the first")
    return Export(Exporting(after, previous, until, tuple(checkpoints)), _slices(line, left, slice_size, after, until))


def read_anchor(lines: Iterable[str]) -> tuple[Checkpoint, ...]:
    """The checkpoints that an anchor's file holds, one a line; a line that was cut off does not count.

    :raises NotAnExport: another line is no checkpoint.
    """
    whole = [line for line in lines if line.endswith("}\n") and line.strip()]
    return tuple(_checkpoint({**_object(line), "kind": None}) for line in whole)


def _slices(first: str, left: Iterator[str], size: int, after: int, until: int) -> Iterator[list[Row]]:
    rows: list[Row] = []
    line, last = first, after
    while (found := _object(line)).get("kind") == "record":
        rows.append(_row(found))
        line = next(left, "")
        if len(rows) == size:
            last = rows[-1][0]
            yield rows
            rows = []
    last = rows[-1][0] if rows else last
    yield rows
    if found.get("kind") != "end" or found.keys() != _END:
        raise NotAnExport("it does not end as an export does")
    if found["until"] != until or last != until:
        raise NotAnExport(f"it should end with record {until}")
    if next(left, ""):
        raise NotAnExport("something was put behind its end")


def _row(found: dict[str, JSON]) -> Row:
    if found.keys() != _RECORD:
        raise NotAnExport("a record of it has too much or too little")
    payload = found.get("payload")
    return (*map(found.get, ROW[:_PAYLOAD]), None if payload is None else compact(payload))


def _checkpoint(found: dict[str, JSON]) -> Checkpoint:
    found.pop("kind", None)
    try:
        return Checkpoint.from_json(found)
    except ValueError as error:
        raise NotAnExport("a line of it is no checkpoint") from error


def _object(line: str, kind: str | None = None) -> dict[str, JSON]:
    try:
        found = _read(line) if line else {}
    except (ValueError, RecursionError) as error:
        raise NotAnExport("a line of it is no JSON") from error
    if not isinstance(found, dict) or (kind is not None and found.get("kind") != kind):
        raise NotAnExport("it is no export of a record")
    return found


def _unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """One object; of a name that stands twice, two readers could believe another one each."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name stands twice")
    return found


_read = json.JSONDecoder(object_pairs_hook=_unique).decode
