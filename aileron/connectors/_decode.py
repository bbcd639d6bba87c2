"""Reads what a service wrote: its JSON strictly, and its text made fit to be shown on one line."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import NoReturn

from aileron.values import JSON, visible

MAX_SHOWN = 200


def show_safely(text: str, most: int = MAX_SHOWN) -> str:
    """C{text} as people can read all of it, cut after C{most} characters."""
    return visible(text[:most]) + ("…" if len(text) > most else "")


_SAFE_INTEGER = 2**53 - 1
_MOST_DEPTH = 64


def decode(body: bytes) -> JSON:
    """Read a JSON answer.

    An integer beyond 2^53-1 comes as its digits; a lone surrogate as U+FFFD.

    :raises ValueError: it is not UTF-8, not JSON, not finite, or nested too deep.
    """
    try:
        value: JSON = json.loads(
            body.decode("utf-8-sig"), parse_int=_integer, parse_float=_finite, parse_constant=_constant
        )
        return _carry(value, _MOST_DEPTH)
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


def _carry(value: JSON, depth: int) -> JSON:
    if depth == 0:
        raise ValueError("nested too deep")
    if isinstance(value, str):
        return proper(value)
    if isinstance(value, Mapping):
        return {proper(key): _carry(each, depth - 1) for key, each in value.items()}
    if isinstance(value, Sequence):
        return [_carry(each, depth - 1) for each in value]
    return value


def proper(text: str) -> str:
    """C{text} without lone surrogates."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
