"""Reads a long body in pieces while it is received: its normal form, method overrides, and what is shown of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from hashlib import sha256
from typing import Any

from attrs import define, field, frozen

from aileron.base.addresses import overriding_in_body
from aileron.base.text import visible

MOST_SHOWN = 2000
"""The characters of a text that are shown of a long body."""

MOST_PARTS = 50
"""The parts of a multipart body that are shown."""

_MOST_HEAD, _MOST_VALUE, _MOST_NAME = 8 * 1024, 300, 200
_OVERLAP = 512  # longer than the encoded name of any parameter that overrides the method
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_LINE_END, _HEAD_END, _CLOSE = b"\r\n", b"\r\n\r\n", b"--"
_UNCLEAR = "The parts are not listed, since programs could divide the body in different ways."
_NAME = re.compile(rb'[;\s]name="([^"\r\n]*)"', re.IGNORECASE)
_FILENAME = re.compile(rb'[;\s]filename="([^"\r\n]*)"', re.IGNORECASE)
_TYPE = re.compile(rb"^content-type:[ \t]*([^\r\n]*)", re.IGNORECASE | re.MULTILINE)


def _spell(letter: str) -> str:
    codes = "|".join(f"{ord(each):02x}" for each in (letter, letter.upper()))
    return rf"(?:{letter}|%(?:{codes}))"


_MAYBE = re.compile((r"\\u00|" + "".join(map(_spell, "method"))).encode(), re.IGNORECASE)
"""Matches every text in which L{overriding_in_body} can find an override, and few others. It is quicker."""


@frozen
class LongBody:
    """A body that is too long for the arguments of a run.

    :ivar digest: the digest of its bytes, as C{sha256:<64 hex>}.
    :ivar form: the kind and the digest of its normal form.
    :ivar overrides: True if a parameter in it could change the method of the request.
    :ivar beginning: the beginning of the body if it is text, or empty.
    :ivar parts: a line about each part of a multipart body.
    """

    digest: str
    size: int
    form: tuple[str, str]
    overrides: bool = False
    beginning: str = ""
    parts: tuple[str, ...] = ()


@define(eq=False)
class _Splitter:
    """Splits bytes at each occurrence of a mark, as C{bytes.split} does, while they arrive in pieces."""

    _mark: bytes
    _rest: bytes = field(default=b"", init=False)

    def add(self, piece: bytes) -> Iterator[bytes | None]:
        """Yield the bytes between marks, and None for each mark."""
        *whole, last = (self._rest + piece).split(self._mark)
        for each in whole:
            yield each
            yield None
        kept = min(len(self._mark) - 1, len(last))
        yield last[: len(last) - kept]
        self._rest = last[len(last) - kept :]

    def end(self) -> bytes:
        """Return the bytes after the last mark that were not yielded yet."""
        return self._rest


@define(eq=False)
class _PartReading:
    """One part of a multipart body, while it is read.

    :ivar begin: the first two bytes after the delimiter.
    """

    begin: bytes = field(default=b"", init=False)
    _head: bytearray = field(factory=bytearray, init=False)
    _is_content: bool = field(default=False, init=False)
    _size: int = field(default=0, init=False)
    _value: bytearray = field(factory=bytearray, init=False)
    _hash: Any = field(factory=sha256, init=False)

    def add(self, piece: bytes) -> None:
        self.begin += piece[: len(_LINE_END) - len(self.begin)]
        if not self._is_content:
            self._head += piece
            end = self._head.find(_HEAD_END)
            if end < 0 and len(self._head) <= _MOST_HEAD:
                return
            self._is_content = True
            piece = bytes(self._head[end + len(_HEAD_END) :]) if end >= 0 else b""
            del self._head[max(end, 0) :]
        self._size += len(piece)
        self._value += piece[: _MOST_VALUE + 1 - len(self._value)]
        self._hash.update(piece)

    def describe(self) -> str:
        """Return a line that says what the part is: its name, and its value or its file's name, size and digest."""
        name, filename, kind = (_find(each, self._head) for each in (_NAME, _FILENAME, _TYPE))
        text = _read_text(bytes(self._value)) if len(self._value) <= _MOST_VALUE and not filename else ""
        if text:
            return f"{name}: {text}"
        told = f"{name}: {filename}" if filename else name
        return f"{told}{f' ({kind})' if kind else ''}, {self._size} bytes, sha256:{self._hash.hexdigest()}"


def _find(pattern: re.Pattern[bytes], head: bytearray) -> str:
    found = pattern.search(b"\r\n" + head)
    return visible(found[1].decode("utf-8", "replace")[:_MOST_NAME]) if found else ""


def _read_text(content: bytes) -> str:
    """Return content as a line of text, or an empty text if the content is not text."""
    try:
        return visible(content.decode("utf-8"))
    except UnicodeDecodeError:
        return ""


@define(eq=False)
class _Multipart:
    """The normal form and the parts of a multipart body, while it is read.

    In the normal form, the boundary is replaced by two bytes that occur nowhere else.
    """

    _boundary: bytes
    _marks: _Splitter = field(init=False)
    _delimiters: _Splitter = field(init=False)
    _lines_begun: _Splitter = field(init=False)
    _is_unclear: bool = field(default=False, init=False)
    _found: int = field(default=0, init=False)
    _form: Any = field(factory=sha256, init=False)
    _part: _PartReading | None = field(default=None, init=False)
    _lines: list[str] = field(factory=list, init=False)
    _more: int = field(default=0, init=False)

    def __attrs_post_init__(self) -> None:
        self._marks = _Splitter(b"--" + self._boundary)
        self._delimiters = _Splitter(b"\r\n--" + self._boundary)
        self._lines_begun = _Splitter(b"\n--" + self._boundary)
        self._split(b"\r\n")  # the first delimiter may be at the very beginning

    def add(self, piece: bytes) -> None:
        for each in self._marks.add(piece):
            self._form.update(b"\0\1" if each is None else each.replace(b"\0", b"\0\0"))
        self._split(piece)

    def _split(self, piece: bytes) -> None:
        self._found -= sum(each is None for each in self._lines_begun.add(piece))
        for each in self._delimiters.add(piece):
            if each is None:
                self._found += 1
                self._end_part()
                self._part = _PartReading()
            elif self._part is not None:
                self._part.add(each)

    def _end_part(self) -> None:
        if self._part is None:
            return
        # guard of own tools: what begins like a delimiter, or follows the end, is no part
        #    -> features.own_tools.test_bodies.PartTests.test_unclear
        self._is_unclear |= self._part.begin != _LINE_END
        if len(self._lines) < MOST_PARTS:
            self._lines.append(self._part.describe())
        else:
            self._more += 1

    def end(self) -> tuple[str, tuple[str, ...]]:
        """Return the digest of the normal form, and a line about each part. Data after the end is not a part."""
        self._form.update(self._marks.end().replace(b"\0", b"\0\0"))
        if self._part is not None:
            self._part.add(self._delimiters.end())
            # guard of own tools: a body without an end, or with other line ends, is not shown by its parts
            #    -> features.own_tools.test_bodies.PartTests.test_unclear
            self._is_unclear |= self._part.begin != _CLOSE or self._found != 0
        if self._is_unclear:
            return f"sha256:{self._form.hexdigest()}", (_UNCLEAR,)
        more = (f"and {self._more} more",) if self._more else ()
        return f"sha256:{self._form.hexdigest()}", (*self._lines, *more)


@define(eq=False)
class BodyReading:
    """Reads one long body while it is received. The methods are called one after the other, each in a thread.

    :param boundary: the boundary of a multipart body, or None.
    :param searches: whether to search the body for method overrides.
    """

    _boundary: str | None
    _searches: bool
    _multipart: _Multipart | None = field(init=False)
    _hash: Any = field(factory=sha256, init=False)
    _size: int = field(default=0, init=False)
    _first: bytearray = field(factory=bytearray, init=False)
    _tail: bytes = field(default=b"", init=False)
    _overrides: bool = field(default=False, init=False)

    def __attrs_post_init__(self) -> None:
        self._multipart = None if self._boundary is None else _Multipart(self._boundary.encode("utf-8"))

    def add(self, piece: bytes) -> None:
        """Add the next bytes of the body."""
        self._hash.update(piece)
        self._size += len(piece)
        self._first += piece[: 4 * MOST_SHOWN - len(self._first)]
        if self._multipart is not None:
            self._multipart.add(piece)
        if self._searches and not self._overrides:
            self._search(self._tail + piece)

    def _search(self, window: bytes) -> None:
        # guard of own tools: method overrides are found across the pieces of a body
        #    -> features.own_tools.test_bodies.OverrideTests.test_found
        if _MAYBE.search(window) and overriding_in_body(window):
            self._overrides = True
        self._tail = window[-_OVERLAP:]

    def end(self) -> LongBody:
        """Return the description of the body. Call once, after all bytes were added."""
        digest = f"sha256:{self._hash.hexdigest()}"
        if self._multipart is not None:
            form, parts = self._multipart.end()
            return LongBody(digest, self._size, ("multipart", form), self._overrides, "", parts)
        return LongBody(digest, self._size, ("bytes", digest), self._overrides, self._show_beginning())

    def _show_beginning(self) -> str:
        """Return the beginning of the body, or an empty text if the body is not text."""
        try:
            text = bytes(self._first).decode("utf-8")
        except UnicodeDecodeError as error:
            is_cut = error.reason == "unexpected end of data" and self._size > len(self._first)
            if not is_cut:
                return ""
            text = bytes(self._first[: error.start]).decode("utf-8")
        # guard of own tools: content that is no text is not shown as one
        #    -> features.own_tools.test_bodies.BeginningTests.test_binary
        if _CONTROL.search(text):
            return ""
        return f"{text[:MOST_SHOWN]}…" if len(text) > MOST_SHOWN or self._size > len(self._first) else text
