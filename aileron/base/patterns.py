"""Untrusted regular expressions, matched in linear time."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import re2  # type: ignore[import-untyped]

_MEMORY_BYTES = 256 * 1024


@lru_cache(maxsize=256)
def compile_pattern(pattern: str) -> re2._Regexp:
    """Compile a pattern with RE2.

    :raises ValueError: the pattern is invalid or needs too much memory. The message is RE2's.
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
