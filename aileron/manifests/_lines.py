"""In which line a key of a TOML text stands, which C{tomllib} does not tell."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence

from attrs import define, field

from ._faults import Path

MAX_KEY_PARTS = 32

_WORD = re.compile(
    r"""
      "{3} (?: \\. | (?!"{3})[^\\] )* "{3,5}
    | '{3} (?: (?!'{3}). )* '{3,5}
    | " (?: \\. | [^"\\\n] )* "
    | ' [^'\n]* '
    | \# [^\n]*
    | \n
    | [\[\]{}=,.]
    | [^\s\[\]{}=,."'\#]+
    """,
    re.VERBOSE | re.DOTALL,
)
_NESTING = {"[": 1, "{": 1, "]": -1, "}": -1}


def index_lines(text: str) -> Mapping[Path, int]:
    """The line, counted from 1, of each table header and each key of a statement.

    What stands inside a value (an inline table, an array) has no line of its own.

    :param text: valid TOML.
    """
    index = _Index()
    for line, words in _statements(text):
        index.add(line, words)
    return index.lines


def line_of_deep_key(text: str) -> int | None:
    """The line of the first key with more than L{MAX_KEY_PARTS} parts, or L{None}.

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
    """The words of each statement with the line it starts in."""
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
