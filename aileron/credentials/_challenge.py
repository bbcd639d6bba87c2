"""Parses Bearer challenges in C{WWW-Authenticate}: what a service requires (RFC 9110, 11.6.1; RFC 6750, 3)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from aileron.base.json import JSON

_MOST_CHARACTERS, _MOST_SCOPES, _MOST_SCOPE_CHARACTERS = 8192, 100, 128
_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]++"
_NEXT = re.compile(r"[^ \t,]")
_NAME = rf"(?P<name>{_TOKEN})"
_VALUE = rf'(?:"(?P<quoted>[^"\\]*+(?:\\.[^"\\]*+)*)"|(?P<plain>{_TOKEN}))'
_PARAMETER = re.compile(rf"{_NAME}[ \t]*+=[ \t]*+{_VALUE}[ \t]*+(?=,|$)")
_SCHEME = re.compile(rf"{_NAME}(?: ++[A-Za-z0-9._~+/-]++=*+[ \t]*+(?=,|$)| ++|(?=,|$))")
_ESCAPED = re.compile(r"\\(.)")
_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]+").fullmatch


def read_challenge(header: str) -> Mapping[str, str]:
    """Return the parameters of the first Bearer challenge, with names in lower case.

    If there is none, or the header is too long, malformed or repeats a name, return an empty mapping.
    """
    found: list[tuple[str, dict[str, str]]] = []
    try:
        for name, value in _parts(header):
            if value is None:
                found.append((name, {}))
            elif not found or name in found[-1][1]:
                return {}
            else:
                found[-1][1][name] = value
    except ValueError:
        return {}
    return next((parameters for scheme, parameters in found if scheme == "bearer"), {})


def wanted_scopes(header: str) -> tuple[str, ...] | None:
    """Return the scopes that a service requires, or None if the challenge does not report insufficient scopes."""
    told = read_challenge(header)
    return read_scopes(told.get("scope")) if told.get("error") == "insufficient_scope" else None


def says_invalid(header: str) -> bool:
    """Return True if a service reports that the token itself is expired, revoked or wrong (RFC 6750, 3.1)."""
    return read_challenge(header).get("error") == "invalid_token"


def read_scopes(told: str | Sequence[JSON] | None) -> tuple[str, ...]:
    """Return the scopes in a text with blanks or in an array, without repetitions.

    If any is invalid, or there are too many, return an empty tuple.
    """
    scopes = told.split() if isinstance(told, str) else told or ()
    if len(scopes) > _MOST_SCOPES or not all(map(_is_scope, scopes)):
        return ()
    return tuple(dict.fromkeys(str(each) for each in scopes))


def _is_scope(told: JSON) -> bool:
    return isinstance(told, str) and len(told) <= _MOST_SCOPE_CHARACTERS and _SCOPE(told) is not None


def _parts(header: str) -> Iterator[tuple[str, str | None]]:
    """Yield the parameters of a header with their values, and the names of its schemes with None.

    :raises ValueError: if the header is malformed or too long.
    """
    if len(header) > _MOST_CHARACTERS:
        raise ValueError("too long")
    at = 0
    while (begins := _NEXT.search(header, at)) is not None:
        at = begins.start()
        parameter = _PARAMETER.match(header, at)
        found = parameter or _SCHEME.match(header, at)
        if found is None:
            raise ValueError("no challenge")
        at = found.end()
        if parameter is None:
            yield found["name"].lower(), None
        else:
            yield found["name"].lower(), found["plain"] or _ESCAPED.sub(r"\1", found["quoted"] or "")
