"""Asks the daemon how it does before any reactor runs: for the commands that start, stop and find it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any
from urllib.parse import urlsplit

from aileron.cli._errors import Trouble

_SECONDS = 5.0
_MAX_BYTES = 64 * 1024


def probe(url: str, path: str, token: str | None = None) -> Mapping[str, Any]:
    """The JSON object that the agent site answers to a GET.

    :param url: the agent site's, of loopback.
    :param token: sent as bearer.
    :raises Trouble: no daemon answers there, or it refuses.
    """
    parts = urlsplit(url)
    connection = HTTPConnection(parts.hostname or "", parts.port, timeout=_SECONDS)
    try:
        connection.request("GET", path, headers={} if token is None else {"Authorization": f"Bearer {token}"})
        response = connection.getresponse()
        body = json.loads(response.read(_MAX_BYTES))
    except (OSError, HTTPException, ValueError):
        raise Trouble(f"No daemon answers at {url}.", "Look at it: aileron daemon status") from None
    finally:
        connection.close()
    if response.status != 200 or not isinstance(body, dict):
        raise Trouble(
            f"What answers at {url} is not this home's daemon (HTTP {response.status}).",
            "Look at it: aileron daemon status",
        )
    return body
