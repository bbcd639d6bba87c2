"""Edits a request's JSON as text. The parts that are not edited stay byte for byte."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from attrs import frozen

from aileron.base.json import writer
from aileron.model.errors import AileronError, InvalidRequest

from .prepared import PreparedRequest

dump = writer(sort_keys=False, allow_nan=True)
"""Writes JSON in ASCII without whitespace, and preserves the order of members."""

EACH = "*"
"""The step of a path that matches every element of an array."""

_decode = json.JSONDecoder().raw_decode
_blanks = re.compile(r"[ \t\n\r]*").match


@contextmanager
def expecting(otherwise: type[AileronError], message: str) -> Iterator[None]:
    """Convert an exception caused by unexpected JSON within the context to C{otherwise}."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RecursionError, StopIteration, TypeError, ValueError):
        raise otherwise(message) from None


@frozen
class Span:
    """A value in a JSON text, and the place where it is written there."""

    value: Any
    start: int
    end: int


class Document:
    """The JSON object of a request, with edits.

    Each edit replaces a part of the original text. An edit within a part that is replaced is lost.
    """

    def __init__(self, body: bytes) -> None:
        """Parse the object.

        :raises InvalidRequest: if the body is not a JSON object, or has a duplicate member.
        """
        try:
            self.text = body.decode("utf-8")
            start = _skip(self.text, 0)
            found, self._end = _members(self.text, start)
            rest = self.text[_skip(self.text, self._end + 1) :]
        except (ValueError, IndexError, RecursionError):
            raise InvalidRequest("The request's body is not a JSON object.") from None
        self._members = dict(found)
        if rest or len(self._members) < len(found):
            raise InvalidRequest("The request's body is not one JSON object with each member once.")
        self._read: dict[int, Any] = {}  # values below the members are parsed at most once
        self._edits: list[tuple[int, int, str]] = []
        self._written: dict[str, str] = {}
        self._appended: dict[str, list[str]] = {}

    def get(self, key: str) -> Any:
        """Return the original value of a member, or None."""
        return self._members[key].value if key in self._members else None

    def raw(self, span: Span) -> str:
        """Return a value as it is written in the received text."""
        return self.text[span.start : span.end]

    def find(self, *path: str) -> Iterator[Span]:
        """Yield the values at a path of members. L{EACH} matches every element, and missing members are skipped."""
        if path[0] in self._members:
            yield from self.within(self._members[path[0]], *path[1:])

    def within(self, span: Span, *path: str) -> Iterator[Span]:
        """Yield the values at a path below C{span}."""
        if not path:
            yield span
        elif path[0] == EACH:
            for element in self.elements(span):
                yield from self.within(element, *path[1:])
        elif isinstance(span.value, dict) and path[0] in span.value:
            if span.start not in self._read:
                self._read[span.start] = _members(self.text, span.start)[0]
            for key, value in self._read[span.start]:
                if key == path[0]:
                    yield from self.within(value, *path[1:])

    def elements(self, span: Span) -> list[Span]:
        """Return an array's elements, or an empty list if the value is not an array."""
        if not isinstance(span.value, list):
            return []
        if span.start not in self._read:
            found: list[Span] = []
            at = _skip(self.text, span.start + 1)
            while self.text[at] != "]":
                found.append(_value(self.text, at))
                at = _next(self.text, found[-1].end)
            self._read[span.start] = found
        read: list[Span] = self._read[span.start]
        return read

    def replace(self, span: Span, text: str) -> None:
        """Replace a value of the document with C{text}, which is JSON."""
        self._edits.append((span.start, span.end, text))

    def insert(self, at: int, text: str, *, until: int | None = None) -> None:
        """Insert text before the character at index C{at}. With C{until}, replace the characters up to that index."""
        self._edits.append((at, at if until is None else until, text))

    def write(self, key: str, text: str) -> None:
        """Replace the value of a member, or add it at the end."""
        self._written[key] = text

    def is_written(self, key: str) -> bool:
        """Return whether a member was already replaced."""
        return key in self._written

    def append(self, key: str, *texts: str) -> None:
        """Append elements to the array of a member. If it is not an array, it becomes one."""
        self._appended.setdefault(key, []).extend(texts)

    def settle(self) -> PreparedRequest:
        """Return the request with all edits, and release the parsed values. Call this once."""
        places = {key: (span.start, span.end) for key, span in self._members.items()}
        self._members.clear()
        self._read.clear()
        members, between, done, at = {}, [], 0, 0
        edits = sorted(self._edits, key=lambda edit: edit[0])
        for key, (start, end) in places.items():
            between.append(self.text[done:start].encode("utf-8"))
            done, own = end, []
            while at < len(edits) and edits[at][0] < end:
                own.append(edits[at])
                at += 1
            members[key] = b"".join(_apply(self.text, start, end, own))
        between += [self.text[done : self._end].encode("utf-8"), self.text[self._end :].encode("utf-8")]
        prepared = PreparedRequest(members, between, self._appended)
        for key, text in self._written.items():
            prepared.write(key, text)
        return prepared


def _apply(text: str, at: int, end: int, edits: list[tuple[int, int, str]]) -> Iterator[bytes]:
    """Yield the text of a value with the edits within it. The edits must be in order."""
    for start, until, new in edits:
        if start >= at:
            yield text[at:start].encode("utf-8")
            yield new.encode("utf-8")
            at = until
    yield text[at:end].encode("utf-8")


def _members(text: str, start: int) -> tuple[list[tuple[str, Span]], int]:
    """Parse the object that begins at C{start}. Return its names and values in order, and the index of its end.

    :raises ValueError: if the text is no valid object.
    """
    if text[start] != "{":
        raise ValueError
    found, at = [], _skip(text, start + 1)
    while text[at] != "}":
        key = _value(text, at)
        colon = _skip(text, key.end)
        if not isinstance(key.value, str) or text[colon] != ":":
            raise ValueError
        value = _value(text, _skip(text, colon + 1))
        found.append((key.value, value))
        at = _next(text, value.end)
    return found, at


def _next(text: str, at: int) -> int:
    """Return the index of the value after a comma, or of the bracket or brace that ends the list.

    :param at: the index after a value.
    :raises ValueError: if neither follows.
    """
    at = _skip(text, at)
    if text[at] != ",":
        if text[at] not in "]}":
            raise ValueError
        return at
    at = _skip(text, at + 1)
    if text[at] in "]}":
        raise ValueError
    return at


def _value(text: str, at: int) -> Span:
    value, end = _decode(text, at)
    return Span(value, at, end)


def _skip(text: str, at: int) -> int:
    found = _blanks(text, at)
    return at if found is None else found.end()
