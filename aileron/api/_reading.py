"""What a request says beyond its path: body, query, preference."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence

from twisted.web.iweb import IRequest

from aileron.errors import InvalidRequest
from aileron.values import JSON, MOST_VALUES, loads_strict

MAX_WAIT_SECONDS = 3600

_INTEGER = re.compile(r"-?[0-9]{1,15}").fullmatch
_NUMBER = re.compile(r"-?[0-9]{1,15}(\.[0-9]{1,6})?").fullmatch
_WAIT = re.compile(r'wait\s*=\s*"?([0-9]{1,9})"?\s*(?:;.*)?').fullmatch
_BOOLEANS: Mapping[str, bool] = {"true": True, "false": False, "1": True, "0": False}


def header(request: IRequest, name: bytes) -> str | None:
    """A field's value; any byte is a character, since anyone may send any byte."""
    value = request.getHeader(name)
    return None if value is None else value.decode("latin-1")


def read_body(data: bytes) -> JSON:
    """The body's JSON; an empty body is an empty object.

    :raises InvalidRequest: it is no JSON, or JSON that two readers could read differently.
    """
    if not data:
        return {}
    try:
        return loads_strict(data, most_values=MOST_VALUES)
    except ValueError as error:
        raise InvalidRequest.listing("The body cannot be read as JSON.", ("", str(error))) from None


def read_query(given: Mapping[bytes, Sequence[bytes]], schema: Mapping[str, JSON]) -> dict[str, JSON]:
    """The query as C{schema} types it: numbers and booleans are read, and what repeats is an array.

    :raises InvalidRequest: it is no UTF-8.
    """
    if not given:
        return {}
    properties = schema["properties"]
    query: dict[str, JSON] = {}
    for raw_name, raw_values in given.items():
        try:
            name, values = raw_name.decode("utf-8"), [value.decode("utf-8") for value in raw_values]
        except UnicodeDecodeError:
            raise InvalidRequest.listing("The query is not UTF-8.") from None
        wanted = properties.get(name, {}) if isinstance(properties, Mapping) else {}
        query[name] = _typed(values, wanted.get("type") if isinstance(wanted, Mapping) else None)
    return query


def _typed(values: Sequence[str], kind: JSON) -> JSON:
    """One value as its type; several stay an array, which no scalar's schema accepts."""
    if kind == "array" or len(values) != 1:
        return values
    text = values[0]
    if kind == "integer" and _INTEGER(text):
        return int(text)
    if kind == "number" and _NUMBER(text):
        return float(text)
    return _BOOLEANS.get(text, text) if kind == "boolean" else text


def preferred_wait(lines: Iterable[bytes]) -> float | None:
    """The seconds of C{Prefer: wait=N} (RFC 7240), at most an hour; L{None} where nothing of it is said.

    :param lines: the values of the field.
    :raises InvalidRequest: a wait that is no number of seconds.
    """
    for line in lines:
        for preference in line.decode("latin-1").split(","):
            wish = preference.strip()
            if wish.lower().partition("=")[0].strip() == "wait":
                return _seconds(wish.lower())
    return None


def _seconds(wish: str) -> float:
    match = _WAIT(wish)
    if match is None:
        raise InvalidRequest.listing("The preference wait must be a number of whole seconds, such as Prefer: wait=45.")
    return float(min(int(match[1]), MAX_WAIT_SECONDS))
