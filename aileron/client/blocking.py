"""Sends one blocking HTTP request to a daemon of this machine, for processes without a reactor."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any

from aileron.base.addresses import connectable, read_origin

_MOST_BYTES = 16 * 1024 * 1024


def ask(
    url: str,
    method: str,
    path: str,
    token: str | None = None,
    body: Mapping[str, str] | None = None,
    *,
    seconds: float,
) -> tuple[int, Any]:
    """Send one request, and return the status and the decoded JSON of the response.

    :param url: the URL of a site, without a path. Proxies from the environment are not used.
    :param token: sent as bearer token.
    :param seconds: the longest pause between two pieces of the response.
    :raises OSError: if the daemon does not respond, or the connection is lost.
    :raises ValueError: if the response is not HTTP, or not JSON.
    """
    origin = read_origin(url)
    headers = {"Host": origin.host_and_port, **({} if token is None else {"Authorization": f"Bearer {token}"})}
    data = None if body is None else json.dumps(body).encode()
    if data is not None:
        headers["Content-Type"] = "application/json"
    connection = HTTPConnection(connectable(origin.host), origin.port, timeout=seconds)
    try:
        connection.request(method, path, data, headers)
        response = connection.getresponse()
        return response.status, json.loads(response.read(_MOST_BYTES))
    except HTTPException as error:
        if isinstance(error, OSError):  # the connection is closed
            raise
        raise ValueError(f"is no HTTP ({type(error).__name__})") from error
    finally:
        connection.close()
