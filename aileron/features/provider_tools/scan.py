"""Finds provider-run tools in a request's JSON while it streams, in bounded memory and linear time.

A request that is not JSON is unreadable, since another parser might find other tools in it. Deviations from JSON, such
as a trailing comma, are accepted only if every parser that accepts them finds the same tools.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable

from aileron.features.gateway.values import ProviderTool, ToolKind

from .shapes import REQUEST, Facts, ToolShape

MOST_FOUND = 64
"""The most tools of one request that are stored with their hosts. Further tools are stored without hosts."""

_MOST_LEVELS = 32
_LONGEST_TEXT = 8192  # the limit of a name, a type or a URL, in bytes as written
_BOM = b"\xef\xbb\xbf"
_QUOTE, _BACKSLASH = b'"\\'
_OPENING, _CLOSING = frozenset(b"{["), frozenset(b"}]")
# The characters of numbers, true, false, null, NaN and Infinity. No name of interest consists of these.
_LITERAL = rb"[-+.0-9EINaefilnrstuy]"

_token = re.compile(rb"[ \t\r\n]*+(?:([][{}:,\"])|(" + _LITERAL + rb"++)|\Z)").match
_NAME = rb'[ \t\r\n]*+"([ !#-\[\]-~]{0,40}+)"[ \t\r\n]*+:'  # without escapes
_first_member = re.compile(_NAME).match
_next_member = re.compile(rb"[ \t\r\n]*+," + _NAME).match
_uninteresting = re.compile(rb"(?:[ \t\r\n,:]++|" + _LITERAL + rb'++|"[^"\\]{0,64}+")*').match
_string = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*', re.DOTALL).match


class _NotJson(Exception):
    """The error for a request that is not JSON, or that is nested too deeply at a place that may name tools."""


class _Level(Facts):
    """An array or object that is being read.

    :ivar array: True for an array, False for an object.
    :ivar name: in an object, the name of the member whose value is read, or None if a name comes next. Always None in
        an array.
    :ivar shape: the members to read.
    :ivar awaits: True if a value comes next.
    """

    __slots__ = ("array", "awaits", "name", "shape")

    def __init__(self, shape: ToolShape, *, array: bool) -> None:
        super().__init__(set() if array else set(shape.kinds))
        self.shape, self.array = shape, array
        self.name: str | None = None
        self.awaits = array

    @property
    def value(self) -> object:
        """The shape of the next value, the function that reads the next value, or None if the next value is skipped."""
        return self.shape if self.array else self.shape.fields.get(self.name or "")

    def literal(self) -> None:
        """Accept a piece of a literal, such as a number. More of the literal may follow.

        :raises _NotJson: if a name must come next.
        """
        if self.name is None and not self.array:
            raise _NotJson
        self.awaits = self.array


class ToolScan:
    """The scan of one request.

    :ivar found: the tools found so far, each once.
    :ivar unreadable: True if the request cannot be parsed. Then the rest is not read.
    """

    def __init__(self) -> None:
        self.found: dict[ProviderTool, None] = {}
        self.unreadable = False
        self._step: Callable[[bytes, int], int] = self._begin
        self._levels = [_Level(REQUEST, array=True)]  # the document is treated as the only item of an array
        self._depth = 0  # the depth within the value that is skipped, or 0
        self._text: bytearray | None = None  # the bytes of the string that is read, or None if it is skipped
        self._escaped = False  # True if the next byte of the string is escaped
        self._mark = b""

    def feed(self, data: bytes) -> None:
        """Read a piece of the request, and add the tools that it names to C{found}."""
        position = 0
        try:
            while position < len(data) and not self.unreadable:
                position = self._step(data, position)
        except _NotJson:
            self.unreadable = True

    def finish(self) -> None:
        """End the scan. If the request is not complete JSON, set C{unreadable}."""
        if self._step != self._end:
            self.unreadable = True

    # Each step reads data from a position on, and returns the position after what it read. ---------------------------

    def _begin(self, data: bytes, position: int) -> int:
        """Skip a byte order mark, which may arrive in pieces, and return the position after it."""
        end = min(len(data), position + len(_BOM) - len(self._mark))
        mark = self._mark + data[position:end]
        if mark != _BOM and _BOM.startswith(mark):
            self._mark = mark
            return end
        self._step = self._between
        if mark == _BOM:
            return end
        self.feed(self._mark)
        return position

    def _end(self, data: bytes, position: int) -> int:
        if data[position:].strip(b" \t\r\n"):
            raise _NotJson
        return len(data)

    def _between(self, data: bytes, position: int) -> int:
        """Read the next token of an array or object that may name tools, and return the position after it.

        :raises _NotJson: if no token of JSON comes next.
        """
        level = self._levels[-1]
        if not level.awaits:
            member = (_first_member if level.name is None else _next_member)(data, position)
            if member is not None:
                level.name, level.awaits = member[1].decode("ascii").lower(), True
                return member.end()
        token = _token(data, position)
        if token is None:
            raise _NotJson
        if token[2]:
            level.literal()
        elif token[1]:
            self._take(token[1], level)
        return token.end()

    def _take(self, sign: bytes, level: _Level) -> None:
        if sign == b'"':
            self._begin_string(level)
        elif sign in {b"{", b"["}:
            self._open(level, array=sign == b"[")
        elif sign in {b"}", b"]"}:
            self._close(level, array=sign == b"]")
        elif sign == b",":
            level.name, level.awaits = None, level.array
        else:
            level.awaits = level.name is not None

    def _open(self, level: _Level, *, array: bool) -> None:
        shape, awaited = level.value, level.awaits
        level.awaits = level.array
        if not awaited or len(self._levels) == _MOST_LEVELS:
            raise _NotJson
        if isinstance(shape, ToolShape):
            self._levels.append(_Level(shape, array=array))
        else:
            self._depth, self._step = 1, self._pass_over

    def _close(self, level: _Level, *, array: bool) -> None:
        if len(self._levels) == 1 or level.array != array:
            raise _NotJson
        self._levels.pop()
        if len(self._levels) == 1:
            self._step = self._end
        for kind in level.kinds:
            for host in (level.hosts or {""}) if kind is ToolKind.REMOTE_MCP else ("",):
                self.found[ProviderTool(kind, host if len(self.found) < MOST_FOUND else "")] = None

    def _pass_over(self, data: bytes, position: int) -> int:
        """Skip bytes of a value that names no tools, and return the position after them.

        :raises _NotJson: if a character cannot be JSON.
        """
        while (position := _end_of(_uninteresting(data, position))) < len(data):
            sign = data[position]
            position += 1
            if sign == _QUOTE:
                self._text, self._step = None, self._read_string
                return position
            if sign in _OPENING:
                self._depth += 1
            elif sign in _CLOSING:
                self._depth -= 1
                if not self._depth:
                    self._step = self._between
                    return position
            else:
                raise _NotJson
        return position

    # strings --------------------------------------------------------------------------------------------------------

    def _begin_string(self, level: _Level) -> None:
        names = level.name is None and not level.array
        if not names and not level.awaits:
            raise _NotJson
        self._text = bytearray() if names or callable(level.value) else None
        self._step = self._read_string

    def _read_string(self, data: bytes, position: int) -> int:
        start, position = position, position + self._escaped
        end = data.find(b'"', position)
        if end > position and data[end - 1] == _BACKSLASH:
            end = _end_of(_string(data, position))
        if end == len(data) or (end >= 0 and data[end] != _QUOTE):
            end = -1  # the string continues in the next piece, maybe within an escape
        if self._text is not None and len(self._text) <= _LONGEST_TEXT:
            self._text += data[start : len(data) if end < 0 else end]
        if end >= 0:
            self._escaped = False
            self._end_string()
            return end + 1
        rest = data[position:]
        self._escaped = (len(rest) - len(rest.rstrip(b"\\"))) % 2 == 1
        return len(data)

    def _end_string(self) -> None:
        text, self._text = self._text, None
        if self._depth:
            self._step = self._pass_over
            return
        self._step, level = self._between, self._levels[-1]
        if level.name is None and not level.array:
            level.name = _decode(text or b"").casefold()  # some parsers ignore the case of names
            return
        leaf, level.awaits = level.value, level.array
        if text is not None and callable(leaf):
            leaf(level, _decode(text))


def _end_of(found: re.Match[bytes] | None) -> int:
    """Return the end of a match. The pattern must be one that always matches."""
    return found.end() if found else 0


def _decode(text: bytes | bytearray) -> str:
    """Return the text of a JSON string, or an empty text if it is too long to be of interest.

    :raises _NotJson: if it is not a JSON string.
    """
    if len(text) > _LONGEST_TEXT:
        return ""
    try:
        return str(json.loads(b'"%b"' % bytes(text), strict=False))
    except ValueError:
        raise _NotJson from None
