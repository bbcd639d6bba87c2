"""Parses untrusted TOML within limits, and finds the line of each key, which C{tomllib} does not report."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from attrs import define, field, frozen

Path: TypeAlias = tuple[str | int, ...]
"""The path of a value: keys of tables, indexes of arrays."""

MAX_KEY_PARTS = 32

_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)

# An unclosed text counts as a word up to its end, so that no text is scanned twice.
_WORD = re.compile(
    r"""
      "{3} (?: \\. | (?!"{3})[^\\] )* (?: "{3,5} )?
    | '{3} (?: (?!'{3}). )* (?: '{3,5} )?
    | " (?: \\. | [^"\\\n] )* "?
    | ' [^'\n]* '?
    | \# [^\n]*
    | \n
    | [\[\]{}=,.]
    | [^\s\[\]{}=,."'\#]+
    """,
    re.VERBOSE | re.DOTALL,
)
_NESTING = {"[": 1, "{": 1, "]": -1, "}": -1}


@frozen
class NotToml(ValueError):
    """Raised if a text is not valid TOML or exceeds the limits.

    :ivar problem: the end of a sentence that begins with "the file".
    :ivar line: the line counted from 1, or None if it is unknown.
    :ivar at_end: whether the text ends too early.
    """

    problem: str
    line: int | None = None
    at_end: bool = False


@frozen
class Toml:
    """A parsed TOML text.

    :ivar values: the values as C{tomllib} returns them.
    :ivar lines: the line, counted from 1, of each table header and each key of a statement.  Parts of a value (an
        inline table, an array) have no line of their own.
    """

    values: Mapping[str, Any]
    _text: str = field(repr=False)

    @cached_property
    def lines(self) -> Mapping[Path, int]:
        """The line of each key and table of the file.

        Computed on first use, since most files have no errors to report.
        """
        return _index_lines(self._text)

    def find_table(self, name: str) -> Mapping[str, Any]:
        """Return the table of that name, or an empty one if there is none. Its contents are not checked."""
        found: Mapping[str, Any] = self.values.get(name, {})
        return found

    def line(self, path: Path) -> int | None:
        """Return the line of C{path}, or None if it is unknown.

        A path without its own line has the first line of a key inside it, else that of the nearest enclosing table.
        """
        for depth in range(len(path), 0, -1):
            within = (line for stated, line in self.lines.items() if stated[:depth] == path[:depth])
            found = self.lines.get(path[:depth]) or next(within, None)
            if found is not None:
                return found
        return None


def read_toml(text: str) -> Toml:
    """Parse C{text}.

    :raises NotToml: if the text is invalid, or parsing it would take too much memory.
    """
    if (deep := _line_of_deep_key(text)) is not None:
        raise NotToml("has a key of too many parts", deep)
    try:
        values = tomllib.loads(text)
    except RecursionError:
        raise NotToml("is nested too deeply") from None
    except ValueError as error:
        place = _PLACE.fullmatch(str(error))
        if place is None:
            raise NotToml("has a value that cannot be read") from None
        line = int(place[2]) if place[2] else None
        raise NotToml(f"is not TOML: {place[1]}", line, at_end=line is None) from None
    return Toml(values, text)


def _index_lines(text: str) -> Mapping[Path, int]:
    index = _Index()
    for line, words in _statements(text):
        index.add(line, words)
    return index.lines


def _line_of_deep_key(text: str) -> int | None:
    """Return the line of the first key with more than L{MAX_KEY_PARTS} parts, or None if there is none.

    C{tomllib} needs memory proportional to the square of the number of parts, so a small file could exhaust it.

    :param text: may be invalid TOML.
    """
    dots, line, after_dot = 0, 1, False
    for match in _WORD.finditer(text):
        word = match.group()
        if word == ".":
            dots += 1
        elif not after_dot:
            dots = 0
        if dots >= MAX_KEY_PARTS:
            return line
        after_dot = word == "."
        line += word.count("\n")
    return None


def _statements(text: str) -> Iterator[tuple[int, list[str]]]:
    """Yield the words of each statement with the line at which it starts."""
    words: list[str] = []
    start = line = 1
    depth = 0
    for match in _WORD.finditer(text):
        word = match.group()
        if word == "\n" and depth == 0:
            if words:
                yield start, words
            words = []
        elif word != "\n" and not word.startswith("#"):
            start = start if words else line
            depth += _NESTING.get(word, 0)
            words.append(word)
        line += word.count("\n")
    if words:
        yield start, words


@define
class _Index:
    """The lines found so far, the current table, and the last index of each array of tables."""

    lines: dict[Path, int] = field(factory=dict)
    table: Path = ()
    last: dict[Path, int] = field(factory=dict)

    def add(self, line: int, words: Sequence[str]) -> None:
        """Record the line of each table and key that one statement defines."""
        if words[0] == "[":
            keys = _keys(words)
            self.table = self._next(keys, line) if words[1] == "[" else self._open(keys)
            self.lines.setdefault(self.table, line)
        else:
            path = self.table
            for key in _keys(words[: words.index("=")]):
                path = (*path, key)
                self.lines.setdefault(path, line)

    def _next(self, keys: Sequence[str], line: int) -> Path:
        path = (*self._open(keys[:-1]), keys[-1])
        self.lines.setdefault(path, line)
        self.last[path] = self.last.get(path, -1) + 1
        return (*path, self.last[path])

    def _open(self, keys: Sequence[str]) -> Path:
        path: Path = ()
        for key in keys:
            path = (*path, key)
            if path in self.last:
                path = (*path, self.last[path])
        return path


def _keys(words: Sequence[str]) -> list[str]:
    return [_key(word) for word in words if word not in {"[", "]", "."}]


def _key(word: str) -> str:
    return str(tomllib.loads("key = " + word)["key"]) if word[0] in "\"'" else word
