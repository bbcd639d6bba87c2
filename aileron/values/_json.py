"""JSON as it travels: its type, its one canonical form, and digests over that form."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from json.encoder import encode_basestring
from typing import TypeAlias

import rfc8785

JSON: TypeAlias = bool | int | float | str | Sequence["JSON"] | Mapping[str, "JSON"] | None
"""Whatever RFC 8259 can say.  Values are read-only by agreement: nobody changes one that was handed over."""

_MAX_EXACT = 2**53 - 1
_HEAVY_VALUES, _CHARACTERS_A_VALUE = 1000, 100
_BYTES = (bytes, bytearray, memoryview)
_quoted: Callable[[str], str] = encode_basestring  # escapes what RFC 8785 says, and that in lower case


def canonical(value: JSON) -> bytes:
    """Write the one canonical form of C{value} (RFC 8785).

    :raises ValueError: a number outside what RFC 8785 can carry, a lone surrogate, or what is no JSON.
    """
    try:
        return _canonical(value).encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("a lone surrogate cannot be written") from None  # the other error holds the text


def _canonical(value: JSON) -> str:
    """Write the same as text.

    The library calls Python for every quote and line feed of a text, which others may fill.
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
    """By what RFC 8785 sorts keys.

    :raises ValueError: it is no text.
    """
    if not isinstance(pair[0], str):
        raise ValueError(f"a key is {type(pair[0]).__name__}, not text")
    return pair[0].encode("utf-16-be")


def digest(value: JSON) -> str:
    """SHA-256 over the canonical form, as C{sha256:<64 hex>}."""
    return digest_of_bytes(canonical(value))


def digest_of_bytes(data: bytes) -> str:
    """SHA-256 of C{data}, as C{sha256:<64 hex>}."""
    return "sha256:" + hashlib.sha256(data).hexdigest()


def plain(value: JSON) -> JSON:
    """Return the same value in C{dict}s and C{list}s, for libraries that insist on them."""
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [plain(item) for item in value]
    return value


def strings_in(value: JSON, *, keys: bool = False) -> Iterator[str]:
    """Yield every string in C{value}, however deep.

    :param keys: take the keys as well: whatever of it somebody may have worded.
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
    """Return whether a value is large enough that planning with it takes milliseconds.

    It is if it has many values or very long texts.
    """
    count, within = 0, [value]
    while within and count <= _HEAVY_VALUES:
        each = within.pop()
        if isinstance(each, str):
            count += len(each) // _CHARACTERS_A_VALUE
        elif isinstance(each, (Mapping, Sequence)):
            count += len(each)
            within.extend(each.values() if isinstance(each, Mapping) else each)
    return count > _HEAVY_VALUES


def _bare(value: object) -> object:
    """Return the same value in a C{dict} or C{list}, not looked into: a C{default} for L{json}, which insists on them.

    :raises TypeError: it is neither an object nor an array.
    """
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, Sequence):
        return list(value)
    raise TypeError(f"{type(value).__name__} is no JSON")


def writer(*, sort_keys: bool, allow_nan: bool) -> Callable[[JSON], str]:
    """Make a function that writes a value as JSON without blanks, in ASCII.

    :param allow_nan: whether what is not finite is written, as no JSON; else it is a C{ValueError}.
    """
    encoder = json.JSONEncoder(
        check_circular=False, sort_keys=sort_keys, separators=(",", ":"), allow_nan=allow_nan, default=_bare
    )
    return encoder.encode


_compact = writer(sort_keys=True, allow_nan=True)


def compact(value: JSON) -> str:
    """One text for C{value}, as it is kept: keys sorted, no blanks, nothing but ASCII.

    Unlike L{canonical} it takes whatever a service may have answered: long integers, lone surrogates.
    """
    return _compact(value)
