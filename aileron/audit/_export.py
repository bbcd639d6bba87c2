"""Writes and reads an audit log as lines of JSON: a header, the checkpoints, the records and an end line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain

from attrs import frozen

from aileron.base.converter import from_json, to_json
from aileron.base.json import JSON, compact, make_object, writer
from aileron.model.audit import ROW, Checkpoint, Row

from ._chain import GENESIS, payload_digest

FORMAT = "aileron.audit.export.v1"
_PAYLOAD = ROW.index("payload")
_DIGEST = ROW.index("payload_digest") - 1  # without the sequence
_RECORD, _HEADER, _END = (
    frozenset(names)
    for names in (
        ("kind", *ROW),
        ("kind", "format", "version", "vaults", "public_keys", "after", "previous_hash", "until"),
        ("kind", "until"),
    )
)
_NO_END = "it does not end as an export does"
_CONTROL = re.compile(r"[\x00-\x1f]")
_TEXT = r'(?:null|"([^"\\\x00-\x1f]*)")'
_USUAL = re.compile(
    r'\{"kind":"record","sequence":([1-9][0-9]{0,15}),'
    + ",".join(f'"{name}":{_TEXT}' for name in ROW[1:_PAYLOAD])
    + ',"payload":'
)
"""Matches a record up to its contents, as this module writes it if nothing is escaped.

It halves the time of reading.
"""
_to_json = writer(sort_keys=False, allow_nan=False)
SLICE = 1000
"""The number of records held in memory at once."""


class NotAnExport(ValueError):
    """Raised if a file is not an export, or if a line is not of the kind that its place requires."""


@frozen
class Exporting:
    """The parts of one export around its records: the header, the checkpoints and the end line.

    :ivar after: the sequence of the record before the first exported one.
    :ivar previous: the hash of that record.
    :ivar until: the sequence of the last exported record.
    :ivar checkpoints: the checkpoints of the exported records.
    """

    after: int
    previous: str
    until: int
    checkpoints: Sequence[Checkpoint]

    def head(self, version: str) -> Iterator[str]:
        """Yield the lines before the records: the header, then the checkpoints.

        :param version: the version of the program that writes the export.
        """
        yield _json_line(
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
            yield _json_line({"kind": "checkpoint", **to_json(each)})

    def end(self) -> str:
        """Return the last line of the export, which follows the records."""
        return _json_line({"kind": "end", "until": self.until})


@frozen
class Export:
    """An export that is being read.

    :ivar exported: the header and the checkpoints.
    :ivar rows: yields the records in slices as they are read. Raises L{NotAnExport} at an invalid line or a missing
        end.
    """

    exported: Exporting
    rows: Iterator[list[Row]]


def _json_line(value: dict[str, JSON]) -> str:
    """Return C{value} as a line of an export."""
    return _without_delete(_to_json(value)) + "\n"


def record_line(row: Row) -> str:
    """Return a record as a line of an export.

    The contents are copied as stored and hashed, without encoding them again.
    """
    rest = dict(zip(ROW[:_PAYLOAD], row[:_PAYLOAD], strict=True))
    line = f'{{"kind":"record",{_to_json(rest)[1:-1]},"payload":{_contents(row[_PAYLOAD])}}}'
    return _without_delete(line) + "\n"


def _contents(payload: str | None) -> str:
    """Return C{payload} unchanged if it is JSON as Aileron writes it, else encoded as a JSON string."""
    if payload is None:
        return "null"
    ours = isinstance(payload, str) and payload.isascii() and not _CONTROL.search(payload)
    return payload if ours and payload else _to_json(str(payload))


def _without_delete(line: str) -> str:
    """Escape the delete character, the one control character that JSON leaves unescaped."""
    return line.replace("\x7f", "\\u007f")


def read_export(lines: Iterable[str], slice_size: int = SLICE) -> Export:
    """Read the header and checkpoints of an export. The records are read from C{lines} on demand.

    :raises NotAnExport: if C{lines} do not begin as an export.
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
    rows = _slices(_rows(chain([line] if line else [], left), after, until), slice_size)
    return Export(Exporting(after, previous, until, tuple(checkpoints)), rows)


def read_anchor(lines: Iterable[str]) -> tuple[Checkpoint, ...]:
    """Return the checkpoints of an anchor's file, one per line.

    A line that does not end with a closing brace and a line end is skipped, such as one that is cut off.

    :raises NotAnExport: if another line is not a checkpoint.
    """
    whole = [line for line in lines if line.endswith("}\n") and line.strip()]
    return tuple(_checkpoint({**_object(line), "kind": None}) for line in whole)


def _slices(rows: Iterator[Row], size: int) -> Iterator[list[Row]]:
    """Yield the rows in slices. If a line is invalid, yield the rows before it and then raise L{NotAnExport}."""
    held: list[Row] = []
    try:
        for row in rows:
            held.append(row)
            if len(held) == size:
                yield held
                held = []
    except NotAnExport:
        yield held
        raise
    yield held


def _rows(lines: Iterator[str], after: int, until: int) -> Iterator[Row]:
    """Yield the records and then check the end of the export.

    :param after: the sequence of the record before the first exported one.
    :param until: the sequence of the last record according to the header.
    :raises NotAnExport: if a line is invalid, the end line is missing or wrong, or lines follow the end line.
    """
    last: JSON = after
    for line in lines:
        row = _usual_row(line)
        if row is None:
            found = _object(line)
            if found.get("kind") != "record":
                _check_end(found, last, until)
                break
            row = _row(found)
        last = row[0]
        yield row
    else:
        raise NotAnExport(_NO_END)
    if next(lines, ""):
        raise NotAnExport("something was put behind its end")


def _check_end(found: dict[str, JSON], last: JSON, until: int) -> None:
    if found.get("kind") != "end" or found.keys() != _END:
        raise NotAnExport(_NO_END)
    if found["until"] != until or last != until:
        raise NotAnExport(f"it should end with record {until}")


def _usual_row(line: str) -> Row | None:
    """Parse a line in the most common form of a record. Return None if it must be parsed as JSON instead.

    Contents that match their digest are returned unchanged. Other contents are encoded again.
    """
    about = _USUAL.match(line)
    if about is None:
        return None
    begin = about.end()
    try:
        value, end = _decoder.raw_decode(line, begin)
        if line[end:] != "}\n":
            return None
        sequence, *texts = about.groups()
        kept = line[begin:end]
        if value is None:
            contents = None
        elif texts[-1] is not None and payload_digest(texts[-1], kept) == texts[_DIGEST]:
            contents = kept
        else:
            contents = compact(value)
    except (ValueError, RecursionError):
        return None
    return (int(sequence), *texts, contents)


def _row(found: dict[str, JSON]) -> Row:
    if found.keys() != _RECORD:
        raise NotAnExport("a record of it has too much or too little")
    payload = found.get("payload")
    return (*map(found.get, ROW[:_PAYLOAD]), None if payload is None else compact(payload))


def _checkpoint(found: dict[str, JSON]) -> Checkpoint:
    found.pop("kind", None)
    try:
        return from_json(Checkpoint, found)
    except ValueError as error:
        raise NotAnExport("a line of it is no checkpoint") from error


def _object(line: str, kind: str | None = None) -> dict[str, JSON]:
    try:
        found = _read_json(line) if line else {}
    except (ValueError, RecursionError) as error:
        raise NotAnExport("a line of it is no JSON") from error
    if not isinstance(found, dict) or (kind is not None and found.get("kind") != kind):
        raise NotAnExport("it is no export of a record")
    return found


_decoder = json.JSONDecoder(object_pairs_hook=make_object)
_read_json = _decoder.decode
