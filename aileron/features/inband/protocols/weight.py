"""The number of values in JSON text, counted as the text comes: what reading it takes is known before it is read."""

from __future__ import annotations

import re

MOST_VALUES = 100_000
"""Most values of a request's body, or of one JSON text of a provider's; every comma and every container counts."""

VALUE_BYTES = 128
"""The bytes that a value takes which was read, beside its text."""

_without_escapes = re.compile(rb"\\.", re.DOTALL).sub
_SIGNS = (b",", b"[", b"{")


class ValueCounter:
    """Counts the values in a JSON text that comes in pieces, in linear time.  What is no JSON is counted somehow.

    :ivar count: the values so far.
    """

    __slots__ = ("_escaped", "_inside", "count")

    def __init__(self) -> None:
        self.count = 0
        self._inside = self._escaped = False  # a string, or half an escape of it, goes on in the next piece

    def feed(self, data: bytes) -> None:
        """Count the values in the next piece."""
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
    """Return the bytes that a JSON text takes, with what was read of it."""
    return len(data) + VALUE_BYTES * count_values(data)
