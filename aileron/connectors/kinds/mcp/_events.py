"""Reads messages from responses: JSON, and server-sent events (WHATWG HTML standard, 9.2) in linear time."""

from __future__ import annotations

import re
from collections.abc import Callable

from aileron.base.json import JSON
from aileron.connectors._conversation import NotUnderstood
from aileron.connectors._decode import decode

_LINE_ENDS = re.compile(rb"\r\n|\n|\r")


def read_message(data: bytes) -> JSON:
    """Decode the JSON of a message, or of a batch of messages.

    :raises NotUnderstood: if C{data} is not valid JSON.
    """
    try:
        return decode(data)
    except ValueError:
        raise NotUnderstood from None


class EventMessages:
    """A parser of server-sent events that passes on the data of events named C{message}, the default name.

    :param receive: called with the data of each event. Its errors are raised by L{feed}.
    """

    def __init__(self, receive: Callable[[bytes], object]) -> None:
        self._receive = receive
        self._pieces: list[bytes] = []
        self._ends_with_return, self._is_first = False, True
        self._name = b""
        self._data: list[bytes] = []

    def feed(self, piece: bytes) -> None:
        """Parse the next bytes of the stream.

        :raises Exception: any error of C{receive}.
        """
        if not piece:
            return
        ends_with_return = piece.endswith(b"\r")
        if self._ends_with_return and piece.startswith(b"\n"):
            piece = piece[1:]  # the second byte of a line end that was split
        self._ends_with_return = ends_with_return
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
