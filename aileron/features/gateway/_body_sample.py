"""A bounded copy of an answer, kept until it has been read for its tokens."""

from __future__ import annotations

import re
import zlib
from functools import partial

from attrs import define, field

from aileron.base.http1 import unchunked
from aileron.model.usage import Usage

from ._usage import FIRST_BYTES, LAST_BYTES, TextExcerpt, usage_at_once, usage_streamed

PLAIN_BYTES = FIRST_BYTES + LAST_BYTES
MOST_PACKED_BYTES = 256 * 1024
MOST_UNPACKED_BYTES = 1024 * 1024

PLAIN = frozenset((b"", b"identity"))
PACKED = frozenset((b"gzip", b"x-gzip", b"deflate"))
_GZIP, _ZLIB, _DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS

_named_coding = re.compile(rb"\r\n(?i:content-encoding):[ \t]*([^\r]*)").search
_chunked = re.compile(rb"\r\n(?i:transfer-encoding):").search
_streamed = re.compile(rb"\r\n(?i:content-type):[ \t]*(?i:text/event-stream)").search
# A line of nothing but a chunk's size stands in no JSON that is sent in one line, and in no event.
_without_chunk_lines = partial(re.compile(rb"\r\n[0-9A-Fa-f]{1,15}(?:;[^\r\n]*)?\r\n").sub, b"")
_chunk = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[^\r\n]*)?\r\n").match


@define
class Allowance:
    """The number of long copies that there may be at once."""

    _left: int

    def take(self) -> bool:
        """Take one of them, if there is one left."""
        if not self._left:
            return False
        self._left -= 1
        return True

    def give(self) -> None:
        """Give one back."""
        self._left += 1


@define(eq=False, repr=False, weakref_slot=False)
class BodySample:
    """The first and the last bytes of a body, or all of a compressed one, which can be read from its beginning only.

    :ivar room: takes pieces of the body, framing included, as long as they fit: L{PLAIN_BYTES} at first.
    """

    _head: bytes
    _allowance: Allowance
    _first: bytes | None = field(default=None, init=False)
    _long: bool = field(default=False, init=False)
    _lost: bool = field(default=False, init=False)
    room: bytearray = field(factory=bytearray, init=False)

    def more(self, data: bytes) -> int:
        """Take a piece that does not fit, and say how many bytes will fit after it."""
        if self._lost:
            return 0
        coding = content_coding(self._head)
        if coding in PLAIN:
            return self._move(data)
        if coding in PACKED and self._lengthen(data):
            return MOST_PACKED_BYTES - len(self.room)
        self._lost = True
        self.let_go()
        return 0

    def _move(self, data: bytes) -> int:
        room = self.room
        if self._first is None:
            missing = max(0, FIRST_BYTES - len(room))
            self._first = bytes(room[:FIRST_BYTES]) + data[:missing]
            data = data[missing:]
            del room[:FIRST_BYTES]
        if len(data) >= LAST_BYTES:
            room[:] = data[-LAST_BYTES:]
        else:
            room += data
            del room[:-LAST_BYTES]
        return PLAIN_BYTES - len(room)

    def _lengthen(self, data: bytes) -> bool:
        self._long = self._long or self._allowance.take()
        if not self._long or len(self.room) + len(data) > MOST_PACKED_BYTES:
            return False
        self.room += data
        return True

    def usage(self) -> Usage | None:
        """Read what it tells of tokens, or L{None}."""
        head, chunked, coding = self._head, _chunked(self._head) is not None, content_coding(self._head)
        if self._lost:
            return None
        room = bytes(self.room)
        if coding in PACKED:
            return _usage(head, TextExcerpt.of(_unpack(unchunked(room) if chunked else room, coding)))
        if coding not in PLAIN:
            return None
        if self._first is None:
            return _usage(head, TextExcerpt.of(_lines_out(room, chunked)))
        return _usage(head, TextExcerpt(_lines_out(self._first, chunked), _lines_out(room, chunked), whole=False))

    def let_go(self) -> None:
        """Keep nothing of it."""
        self._first = None
        self.room.clear()
        if self._long:
            self._long = False
            self._allowance.give()


def content_coding(head: bytes) -> bytes:
    """Return the content coding that an answer's head names, in lower case; empty if it names none."""
    named = _named_coding(head)
    return b"" if named is None else named[1].strip().lower()


def is_chunked(head: bytes) -> bool:
    """Return whether a body has chunks."""
    return _chunked(head) is not None


def is_streamed(head: bytes) -> bool:
    """Return whether a body is a stream of events."""
    return _streamed(head) is not None


def _usage(head: bytes, text: TextExcerpt) -> Usage | None:
    return usage_streamed(text) if _streamed(head) else usage_at_once(text)


def _lines_out(part: bytes, chunked: bool) -> bytes:
    """Return a part of a body, which may begin anywhere, without the lines between its chunks."""
    if not chunked:
        return part
    first = _chunk(part)
    return _without_chunk_lines(part if first is None else part[first.end() :])


def _unpack(data: bytes, coding: bytes) -> bytes:
    """Unpack as much of the text as may be read, and can."""
    try:
        return zlib.decompressobj(zlib_window(data, coding)).decompress(data, MOST_UNPACKED_BYTES)
    except zlib.error:
        return b""


def zlib_window(data: bytes, coding: bytes) -> int:
    """Tell how C{deflate} is meant: in zlib's wrapping as RFC 9110 has it, or, as some send it, in none."""
    if coding != b"deflate":
        return _GZIP
    wrapped = len(data) > 1 and data[0] & 15 == zlib.DEFLATED and int.from_bytes(data[:2], "big") % 31 == 0
    return _ZLIB if wrapped else _DEFLATE
