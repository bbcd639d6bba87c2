"""Reads JSON with comments and trailing commas, as OpenCode does."""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn

from aileron.values import JSON

_STRING = r'"(?:\\.|[^"\\])*(?:"|\\?\Z)'
# What is not closed goes to the very end: to look for more from each quote in it would take forever.
_COMMENT = re.compile(rf"({_STRING})|//[^\r\n]*|/\*.*?(?:\*/|(\Z))", re.DOTALL)
_TRAILING_COMMA = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


def loads_jsonc(text: str) -> JSON:
    """The value that C{text} says.

    :raises ValueError: it is not even JSON with comments.
    """
    bare = _TRAILING_COMMA.sub(_keep_string, _COMMENT.sub(_keep_string, text))
    try:
        value: JSON = json.loads(bare, parse_constant=_not_json, parse_float=_finite)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return value


def _keep_string(found: re.Match[str]) -> str:
    # A space, so that a comment still separates what stands beside it; one without an end stays, and is no JSON.
    return found[0] if found.lastindex else " "


def _finite(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _not_json(digits)


def _not_json(word: str) -> NoReturn:
    raise ValueError(f"{word} is no number of JSON")
