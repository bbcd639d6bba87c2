"""Decodes a service's JSON strictly, and makes its text safe to show in one line."""

from __future__ import annotations

import json
import math
import re
from typing import NoReturn

from aileron.base.json import JSON
from aileron.base.text import visible

MAX_SHOWN = 200


def show_safely(text: str, most: int = MAX_SHOWN) -> str:
    """Return C{text} with all characters visible. If it is longer than C{most}, cut it and add an ellipsis."""
    return visible(text[:most]) + ("…" if len(text) > most else "")


_SAFE_INTEGER = 2**53 - 1
_MOST_DEPTH = 64
_LONG_NUMBER, _SURROGATE = re.compile("[0-9]{16}"), re.compile(r"\\u[dD][89a-fA-F]")


def decode(body: bytes) -> JSON:
    """Parse a JSON response.

    An integer beyond 2^53-1 becomes its digits as a text. A lone surrogate becomes U+FFFD.

    :raises ValueError: if the body is not UTF-8, not JSON, nested too deep, or has a number that is not finite.
    """
    text = body.decode("utf-8-sig")
    parse_int = _integer if _LONG_NUMBER.search(text) else None  # most answers need neither this nor L{_carry}
    try:
        value: JSON = json.loads(text, parse_int=parse_int, parse_float=_finite, parse_constant=_constant)
        if _is_too_deep(value):
            raise ValueError("nested too deep")
        return _carry(value) if _SURROGATE.search(text) else value
    except RecursionError as error:
        raise ValueError("nested too deep") from error


def _integer(digits: str) -> int | str:
    if len(digits) > 17:
        return digits
    value = int(digits)
    return value if abs(value) <= _SAFE_INTEGER else digits


def _finite(digits: str) -> float:
    value = float(digits)
    if not math.isfinite(value):
        raise ValueError("not a finite number")
    return value


def _constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


def _is_too_deep(value: JSON) -> bool:
    """Return whether a value is nested deeper than L{_MOST_DEPTH}, checking one level after the other."""
    level = [value]
    for _ in range(_MOST_DEPTH):
        below: list[JSON] = []
        for each in level:
            if isinstance(each, dict | list):
                below += each.values() if isinstance(each, dict) else each
        level = below
    return bool(level)


def _carry(value: JSON) -> JSON:
    """Return C{value} with lone surrogates replaced, since they cannot be encoded in UTF-8."""
    if isinstance(value, str):
        return proper(value)
    if isinstance(value, dict):
        return {proper(key): _carry(each) for key, each in value.items()}
    return [_carry(each) for each in value] if isinstance(value, list) else value


def proper(text: str) -> str:
    """Return C{text} with U+FFFD in place of lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
