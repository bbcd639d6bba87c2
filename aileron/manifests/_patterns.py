"""Patterns of an argument's schema: matched in time linear in the text, whoever wrote either."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re2  # type: ignore[import-untyped]

MOST_CHARACTERS = 65_536
"""On no longer text is a pattern tried."""

_MEMORY_BYTES = 256 * 1024
_MOST_INSTRUCTIONS = 2_000
_MOST_WORK = 150 * MOST_CHARACTERS
"""Instructions times characters: 50 milliseconds at the worst."""


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re2._Regexp:
    """The pattern, ready to be looked for in a text.

    :raises ValueError: it is none, or needs too much; as RE2 says it.
    """
    import re2  # two megabytes, and few actions have a pattern

    options = re2.Options()
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)) from None


def pattern_problem(pattern: str, most_characters: int) -> str | None:
    """Why C{pattern} is not to be tried on texts of up to so many characters, or L{None}."""
    try:
        size: int = compiled(pattern).programsize
    except ValueError as error:
        return f"has the `pattern` {pattern!r}, which is none of RE2's: {error}"
    if size > _MOST_INSTRUCTIONS:
        return f"has the `pattern` {pattern!r}, which is too large"
    if most_characters > MOST_CHARACTERS:
        return f"must have a `maxLength` of at most {MOST_CHARACTERS} beside its `pattern`"
    if size * most_characters > _MOST_WORK:
        return f"must have a `maxLength` of at most {_MOST_WORK // size} beside so large a `pattern` as {pattern!r}"
    return None


def size_of(pattern: str) -> int:
    """How many instructions a pattern has that L{compiled} takes."""
    return int(compiled(pattern).programsize)
