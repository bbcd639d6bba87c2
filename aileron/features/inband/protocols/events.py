"""Server-sent events. A stream is split into events, and an event's bytes change only if its data changes."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from math import isfinite
from typing import Any

from attrs import frozen

from aileron.base.json import JSON
from aileron.features.inband._turns import MOST_HELD, BrokenReply

from .document import dump
from .weight import MOST_VALUES, count_values

_end = re.compile(rb"\n\r?\n|\r\r").search
_lines = re.compile(rb"\r\n|\n|\r").split
_LONGEST_END = 3


@frozen
class StreamEvent:
    """One event.

    :ivar raw: its bytes, with the final blank line.
    :ivar name: the event's type, if it is stated beside the data.
    :ivar data: the JSON object of its data, or empty for a comment or C{[DONE]}.
    """

    raw: bytes
    name: str
    data: Mapping[str, Any]

    def with_data(self, data: Mapping[str, JSON]) -> StreamEvent:
        """Return a copy with other data, or this event if the data is equal."""
        return self if data == self.data else StreamEvent(write_event(self.name, data), self.name, data)


class EventReader:
    """A parser that splits a stream into its events."""

    def __init__(self) -> None:
        self._kept = bytearray()

    @property
    def held_bytes(self) -> int:
        """The number of bytes in memory of the event that is still incomplete."""
        return len(self._kept)

    def feed(self, data: bytes) -> Iterator[StreamEvent]:
        """Add data of the stream, and yield the events that are complete.

        :raises BrokenReply: if an event is too long, or its data is not a JSON object.
        """
        begin = max(0, len(self._kept) - _LONGEST_END)
        self._kept += data
        done = 0
        while (found := _end(self._kept, max(begin, done))) is not None:
            yield _read(bytes(self._kept[done : found.end()]))
            done = found.end()
        del self._kept[:done]
        if len(self._kept) > MOST_HELD:
            raise BrokenReply("The provider sent an event that is too long.")

    def end(self) -> Iterator[StreamEvent]:
        """Yield the last event if the stream ended without the event's final blank line.

        :raises BrokenReply: if its data is not a JSON object.
        """
        if self._kept.strip():
            yield _read(bytes(self._kept) + b"\n\n")


def write_event(name: str, data: Mapping[str, JSON]) -> bytes:
    """Return an event as bytes."""
    said = f"event: {name}\n" if name else ""
    return f"{said}data: {dump(data)}\n\n".encode("ascii")


def _read(raw: bytes) -> StreamEvent:
    name, data = "", []
    for line in _lines(raw):
        field, _, value = line.partition(b":")
        if field == b"event":
            name = value.strip().decode("utf-8", "replace")
        elif field == b"data":
            data.append(value.removeprefix(b" "))
    return StreamEvent(raw, name, read_object(b"\n".join(data)) if data and data != [b"[DONE]"] else {})


def _finite(text: str) -> float:
    if not isfinite(number := float(text)):
        raise ValueError
    return number


# Non-finite numbers are refused: they would be written as invalid JSON, which clients cannot parse.
_decode = json.JSONDecoder(parse_float=_finite, parse_constant=_finite).decode


def read_object(data: bytes) -> Mapping[str, Any]:
    """Parse a provider's JSON object.

    :raises BrokenReply: if C{data} is not a JSON object, or has more than L{MOST_VALUES} values.
    """
    if len(data) > MOST_VALUES and count_values(data) > MOST_VALUES:
        raise BrokenReply(f"The provider sent JSON of more than {MOST_VALUES} values.")
    try:
        value = _decode(data.decode("utf-8", "surrogatepass"))
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        raise BrokenReply("The provider sent what is not a JSON object.")
    return value
