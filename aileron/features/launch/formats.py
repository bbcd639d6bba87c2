"""Reads the files and formats of agents' settings. The files are untrusted input."""

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
# An unclosed string or comment extends to the end: searching on from each quote in it would take quadratic time.
_COMMENT = re.compile(rf"({_STRING})|//[^\r\n]*|/\*.*?(?:\*/|(\Z))", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


def read_text(path: Path) -> str | None:
    """Return the text of a UTF-8 file without its byte order mark, or None if the path does not exist.

    :raises ValueError: if the path is not a file, or the file is too large, unreadable or not UTF-8.
    """
    try:
        if not path.exists():
            return None
        # Reading a pipe would block.
        if not path.is_file() or path.stat().st_size > MAX_BYTES:
            raise ValueError("it is no file that could be settings")
        return path.read_text("utf-8-sig")
    except OSError as error:
        raise ValueError(f"it cannot be read ({type(error).__name__})") from None


def parse_jsonc(text: str) -> JSON:
    """Parse JSON with comments and trailing commas, but no other extension of JSON5, as the agents do.

    :raises ValueError: if the text is invalid.
    """
    bare = _TRAILING_COMMA.sub(_keep_string, blank_comments(text))
    try:
        value: JSON = json.loads(bare, parse_constant=_not_json, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def to_text(value: JSON) -> str:
    """Return a setting in the form for an environment variable: a text unchanged, anything else as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def blank_comments(text: str) -> str:
    """Replace comments with spaces, so that everything else keeps its position."""
    return _COMMENT.sub(_keep_string, text)


def _keep_string(found: re.Match[str]) -> str:
    # Spaces, so that a comment still separates its neighbours. An unclosed comment stays and makes the JSON invalid.
    return found[0] if found.lastindex else " " * len(found[0])


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _not_json(digits)


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")


def parse_toml(text: str) -> Any:
    """Parse a TOML document.

    :raises ValueError: if the text is invalid.
    """
    return read_toml(text).values


def parse_yaml(text: str) -> Any:
    """Parse a YAML document. A document without a value becomes an empty mapping.

    :raises ValueError: if the text is invalid or nested too deeply.
    """
    # Imported late: only agents with YAML settings need it.
    import yaml

    try:
        value = yaml.safe_load(text)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"no YAML ({type(error).__name__})") from None
    return {} if value is None else value
