"""Reads and answers the small JSON requests that are allowed at the public name without a login."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from twisted.web.iweb import IRequest

from aileron.base.json import JSON, loads_strict
from aileron.model.errors import InvalidRequest

_MOST_BYTES = 32 * 1024


def read_members(request: IRequest, *names: str, most_bytes: int = _MOST_BYTES) -> list[JSON]:
    """Return the members of a request's body, an object of at most C{most_bytes} that has exactly these members.

    :raises InvalidRequest: if the body is something else.
    """
    data = request.content.read()
    request.content.seek(0)
    try:
        found = loads_strict(data) if len(data) <= most_bytes else None
    except ValueError:
        found = None
    if not isinstance(found, dict) or set(found) != set(names):
        raise InvalidRequest("The request body is not valid.")
    return [found[name] for name in names]


def write_json(request: IRequest, answer: Mapping[str, Any]) -> bytes:
    """Return an answer as JSON, and set its headers. Nobody stores it."""
    request.setHeader(b"Content-Type", b"application/json")
    request.setHeader(b"Cache-Control", b"no-store")
    return json.dumps(answer).encode("ascii")
