"""Asks the daemon how it does before any reactor runs: for the commands that start, stop and find it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, IncompleteRead, RemoteDisconnected
from typing import Any

from aileron.addresses import read_origin
from aileron.cli._errors import CommandError

_SECONDS = 30.0  # a daemon that is flooded answers late
_MAX_BYTES = 64 * 1024
_TRIES = 5
_CUT_OFF = (ConnectionResetError, BrokenPipeError, RemoteDisconnected, IncompleteRead)


def probe(url: str, path: str, token: str | None = None) -> Mapping[str, Any]:
    """The JSON object that a site answers to a GET.  A connection that is cut off, as in a flood, is made anew.

    :param url: the site's, of loopback.
    :param token: sent as bearer.
    :raises CommandError: no daemon answers there, or it refuses.
    """
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    for left in reversed(range(_TRIES)):
        try:
            status, body = _asked(url, path, headers)
            break
        except (OSError, HTTPException, ValueError) as error:
            if not left or not isinstance(error, _CUT_OFF):
                raise CommandError(f"No daemon answers at {url}.", "Look at it: aileron daemon status") from None
    if status != 200 or not isinstance(body, dict):
        raise CommandError(
            f"What answers at {url} is not this home's daemon (HTTP {status}).",
            "Look at it: aileron daemon status",
        )
    return body


def _asked(url: str, path: str, headers: Mapping[str, str]) -> tuple[int, Any]:
    """Status and JSON of one answer."""
    origin = read_origin(url)
    connection = HTTPConnection(origin.host, origin.port, timeout=_SECONDS)
    try:
        connection.request("GET", path, headers=dict(headers))
        response = connection.getresponse()
        return response.status, json.loads(response.read(_MAX_BYTES))
    finally:
        connection.close()
