"""Reads the files and formats in which users keep agents' settings, as careful as with any that is not ours."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any, NoReturn

from aileron.base.json import JSON
from aileron.base.toml import read_toml

MAX_BYTES = 4 * 1024 * 1024

_STRING = r'"(?:\\.|[^"\\])*(?:"|\\?\Z)'
# What is not closed goes to the very end: to look for more from each quote in it would take forever.
_COMMENT = re.compile(rf"({_STRING})|//[^\r\n]*|/\*.*?(?:\*/|(\Z))", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


def read_text(path: Path) -> str | None:
    """Read a text of UTF-8, with or without a byte order mark; L{None} where there is nothing.

    :raises ValueError: it is not a file, too long, not readable, or not text.
    """
    try:
        if not path.exists():
            return None
        # Not a pipe, which would have us wait.
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise ValueError("it is no file that could be settings")
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None


def parse_jsonc(text: str) -> JSON:
    """Parse JSON with comments and trailing commas, and no more of JSON5, as the agents do.

    :raises ValueError: it is not even that.
    """
    bare = _TRAILING_COMMA.sub(_keep_string, blank_comments(text))
    try:
        value: JSON = json.loads(bare, parse_constant=_not_json, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def to_text(value: JSON) -> str:
    """Return a setting as an agent's environment gets it: a text as it is, C{true} and C{null} as JSON writes them."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def blank_comments(text: str) -> str:
    """Replace comments with spaces, so that everything else keeps its position."""
    return _COMMENT.sub(_keep_string, text)


def _keep_string(found: re.Match[str]) -> str:
    # Spaces, so that a comment still separates what stands beside it; one without an end stays, and is no JSON.
    return found[0] if found.lastindex else " " * len(found[0])


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _not_json(digits)


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def parse_toml(text: str) -> Any:
    """Parse TOML.

    :raises ValueError: it is none.
    """
    return read_toml(text).values


def parse_yaml(text: str) -> Any:
    """Parse YAML, in which a document without a value is an empty one.

    :raises ValueError: it is none, or nested too deeply.
    """
    # Imported here: only those who launch an agent with such settings need it.
    import yaml

    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"no YAML ({type(error).__name__})") from None
    return {} if value is None else value
