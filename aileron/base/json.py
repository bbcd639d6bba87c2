"""JSON: its type, its canonical form and digests over it, timestamps, and strict parsing."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from functools import lru_cache
from json.encoder import encode_basestring
from typing import NoReturn, TypeAlias

import rfc8785

_WRITTEN = "%04d-%02d-%02dT%02d:%02d:%02d.%06dZ"


def utc(seconds: float) -> datetime:
    """Return the time C{seconds} after the epoch."""
    return datetime.fromtimestamp(seconds, UTC)


@lru_cache(maxsize=256)  # a time is formatted several times: for a row, an event and its seal
def timestamp(moment: datetime) -> str:
    """Return a time in RFC 3339 with microseconds and C{Z}.  The texts sort in the order of time."""
    at = moment.astimezone(UTC)  # isoformat takes three times as long
    return _WRITTEN % (at.year, at.month, at.day, at.hour, at.minute, at.second, at.microsecond)


def from_timestamp(text: str) -> datetime:
    """Parse a text written by L{timestamp}.

    :raises ValueError: if the text is not a timestamp.
    """
    return datetime.fromisoformat(text).astimezone(UTC)


JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None
"""Any JSON value (RFC 8259).  Values are read-only by agreement: do not change a value that was passed on."""

_MAX_EXACT = 2**53 - 1
HEAVY, _CHARACTERS_A_VALUE = 1000, 100
_BYTES = (bytes, bytearray, memoryview)
_quoted: Callable[[str], str] = encode_basestring  # escapes as RFC 8785 requires, in lower case


def canonical(value: JSON) -> bytes:
    """Return the canonical form of C{value} (RFC 8785).

    :raises ValueError: if a number exceeds RFC 8785, a text has a lone surrogate, or a value is not JSON.
    """
    try:
        return _canonical(value).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate cannot be written") from None  # the original error contains the text


def _canonical(value: JSON) -> str:
    """Return the canonical form of C{value} as text.

    The library calls a Python function for every quote and line feed, which foreign text may be full of.

    :raises ValueError: if a number exceeds RFC 8785, or a value is not JSON.
    """
    if isinstance(value, str):
        return _quoted(value)
    if type(value) is int and -_MAX_EXACT <= value <= _MAX_EXACT:
        return str(value)
    if value is None or isinstance(value, (int, float)):
        return rfc8785.dumps(value).decode("ascii")
    if isinstance(value, Mapping):
        pairs = sorted(value.items(), key=_utf_16)
        return f"{{{','.join(f'{_quoted(key)}:{_canonical(item)}' for key, item in pairs)}}}"
    if isinstance(value, Sequence) and not isinstance(value, _BYTES):
        return f"[{','.join(map(_canonical, value))}]"
    raise ValueError(f"{type(value).__name__} is no JSON")


def _utf_16(pair: tuple[str, JSON]) -> bytes:
    """Return the key by which RFC 8785 sorts the pairs of an object.

    :raises ValueError: if the pair's key is not a text.
    """
    if not isinstance(pair[0], str):
        raise ValueError(f"a key is {type(pair[0]).__name__}, not text")
    return pair[0].encode("utf-16-be")


def digest(value: JSON) -> str:
    """Return the SHA-256 of the canonical form, as C{sha256:<64 hex>}.

    :raises ValueError: if C{value} has no canonical form, see L{canonical}.
    """
    return digest_of_bytes(canonical(value))


def digest_of_bytes(data: bytes) -> str:
    """Return the SHA-256 of C{data}, as C{sha256:<64 hex>}."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def plain(value: JSON) -> JSON:
    """Return C{value} converted to C{dict}s and C{list}s, for libraries that require them."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def strings_in(value: JSON, *, keys: bool = False) -> Iterator[str]:
    """Yield every string in C{value} at any depth.

    :param keys: whether to yield the keys of objects too.
    """
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if keys:
                yield key
            yield from strings_in(item, keys=keys)
    elif isinstance(value, Sequence):
        for item in value:
            yield from strings_in(item, keys=keys)


def heavy(value: JSON) -> bool:
    """Return True if C{value} contains so many values or so long texts that planning with it takes milliseconds."""
    return weigh(value) > HEAVY


def weigh(value: JSON) -> int:
    """Return how many values C{value} contains at any depth. A long text counts as several values.

    Counting stops once C{value} is L{heavy}, so the result for a large value is too low.
    """
    count, within = 0, [value]
    while within and count <= HEAVY:
        each = within.pop()
        if isinstance(each, str):
            count += len(each) // _CHARACTERS_A_VALUE
        elif isinstance(each, (Mapping, Sequence)):
            count += len(each)
            within.extend(each.values() if isinstance(each, Mapping) else each)
    return count


def _bare(value: object) -> object:
    """Return an object as a C{dict}, or an array as a C{list}, without converting its members.

    For use as C{default} of L{json}.

    :raises TypeError: if the value is neither an object nor an array.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def writer(*, sort_keys: bool, allow_nan: bool) -> Callable[[JSON], str]:
    """Return a function that encodes a value as ASCII JSON without blanks.

    :param allow_nan: whether infinities and NaN are encoded, which is not valid JSON. If not, they raise C{ValueError}.
    """
    encoder = json.JSONEncoder(
        check_circular=False, sort_keys=sort_keys, separators=(",", ":"), allow_nan=allow_nan, default=_bare
    )
    return encoder.encode


_compact = writer(sort_keys=True, allow_nan=True)


def compact(value: JSON) -> str:
    """Return C{value} as JSON for storage: keys sorted, no blanks, only ASCII.

    Unlike L{canonical} it accepts everything that a service may have returned: long integers, lone surrogates.
    """
    return _compact(value)


MAX_DEPTH = 32
"""The maximum nesting depth, including the outermost container."""

MOST_VALUES = 20_000
"""The maximum number of values in a request body, because each is processed several times without a pause."""

MAX_NUMBER = 2**53 - 1
"""The largest integer that a double represents exactly (RFC 8785, appendix D)."""


def loads_strict(data: bytes, max_depth: int = MAX_DEPTH, most_values: int | None = None) -> JSON:
    """Parse JSON that every parser reads in one way.

    :param data: UTF-8 without a byte order mark.
    :raises ValueError: if C{data} is not JSON, or has a repeated key, a number that is not finite or beyond 2^53-1, a
        lone surrogate, too many levels, or more than C{most_values}.  The message is suitable for the caller and
        repeats no value.
    """
    value = _read(data)
    if most_values is not None and len(data) > most_values and _has_more_values(value, most_values):
        raise ValueError(f"the body has more than {most_values} values")
    for pointer, message in json_problems(value, max_depth):
        raise ValueError(f"{pointer or 'the body'}: {message}")
    return value


def json_problems(value: JSON, max_depth: int = MAX_DEPTH, pointer: str = "") -> Iterator[tuple[str, str]]:
    """Yield everything in C{value} that parsers could read differently.

    :param pointer: the JSON pointer (RFC 6901) of C{value}.
    :return: pairs of pointer and message. No message repeats a value.
    """
    if not _sound(value, max_depth):  # nearly all values are sound: search for faults only if not
        yield from _problems(value, max_depth, pointer)


def json_pointer(base: str, *keys: str | int) -> str:
    """Return C{base} extended by the keys, escaped as in RFC 6901.  A lone surrogate is shown as C{?}."""
    shown = (str(key).encode("utf-8", "replace").decode("utf-8") for key in keys)
    return base + "".join("/" + key.replace("~", "~0").replace("/", "~1")[:80] for key in shown)


def _has_more_values(value: JSON, most: int) -> bool:
    """Return True if C{value} contains more than C{most} values.  Stops at the first one too many."""
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
    """Return True if parsers cannot read any of the values differently.

    ASCII texts, the most common values, are not checked further.
    """
    for value in values:
        if not (isinstance(value, str) and value.isascii()) and not _sound(value, depth_left):
            return False
    return True


def _exact(value: object) -> bool:
    """Return False if C{value} is a number that parsers may read differently, such as a very large integer.

    Otherwise return True.
    """
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


def make_object(pairs: list[tuple[str, JSON]]) -> dict[str, JSON]:
    """Return an object from its pairs.

    :raises ValueError: if a key is repeated, so that parsers could read different values.
    """
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("the body has an object with the same key twice")
    return found


def _not_finite(_name: str) -> NoReturn:
    raise ValueError("the body has a number that is not finite")


def _integer(digits: str) -> int:
    """Convert digits to an integer. Digits that are far too long become a number that is out of range."""
    return int(digits) if len(digits) <= 20 else MAX_NUMBER + 1


_decode = json.JSONDecoder(object_pairs_hook=make_object, parse_constant=_not_finite, parse_int=_integer).decode
