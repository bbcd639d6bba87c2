"""TOML that anyone may have written: read within bounds, each key with its line, which C{tomllib} does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, TypeAlias

from attrs import define, field, frozen

Path: TypeAlias = tuple[str | int, ...]
"""Where a value stands: keys of tables, indexes of arrays."""

MAX_KEY_PARTS = 32

_PLACE = re.compile(r"(.*) \(at (?:line (\d+), column \d+|end of document)\)", re.DOTALL)

# A text that is not closed is a word as well, as far as it goes: none is looked through twice.
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
    """A text that is no TOML, or is not read.

    :ivar problem: goes on from "the file".
    :ivar line: counted from 1; L{None} where no line can be named.
    :ivar at_end: whether the text just stops too early.
    """

    problem: str
    line: int | None = None
    at_end: bool = False


@frozen
class Toml:
    """A TOML text.

    :ivar values: as C{tomllib} reads it.
    :ivar lines: the line, counted from 1, of each table header and each key of a statement.  What stands inside a
        value (an inline table, an array) has no line of its own.
    """

    values: Mapping[str, Any]
    _text: str = field(repr=False)

    @cached_property
    def lines(self) -> Mapping[Path, int]:
        """The lines, looked for when the first is wanted: most files have no fault to be told."""
        return _index_lines(self._text)

    def line(self, path: Path) -> int | None:
        """Find the line that sets C{path}; else the first inside it; else that of the nearest table around it."""
        for depth in range(len(path), 0, -1):
            within = (line for stated, line in self.lines.items() if stated[:depth] == path[:depth])
            found = self.lines.get(path[:depth]) or next(within, None)
            if found is not None:
                return found
        return None


def read_toml(text: str) -> Toml:
    """Read C{text}.

    :raises NotToml: it cannot be read, or reading it would take more than a file of its size should.
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
    """Find the line of the first key with more than L{MAX_KEY_PARTS} parts, or L{None}.

    C{tomllib} needs memory that grows with the square of the parts: a small file could take all there is.

    :param text: need not be valid TOML; it is looked through as far as it is.
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
    """Yield the words of each statement with the line it starts in."""
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
    """The lines so far, the table that statements now belong to, and how far each array of tables has come."""

    lines: dict[Path, int] = field(factory=dict)
    table: Path = ()
    last: dict[Path, int] = field(factory=dict)

    def add(self, line: int, words: Sequence[str]) -> None:
        """Take in one statement."""
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
