"""The agent's session, opened as the launcher does; and a look into the chat.  Plain HTTP: no reactor runs here."""

from __future__ import annotations

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException
from typing import Any

from aileron.addresses import read_origin
from aileron.client import SessionEnvironment
from aileron.errors import InternalError
from aileron.home import Home, live_discovery

AGENT = "demo agent"
_WAIT_SECONDS = 900
_SECONDS = 10.0


def open_session(home: Home, directory: str) -> SessionEnvironment:
    """What C{aileron-mcp} needs to act for the demo's agent.

    :raises InternalError: the daemon opens none.
    """
    found = live_discovery(home)
    if found is None:
        raise InternalError("The demo's daemon has gone.")
    claim = {"agent": AGENT, "working_dir": directory}
    opened = ask(found.url, "POST", "/v1/sessions", found.launch_key, claim)
    return SessionEnvironment(found.url, str(opened["token"]), _WAIT_SECONDS).on_this_machine()


def ask(
    url: str, method: str, path: str, token: str | None, body: Mapping[str, str] | None = None
) -> Mapping[str, Any]:
    """The JSON object that a service on this machine answers.

    :raises InternalError: it does not, or it refuses.
    """
    origin = read_origin(url)
    connection = HTTPConnection(origin.host, origin.port, timeout=_SECONDS)
    bearer = {} if token is None else {"Authorization": f"Bearer {token}"}
    try:
        data = None if body is None else json.dumps(body).encode()
        connection.request(method, path, data, {"Content-Type": "application/json", **bearer})
        response = connection.getresponse()
        answer = json.loads(response.read())
    except (OSError, HTTPException, ValueError) as error:
        raise InternalError(f"Nothing useful answers at {url} ({type(error).__name__}).") from None
    finally:
        connection.close()
    if response.status >= 400 or not isinstance(answer, dict):
        raise InternalError(f"{url}{path} refused (HTTP {response.status}).")
    return answer
