"""Which line of a TOML file says what, so that a fault can name it."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator

Path = tuple[str, ...]

_MAX_STATEMENT_LINES = 64
_AT_LINE = re.compile(r"at line (\d+)")


def line_of_syntax_error(error: tomllib.TOMLDecodeError) -> int | None:
    """The line that tomllib complains about, if it names one."""
    found = _AT_LINE.search(str(error))
    return int(found[1]) if found else None


def line_of(text: str, path: Path) -> int | None:
    """The line (from 1) of the statement that sets C{path}, or the nearest table around it.

    :param text: a document that tomllib has accepted.
    """
    deepest, found = 0, None
    for line, stated in _statements(text):
        depth = min(len(stated), len(path))
        if depth > deepest and stated[:depth] == path[:depth]:
            deepest, found = depth, line
    return found


def _statements(text: str) -> Iterator[tuple[int, Path]]:
    """Each header and each key with its line, by parsing statement after statement on its own."""
    lines = text.splitlines()
    table: Path = ()
    at = 0
    while at < len(lines):
        length, stated = _statement(lines, at)
        if stated and lines[at].lstrip().startswith("["):
            table = stated
            yield at + 1, stated
        elif stated:
            yield at + 1, table + stated
        at += length


def _statement(lines: list[str], at: int) -> tuple[int, Path]:
    """How many lines the statement at C{at} takes and what it sets; one line and nothing, where nobody can tell."""
    for length in range(1, _MAX_STATEMENT_LINES + 1):
        try:
            return length, _chain(tomllib.loads("\n".join(lines[at : at + length])))
        except tomllib.TOMLDecodeError:
            continue
    return 1, ()


def _chain(value: object) -> Path:
    """The keys of a document with one key a level, as far down as there is only one."""
    keys: list[str] = []
    while isinstance(value, dict) and len(value) == 1:
        ((key, value),) = value.items()
        keys.append(key)
    return tuple(keys)
