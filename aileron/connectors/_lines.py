"""Which line of a TOML file says what, so that a fault can name it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

from attrs import frozen

Path = tuple[str, ...]

_MOST_STATEMENT_LINES = 64
_MOST_CHARACTERS = 500_000
"""How much is parsed for one index: a hostile file must not hold the reactor."""

_AT_LINE = re.compile(r"at line (\d+)")


def line_of_syntax_error(error: tomllib.TOMLDecodeError) -> int | None:
    """The line that tomllib complains about, if it names one."""
    found = _AT_LINE.search(str(error))
    return int(found[1]) if found else None


@frozen
class LineIndex:
    """Where each statement of a document begins."""

    _stated: tuple[tuple[int, Path], ...]

    @classmethod
    def of(cls, text: str) -> LineIndex:
        """The index of a document that tomllib has accepted; one that is too odd to be indexed is so only in part."""
        return cls(tuple(_statements(text)))

    def line(self, path: Path) -> int | None:
        """The line (from 1) of the statement that sets C{path}, or the nearest table around it."""
        deepest, found = 0, None
        for line, stated in self._stated:
            depth = min(len(stated), len(path))
            if depth > deepest and stated[:depth] == path[:depth]:
                deepest, found = depth, line
        return found


def _statements(text: str) -> Iterator[tuple[int, Path]]:
    """Each header and each key with its line, by parsing statement after statement on its own."""
    lines = text.splitlines()
    table: Path = ()
    at, budget = 0, _MOST_CHARACTERS
    while at < len(lines) and budget > 0:
        length, stated, cost = _statement(lines, at)
        budget -= cost
        if stated and lines[at].lstrip().startswith("["):
            table = stated
            yield at + 1, stated
        elif stated:
            yield at + 1, table + stated
        at += length


def _statement(lines: list[str], at: int) -> tuple[int, Path, int]:
    """How many lines the statement at C{at} takes (one, where nobody can tell), what it sets, and what that cost."""
    cost = 0
    for length in range(1, _MOST_STATEMENT_LINES + 1):
        chunk = "\n".join(lines[at : at + length])
        cost += len(chunk) + 1
        try:
            return length, _chain(tomllib.loads(chunk)), cost
        except tomllib.TOMLDecodeError:
            continue
    return 1, (), cost


def _chain(value: object) -> Path:
    """The keys of a document with one key a level, as far down as there is only one."""
    keys: list[str] = []
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)
