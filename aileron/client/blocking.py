"""Asks a daemon of this machine over HTTP while no reactor runs: one request, one JSON answer, and nothing goes on."""

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
    """Send one request, and return the status and the JSON of its answer.

    :param url: a site's, without a path; no proxy of the environment's is asked.
    :param token: sent as bearer.
    :param seconds: at most between two pieces of the answer.
    :raises OSError: nobody answers, or the connection is cut off.
    :raises ValueError: the answer is no HTTP, or no JSON.
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
        if isinstance(error, OSError):  # it is cut off
            raise
        raise ValueError(f"is no HTTP ({type(error).__name__})") from error
    finally:
        connection.close()
