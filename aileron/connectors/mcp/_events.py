"""Reads a stream of server-sent events (the WHATWG's HTML standard, 9.2) piece by piece, in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable

_LINE_ENDS = re.compile(rb"\r\n|\n|\r")


class EventMessages:
    """Hands on the data of each event named C{message}, which is the usual name, and no other.

    :param receive: is given the data of one event; what it raises is raised by L{feed}.
    """

    def __init__(self, receive: Callable[[bytes], object]) -> None:
        self._receive = receive
        self._pieces: list[bytes] = []
        self._ends_with_return, self._is_first = False, True
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        """Take the next bytes of the stream."""
        if self._ends_with_return and piece.startswith(b"\n"):
            piece = piece[1:]  # the other half of a line's end
        if not piece:
            return
        self._ends_with_return = piece.endswith(b"\r")
        first, *others = _LINE_ENDS.split(piece)
        self._pieces.append(first)
        for each in others:
            self._line(b"".join(self._pieces))
            self._pieces = [each]

    def _line(self, line: bytes) -> None:
        if self._is_first:
            self._is_first, line = False, line.removeprefix(b"\xef\xbb\xbf")
        if not line:
            self._end()
            return
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if name == b"data":
            self._data.append(value)
        elif name == b"event":
            self._name = value

    def _end(self) -> None:
        name, data = self._name, b"\n".join(self._data)
        self._name, self._data = b"", []
        if data and name in (b"", b"message"):
            self._receive(data)
