"""The formats and patterns that a string can be required to match, each with its check."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from datetime import date, datetime

from aileron.base.patterns import compile_pattern

_HOST_LABEL = r"[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?"
_EMAIL = re.compile(rf"[^\s@<>(),;:\\\"\[\]\x00-\x20\x7f]{{1,64}}@{_HOST_LABEL}(?:\.{_HOST_LABEL})*")
_URI = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*:(?:[A-Za-z0-9._~:/?#\[\]@!$&'()*+,;=-]|%[0-9A-Fa-f]{2})+")
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_MOMENT = re.compile(
    r"([0-9]{4}-[0-9]{2}-[0-9]{2})[Tt]([0-9]{2}:[0-9]{2}:[0-9]{2})(\.[0-9]+)?(Z|z|[+-][0-9]{2}:[0-9]{2})"
)


def is_email(text: str) -> bool:
    """Return whether the text is a mail address without a display name. The part after the C{@} must be a host name."""
    return len(text) <= 254 and _EMAIL.fullmatch(text) is not None


def is_uri(text: str) -> bool:
    """Return whether the text is a URI with a scheme (RFC 3986)."""
    return _URI.fullmatch(text) is not None


def is_date(text: str) -> bool:
    """Return whether the text is a calendar date as in RFC 3339."""
    return _DATE.fullmatch(text) is not None and _reads(date, text)


def is_moment(text: str) -> bool:
    """Return whether the text is a date-time with offset as in RFC 3339. Leap seconds are not accepted."""
    found = _MOMENT.fullmatch(text)
    return found is not None and _reads(datetime, f"{found[1]}T{found[2]}{found[4].upper()}")


def _reads(kind: type[date], text: str) -> bool:
    try:
        kind.fromisoformat(text)
    except ValueError:
        return False
    return True


FORMATS: Mapping[str, Callable[[str], bool]] = {
    "email": is_email,
    "uri": is_uri,
    "date": is_date,
    "date-time": is_moment,
}


MOST_CHARACTERS = 65_536
"""The maximum length of a text that is matched against a pattern."""

_MOST_INSTRUCTIONS = 2_000
_MOST_WORK = 150 * MOST_CHARACTERS
"""The maximum product of a pattern's instructions and a text's characters: 50 milliseconds in the worst case."""


def pattern_problem(pattern: str, most_characters: int) -> str | None:
    """Return the reason why C{pattern} may not be used for texts of up to C{most_characters}, or None if it may."""
    try:
        size: int = compile_pattern(pattern).programsize
    except ValueError as error:
        return f"has the `pattern` {pattern!r}, which is none of RE2's: {error}"
    if size > _MOST_INSTRUCTIONS:
        return f"has the `pattern` {pattern!r}, which is too large"
    if most_characters > MOST_CHARACTERS:
        return f"must have a `maxLength` of at most {MOST_CHARACTERS} beside its `pattern`"
    if size * most_characters > _MOST_WORK:
        return f"must have a `maxLength` of at most {_MOST_WORK // size} beside so large a `pattern` as {pattern!r}"
    return None


def size_of(pattern: str) -> int:
    """Return the number of instructions of a pattern that L{compile_pattern} accepts."""
    return int(compile_pattern(pattern).programsize)
