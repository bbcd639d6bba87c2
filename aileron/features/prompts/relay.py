"""The program that an agent's command hook runs: it sends the hook's input to the daemon and prints the reply.

It is run by its path, uses the standard library alone, and gets its address and token from the environment. If the
daemon does not reply, it prints nothing and ends with 0, so that the agent asks its user by itself. With the argument
C{block} it ends with 2 instead, which blocks the call.
"""

from __future__ import annotations

import http.client
import os
import socket
import sys

CONNECT_SECONDS, WAIT_SECONDS = 1.0, 3600.0
_BLOCKED = "Aileron did not reply, so a rule of the user may not be known. Nothing was run."


def main() -> int:
    """Relay one call of a hook, and return the exit code.

    The arguments are the agent's name, and C{block} if a call must not run without a reply.
    """
    agent, *others = sys.argv[1:]
    try:
        reply = relay(agent, sys.stdin.buffer.read(), os.environ)
    except (OSError, KeyError, ValueError, http.client.HTTPException):
        reply = None
    if reply is not None:
        sys.stdout.buffer.write(reply)
    elif "block" in others:
        sys.stderr.write(_BLOCKED)
        return 2
    return 0


def relay(agent: str, payload: bytes, environ: os._Environ[str] | dict[str, str]) -> bytes | None:
    """Send a hook's input to the daemon, and return the reply, or None if the daemon refuses it.

    :raises OSError, HTTPException: if the daemon is not reached or hangs up.
    :raises KeyError, ValueError: if the environment has no address.
    """
    scheme, _, authority = environ["AILERON_URL"].partition("://")
    host, _, port = authority.rstrip("/").rpartition(":")
    if scheme != "http":
        raise ValueError(scheme)
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=CONNECT_SECONDS)
    try:
        connection.connect()
        if isinstance(connection.sock, socket.socket):
            connection.sock.settimeout(WAIT_SECONDS)
        headers = {"Authorization": f"Bearer {environ['AILERON_TOKEN']}", "Content-Type": "application/json"}
        connection.request("POST", f"/v1/prompts/{agent}", payload, headers)
        answer = connection.getresponse()
        body = answer.read()
        return body if answer.status == 200 else None
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
