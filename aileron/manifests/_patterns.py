"""Patterns of an argument's schema: matched in time linear in the text, whoever wrote either."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re2  # type: ignore[import-untyped]

_MEMORY_BYTES = 1024 * 1024


@lru_cache(maxsize=256)
def compiled(pattern: str) -> re2._Regexp:
    """The pattern, ready to be looked for in a text.

    :raises ValueError: it is none, or needs too much; as RE2 says it.
    """
    import re2  # two megabytes, and few actions have a pattern

    options = re2.Options()
    options.max_mem = _MEMORY_BYTES
    options.log_errors = False
    try:
        return re2.compile(pattern, options)
    except re2.error as error:
        said = error.args[0] if error.args else ""
        raise ValueError(said.decode("utf-8", "replace") if isinstance(said, bytes) else str(said)) from None


def occurs(pattern: str, text: str) -> bool:
    """Whether C{pattern}, one that L{compiled} takes, matches somewhere in C{text}."""
    return compiled(pattern).search(text) is not None
