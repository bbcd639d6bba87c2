"""Untrusted patterns, matched in linear time: regular expressions, and texts with C{*}."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re2  # type: ignore[import-untyped]

_MEMORY_BYTES = 256 * 1024


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re2._Regexp:
    """Compile a pattern with RE2.

    :raises ValueError: if the pattern is invalid or needs too much memory. The message is RE2's.
    """
    import re2  # loads two megabytes, and few files have a pattern

    options = re2.Options()
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    options.never_capture = True
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)) from None


def matches_glob(pattern: str, text: str) -> bool:
    """Return whether the whole text matches a pattern in which C{*} stands for any characters, in linear time."""
    first, *rest = pattern.split("*")
    if not rest:
        return text == pattern
    *middle, last = rest
    if not text.startswith(first) or not text.endswith(last) or len(text) < len(first) + len(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True
