"""JSON from outside: read strictly, so that everyone who reads the same bytes sees the same value."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NoReturn

from ._json import JSON

MAX_DEPTH = 32
"""Most containers within one another, the outermost counted."""

MOST_VALUES = 20_000
"""Most values in the body of a request: each is looked at several times before anybody else is served."""

MAX_NUMBER = 2**53 - 1
"""Beyond this a double no longer tells one integer from the next (RFC 8785, appendix D)."""


def loads_strict(data: bytes, max_depth: int = MAX_DEPTH, most_values: int | None = None) -> JSON:
    """Load the value that C{data} says, if there is only one way to read it.

    :param data: UTF-8 without a byte order mark.
    :raises ValueError: it is no JSON, or has a key twice, a number that is not finite or beyond 2^53-1,
        a lone surrogate, too many levels, or more than C{most_values}.  The message is fit for the caller's eyes and
        repeats no value.
    """
    value = _read(data)
    if most_values is not None and len(data) > most_values and _has_more_values(value, most_values):
        raise ValueError(f"the body has more than {most_values} values")
    for pointer, message in json_problems(value, max_depth):
        raise ValueError(f"{pointer or 'the body'}: {message}")
    return value


def json_problems(value: JSON, max_depth: int = MAX_DEPTH, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Find what in C{value} could mean different things to different readers.

    :param pointer: where C{value} stands, as a JSON pointer (RFC 6901).
    :return: pairs of pointer and message; no message repeats a value.
    """
    if not _sound(value, max_depth):  # nearly always it is: only then is it worth saying where what stands
        yield from _problems(value, max_depth, pointer)


def json_pointer(base: str, *keys: str | int) -> str:
    """C{base} and the steps below it, escaped as RFC 6901 says; a lone surrogate is shown as C{?}."""
    shown = (str(key).encode("utf-8", "replace").decode("utf-8") for key in keys)
    return base + "".join("/" + key.replace("~", "~0").replace("/", "~1")[:80] for key in shown)


def _has_more_values(value: JSON, most: int) -> bool:
    """Tell whether there are more within it; it stops as soon as that is known."""
    count, within = 0, [value]
    while within:
        each = within.pop()
        if isinstance(each, (dict, list)):
            count += len(each)
            if count > most:
                return True
            within.extend(each.values() if isinstance(each, dict) else each)
    return False


def _sound(value: JSON, depth_left: int) -> bool:
    if isinstance(value, str):
        return value.isascii() or _encodable(value)
    if isinstance(value, Mapping):
        return depth_left > 0 and _all_sound(value, 1) and _all_sound(value.values(), depth_left - 1)
    if isinstance(value, Sequence):
        return depth_left > 0 and _all_sound(value, depth_left - 1)
    return _exact(value)


def _all_sound(values: Iterable[JSON], depth_left: int) -> bool:
    """Tell whether each of them is; a plain text, which most of them are, is not even asked."""
    for value in values:
        if not (isinstance(value, str) and value.isascii()) and not _sound(value, depth_left):
            return False
    return True


def _exact(value: object) -> bool:
    """Tell whether C{value}, if it is a number, is the same to every reader."""
    return not isinstance(value, (int, float)) or (math.isfinite(value) and abs(value) <= MAX_NUMBER)


def _problems(value: JSON, depth_left: int, pointer: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, str):
        if not _encodable(value):
            yield pointer, "the text has a lone surrogate"
    elif isinstance(value, (Mapping, Sequence)):
        yield from _container_problems(value, depth_left, pointer)
    elif not _exact(value):
        yield pointer, "the number is not finite, or beyond 2^53-1"


def _container_problems(
    value: Mapping[str, JSON] | Sequence[JSON], depth_left: int, pointer: str
) -> Iterator[tuple[str, str]]:
    if depth_left < 1:
        yield pointer, "the value is nested too deeply"
        return
    pairs = value.items() if isinstance(value, Mapping) else enumerate(value)
    for key, item in pairs:
        below = json_pointer(pointer, key)
        if isinstance(key, str) and not _encodable(key):
            yield below, "the key has a lone surrogate"
        yield from _problems(item, depth_left - 1, below)


def _encodable(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _read(data: bytes) -> JSON:
    try:
        value: JSON = _decode(data.decode("utf-8"))
    except UnicodeDecodeError:
        raise ValueError("the body is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise ValueError(f"the body is not JSON: {error.msg} (line {error.lineno}, column {error.colno})") from None
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None
    return value


def _unique(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("the body has an object with the same key twice")
    return found


def _not_finite(_name: str) -> NoReturn:
    raise ValueError("the body has a number that is not finite")


def _integer(digits: str) -> int:
    """Read the integer; what is far too long is not even computed."""
    return int(digits) if len(digits) <= 20 else MAX_NUMBER + 1


_decode = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_not_finite, parse_int=_integer).decode
