"""Heads that differ in the length of their body alone, as those of one client mostly do."""

from __future__ import annotations

import re

_LONGEST_BYTES = 4096
_MOST_DIGITS = 18
# As a number is written again: a sign, a space or a nought before it makes a head like no other.
_LENGTH = re.compile(rb"\r\n(?i:content-length): *((?:0|[1-9][0-9]{0,17})(?=\r\n))").search


class Likeness:
    """One head that was read, and all that are the same bytes but for the number of their Content-Length."""

    __slots__ = ("_after", "_before", "_length")

    def __init__(self, raw: bytes, length: int) -> None:
        """Remember a head.

        :param raw: the whole of it, sound, with its closing empty line.
        :param length: that it tells.
        """
        number = _LENGTH(raw)
        self._length = length
        self._before, self._after = (raw, b"") if number is None else (raw[: number.start(1)], raw[number.end(1) :])

    @classmethod
    def worth(cls, raw: bytes, length: int) -> Likeness | None:
        """The same, or L{None}: the head is so long that it is rather read anew than remembered."""
        return cls(raw, length) if len(raw) <= _LONGEST_BYTES else None

    def measure(self, data: bytes) -> tuple[int, int] | None:
        """Whether such a head stands at the beginning of C{data}.

        :return: its own length in bytes and the one that it tells, or L{None}: it is another one, or not all there.
        """
        before, after = self._before, self._after
        if not data.startswith(before):
            return None
        if not after:
            return len(before), self._length
        start = len(before)
        end = data.find(b"\r", start, start + _MOST_DIGITS + 1)
        digits = data[start:end]
        if end < 0 or not digits.isdigit() or (digits[0] == 48 and len(digits) > 1) or not data.startswith(after, end):
            return None
        return end + len(after), int(digits)

    def telling(self, length: int) -> bytes:
        """The one that tells this length."""
        return b"%b%d%b" % (self._before, length, self._after) if self._after else self._before
