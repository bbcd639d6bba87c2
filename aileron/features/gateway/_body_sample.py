"""A bounded copy of a response, stored until its token counts have been read."""

from __future__ import annotations

import re
import zlib
from functools import partial

from attrs import define, field

from aileron.base.http1 import unchunked
from aileron.model.usage import Usage

from ._usage import FIRST_BYTES, LAST_BYTES, TextExcerpt, find_model, usage_at_once, usage_streamed

PLAIN_BYTES = FIRST_BYTES + LAST_BYTES
MOST_PACKED_BYTES = 256 * 1024
MOST_UNPACKED_BYTES = 1024 * 1024

PLAIN = frozenset((b"", b"identity"))
PACKED = frozenset((b"gzip", b"x-gzip", b"deflate"))
_GZIP, _ZLIB, _DEFLATE = 16 + zlib.MAX_WBITS, zlib.MAX_WBITS, -zlib.MAX_WBITS

_named_coding = re.compile(rb"\r\n(?i:content-encoding):[ \t]*([^\r]*)").search
_chunked = re.compile(rb"\r\n(?i:transfer-encoding):").search
_streamed = re.compile(rb"\r\n(?i:content-type):[ \t]*(?i:text/event-stream)").search
# Neither JSON in one line nor an event contains a line with only a chunk's size.
_without_chunk_lines = partial(re.compile(rb"\r\n[0-9A-Fa-f]{1,15}(?:;[^\r\n]*)?\r\n").sub, b"")
_chunk = re.compile(rb"([0-9A-Fa-f]{1,15})(?:;[^\r\n]*)?\r\n").match


@define
class Allowance:
    """A limit on the number of long response copies that exist in memory at once."""

    _left: int

    def take(self) -> bool:
        """Reserve one long copy and return True, or return False if the limit is reached."""
        if not self._left:
            return False
        self._left -= 1
        return True

    def give(self) -> None:
        """Free the allowance of one long copy, so that another long copy can be made."""
        self._left += 1


@define(eq=False, repr=False, weakref_slot=False)
class BodySample:
    """A copy of a response's body for reading its token counts: its first and last bytes, or all if compressed.

    :ivar room: the buffer to which callers append the body, framing included. At first L{PLAIN_BYTES} fit, later as
        many as L{more} returned.
    """

    _head: bytes
    _allowance: Allowance
    _first: bytes | None = field(default=None, init=False)
    _long: bool = field(default=False, init=False)
    _lost: bool = field(default=False, init=False)
    _text: TextExcerpt | None = field(default=None, init=False)
    room: bytearray = field(factory=bytearray, init=False)

    def more(self, data: bytes) -> int:
        """Store a piece that does not fit into L{room}, and return how many bytes fit into L{room} afterwards.

        If the body is too large or has an unknown coding, discard the copy and return 0.
        """
        if self._lost:
            return 0
        coding = content_coding(self._head)
        if coding in PLAIN:
            return self._move(data)
        if coding in PACKED and self._lengthen(data):
            return MOST_PACKED_BYTES - len(self.room)
        self._lost = True
        self.discard()
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
        """Return the token counts in the body, or None if there are none or the body could not be stored."""
        text = self._excerpt()
        return None if text is None else _usage(self._head, text)

    def end(self) -> tuple[bytes, bool] | None:
        """Return the end of the body, at most as much as is kept, and whether the body is a stream of events.

        Return None if the body cannot be read.
        """
        text = self._excerpt()
        return None if text is None else (text.end, is_streamed(self._head))

    def model(self) -> str:
        """Return the name of the model in the body, or an empty text if none can be read."""
        text = self._excerpt()
        return "" if text is None else find_model(text)

    def _excerpt(self) -> TextExcerpt | None:
        """Return the readable text of the body, or None if there is none. The text is kept for a second call."""
        if self._text is None:
            self._text = self._read()
        return self._text

    def _read(self) -> TextExcerpt | None:
        chunked, coding = _chunked(self._head) is not None, content_coding(self._head)
        if self._lost:
            return None
        room = bytes(self.room)
        if coding in PACKED:
            return TextExcerpt.of(_unpack(unchunked(room) if chunked else room, coding))
        if coding not in PLAIN:
            return None
        if self._first is None:
            return TextExcerpt.of(_lines_out(room, chunked))
        return TextExcerpt(_lines_out(self._first, chunked), _lines_out(room, chunked), whole=False)

    def discard(self) -> None:
        """Discard the copy, and free its allowance."""
        self._first = self._text = None
        self.room.clear()
        if self._long:
            self._long = False
            self._allowance.give()


def content_coding(head: bytes) -> bytes:
    """Return the content coding that an answer's head names, in lower case; empty if it names none."""
    named = _named_coding(head)
    return b"" if named is None else named[1].strip().lower()


def is_chunked(head: bytes) -> bool:
    """Return whether the response's body is chunked."""
    return _chunked(head) is not None


def is_streamed(head: bytes) -> bool:
    """Return whether the response's body is a stream of server-sent events."""
    return _streamed(head) is not None


def _usage(head: bytes, text: TextExcerpt) -> Usage | None:
    return usage_streamed(text) if _streamed(head) else usage_at_once(text)


def _lines_out(part: bytes, chunked: bool) -> bytes:
    """Return a part of a body without the chunk lines, if the body is chunked. The part may start within a chunk."""
    if not chunked:
        return part
    first = _chunk(part)
    return _without_chunk_lines(part if first is None else part[first.end() :])


def _unpack(data: bytes, coding: bytes) -> bytes:
    """Return the first L{MOST_UNPACKED_BYTES} of the decompressed data, or no bytes if the data is corrupt."""
    try:
        return zlib.decompressobj(zlib_window(data, coding)).decompress(data, MOST_UNPACKED_BYTES)
    except zlib.error:
        return b""


def zlib_window(data: bytes, coding: bytes) -> int:
    """Return zlib's window parameter for a coding. C{deflate} may have zlib's wrapper (RFC 9110) or none."""
    if coding != b"deflate":
        return _GZIP
    wrapped = len(data) > 1 and data[0] & 15 == zlib.DEFLATED and int.from_bytes(data[:2], "big") % 31 == 0
    return _ZLIB if wrapped else _DEFLATE
