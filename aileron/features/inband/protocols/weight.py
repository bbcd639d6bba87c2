"""Counts the values in JSON text as it arrives, so that the cost of parsing is known in advance."""

from __future__ import annotations

import re

MOST_VALUES = 100_000
"""The most values in a request's body, or in one JSON text of a provider. Each comma, array and object counts."""

VALUE_BYTES = 128
"""The bytes of memory that a parsed value needs in addition to its text."""

_without_escapes = re.compile(rb"\\.", re.DOTALL).sub
_SIGNS = (b",", b"[", b"{")


class ValueCounter:
    """A counter of the values in a JSON text that arrives in pieces. For invalid JSON the count is arbitrary.

    :ivar count: the number of values so far.
    """

    __slots__ = ("_escaped", "_inside", "count")

    def __init__(self) -> None:
        self.count = 0
        self._inside = self._escaped = (
            False  # True if the next piece starts inside a string, or with the second half of an escape
        )

    def feed(self, data: bytes) -> None:
        """Count the JSON values that begin in the next piece of the text."""
        if self._escaped and data:
            data, self._escaped = data[1:], False
        if b"\\" in data:
            data = _without_escapes(b"", data)
            if data.endswith(b"\\"):
                data, self._escaped = data[:-1], True
        parts = data.split(b'"')
        outside = b"".join(parts[self._inside :: 2])
        self.count += sum(map(outside.count, _SIGNS))
        if not len(parts) % 2:
            self._inside = not self._inside


def count_values(data: bytes) -> int:
    """Return the number of values in a JSON text."""
    counter = ValueCounter()
    counter.feed(data)
    return counter.count


def weigh(data: bytes) -> int:
    """Return the bytes of memory that a JSON text and its parsed values need."""
    return len(data) + VALUE_BYTES * count_values(data)
