"""Finds the end of bodies without decoding them (RFC 9112, sections 6 and 7)."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import lru_cache
from itertools import count
from typing import Protocol

from ._fields import CHUNKED, FIELD, TOKEN, Malformed

_EXTENSION = rb"(?:;[\t\x20-\x7e\x80-\xff]{0,400})?"
_SIZE = rb"([0-9A-Fa-f]{1,15})" + _EXTENSION + rb"\r\n"
_FIRST_CHUNK = re.compile(_SIZE).match
_NEXT_CHUNK = re.compile(rb"\r\n" + _SIZE).match  # including the line end of the previous chunk
_NEXT_LINE = re.compile(rb"(?:\r\n)?" + _SIZE).match
_TRAILER = re.compile(rb"(?:" + FIELD + rb"\r\n)*\r\n").match
_NO_TRAILER = re.compile(rb"\r\n").match
# Prefixes of the above, so that a bad line is refused at its first bad byte.
_UNFINISHED_SIZE = rb"(?:[0-9A-Fa-f]{1,15}" + _EXTENSION + rb"\r?)?"
_UNFINISHED_FIRST = re.compile(_UNFINISHED_SIZE).fullmatch
_UNFINISHED_NEXT = re.compile(rb"\r?|\r\n" + _UNFINISHED_SIZE).fullmatch
_UNFINISHED_TRAILER = re.compile(
    rb"(?:" + FIELD + rb"\r\n)*(?:" + TOKEN + rb"(?::[\t\x20-\x7e\x80-\xff]*)?)?\r?"
).fullmatch
_MAX_TRAILER_BYTES = 8192
_AROUND_BYTES = 4  # two line ends
_LEAST_BYTES = 6  # of a chunk that is not the last one
_MOST_REMEMBERED = 256


class Body(Protocol):
    """A finder of the end of one body in a stream of bytes."""

    def take(self, data: bytes) -> int:
        """Return the index after the body's end in C{data}, or -1 if the body continues after C{data}."""


class Fixed:
    """A finder of the end of a body of known length."""

    __slots__ = ("_left",)

    def __init__(self, length: int) -> None:
        self._left = length

    def take(self, data: bytes) -> int:
        left = self._left
        self._left = max(0, left - len(data))
        return -1 if len(data) < left else left


class Chunked:
    """A finder of the end of a chunked body, without decoding it.

    :param trailers: whether fields may follow the last chunk.
    """

    __slots__ = ("_between", "_chunk", "_in_trailer", "_pending", "_skip", "_trailer")

    def __init__(self, *, trailers: bool = True) -> None:
        self._trailer = _TRAILER if trailers else _NO_TRAILER
        self._between = True  # True if the next byte begins a chunk
        self._chunk = _FIRST_CHUNK
        self._skip = 0
        self._pending = b""
        self._in_trailer = False

    def take(self, data: bytes) -> int:
        """Return the index after the body's end in C{data}, or -1 if the body continues after C{data}.

        :raises Malformed: if a byte is invalid in a chunked body.
        """
        if self._between:
            if data.startswith(_lines_of(len(data))) and data.endswith(b"\r\n"):
                return -1  # exactly one chunk, as most events of a stream arrive
            self._between = False
        if len(data) < self._skip:
            self._skip -= len(data)
            return -1
        before = len(self._pending)
        position, data = (0, self._pending + data) if before else (self._skip, data)
        end = self._walk(data, position)
        return end if end < 0 else end - before

    def _walk(self, data: bytes, position: int) -> int:
        size = len(data)
        while position < size:
            if size - position == 2 and self._chunk is _NEXT_CHUNK and not self._in_trailer and data.endswith(b"\r\n"):
                self._between, self._chunk, position = True, _FIRST_CHUNK, size
                break
            match = (self._trailer if self._in_trailer else self._chunk)(data, position)
            if match is None:
                self._check_unfinished(data[position:])
                break
            if self._in_trailer:
                _check_trailer(match.end() - position)
                return match.end()
            length = int(match[1], 16)
            self._chunk = _NEXT_CHUNK
            self._in_trailer = not length
            position = match.end() + length
        self._pending = data[position:]
        self._skip = max(0, position - size)
        return -1

    def _check_unfinished(self, line: bytes) -> None:
        if self._in_trailer:
            if self._trailer is _NO_TRAILER and line not in (b"", b"\r"):
                raise Malformed("Fields after the body are not taken: send them before it.")
            _check_trailer(len(line))
            unfinished = _UNFINISHED_TRAILER
        else:
            unfinished = _UNFINISHED_FIRST if self._chunk is _FIRST_CHUNK else _UNFINISHED_NEXT
        if not unfinished(line):
            raise Malformed("The body is not properly chunked.")


@lru_cache(_MOST_REMEMBERED)
def _lines_of(length: int) -> tuple[bytes, ...]:
    """Return the first lines that a chunk of C{length} bytes in total may have: with lower-case and upper-case digits.

    Comparing is faster than parsing a number, and the events of a stream have few different sizes.
    """
    if length < _LEAST_BYTES:
        return ()
    digits = next(digits for digits in count(1) if length - digits - _AROUND_BYTES < 16**digits)
    size = length - digits - _AROUND_BYTES
    return b"%0*x\r\n" % (digits, size), b"%0*X\r\n" % (digits, size)


def _check_trailer(length: int) -> None:
    if length > _MAX_TRAILER_BYTES:
        raise Malformed("The body's trailer is too long.")


def unchunked(body: bytes) -> bytes:
    """Return the content of a complete chunked body that L{Chunked} accepted."""
    pieces = []
    position = 0
    while (match := _FIRST_CHUNK(body, position)) and (length := int(match[1], 16)):
        pieces.append(body[match.end() : match.end() + length])
        position = match.end() + length + 2
    return b"".join(pieces)


class ChunkedContent:
    """A decoder for the pieces of a chunked body that L{Chunked} accepted."""

    __slots__ = ("_left", "_line")

    def __init__(self) -> None:
        self._line = b""
        self._left = 0

    def take(self, data: bytes) -> bytes:
        """Return the content in the next piece of the body."""
        data, self._line = self._line + data, b""
        pieces, position = [], 0
        while position < len(data):
            if self._left:
                piece = data[position : position + self._left]
                pieces.append(piece)
                self._left -= len(piece)
                position += len(piece)
                continue
            match = _NEXT_LINE(data, position)
            if match is None:
                self._line = data[position:]
                break
            self._left, position = int(match[1], 16), match.end()
            if not self._left:
                break  # trailers are ignored
        return b"".join(pieces)


class UntilClose:
    """A body without announced length, which ends when its connection is closed."""

    __slots__ = ()

    def take(self, data: bytes) -> int:
        return -1


class Tee:
    """A finder of a body's end that also passes the bytes of the body to a reader.

    :param read: called with each piece, framing included, and whether it is the last one.
    """

    __slots__ = ("_body", "_read")

    def __init__(self, body: Body, read: Callable[[bytes, bool], None]) -> None:
        self._body, self._read = body, read

    def take(self, data: bytes) -> int:
        end = self._body.take(data)
        self._read(data if end < 0 else data[:end], end >= 0)
        return end


def announced(length: int) -> Body | None:
    """Return a new finder of the end of a request's body, or None if no body follows.

    Fields after a chunked body are refused, because the request's head was checked without them.

    :param length: the length in bytes, 0 for no body, or L{CHUNKED}.
    """
    # guard against attack: fields after a body are refused -> test_gateway_memory.GatewayMemoryTests.test_trailers,
    #    instead return Chunked() if length == CHUNKED else Fixed(length) if length else None
    return Chunked(trailers=False) if length == CHUNKED else Fixed(length) if length else None
