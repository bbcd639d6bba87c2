"""The program that Claude Code runs in the background at the end of each turn, and which waits for an outcome.

It is run by its path, uses the standard library alone, and gets its address and token from the environment. With an
outcome it prints the outcome on standard error and ends with 2, which wakes Claude Code. It ends with 0 and prints
nothing if no outcome can come any more, the session has ended, or the daemon stays away. With the argument C{says} it
only reports to the daemon which conversation Claude Code has.
"""

from __future__ import annotations

import http.client
import json
import os
import socket
import sys
import time
from collections.abc import Mapping
from typing import Any

CONNECT_SECONDS, WAIT_SECONDS, GRACE_SECONDS = 1.0, 300, 10.0
_LATE_SECONDS = 30.0
_WOKEN = 2
_LOST = (OSError, http.client.HTTPException)


def main() -> int:
    """Wait for an outcome, print it, and return the exit code."""
    waits = sys.argv[1:] == ["waits"]
    try:
        conversation = read_conversation(sys.stdin.buffer.read())
        message = wait(os.environ, conversation, WAIT_SECONDS if waits else 0)
    except (KeyError, ValueError):
        return 0
    if message is None or not waits:
        return 0
    sys.stderr.write(message)
    return _WOKEN


def read_conversation(payload: bytes) -> str:
    """Return Claude Code's ID of its conversation from a hook's input; empty if there is none."""
    said = json.loads(payload)
    found = said.get("session_id") if isinstance(said, dict) else None
    return found if isinstance(found, str) else ""


def wait(environ: Mapping[str, str], conversation: str, seconds: int) -> str | None:
    """Return the words of the next outcome, or None if none comes or the daemon does not reply for some seconds.

    :param seconds: how long each request waits. With 0, say only which conversation it is, and return None.
    :raises KeyError, ValueError: if the environment has no address, or the reply is not understood.
    """
    lost_at: float | None = None
    while True:
        try:
            reply = ask(environ, {"conversation": conversation} if conversation else {}, seconds)
        except _LOST:
            lost_at = time.monotonic() if lost_at is None else lost_at
            if not seconds or time.monotonic() - lost_at > GRACE_SECONDS:
                return None
            time.sleep(1.0)
            continue
        lost_at = None
        if reply is None or reply["outcome"] is not None or not reply["waiting"] or not seconds:
            return None if reply is None or reply["outcome"] is None else str(reply["outcome"]["message"])


def ask(environ: Mapping[str, str], body: Mapping[str, str], seconds: int) -> Mapping[str, Any] | None:
    """Return the daemon's reply, or None if it refuses, as it does once the session has ended.

    :raises OSError, HTTPException: if the daemon is not reached or hangs up.
    :raises KeyError, ValueError: if the environment has no address, or the reply is not understood.
    """
    scheme, _, authority = environ["AILERON_URL"].partition("://")
    host, _, port = authority.rstrip("/").rpartition(":")
    if scheme != "http":
        raise ValueError(scheme)
    connection = http.client.HTTPConnection(host.strip("[]"), int(port), timeout=CONNECT_SECONDS)
    try:
        connection.connect()
        if isinstance(connection.sock, socket.socket):
            connection.sock.settimeout(seconds + _LATE_SECONDS)
        headers = {"Authorization": f"Bearer {environ['AILERON_TOKEN']}", "Content-Type": "application/json"}
        path = "/v1/wake" if seconds else "/v1/wake/conversation"
        said = {**body, "wait": seconds} if seconds else body
        connection.request("POST", path, json.dumps(said).encode(), headers)
        answer = connection.getresponse()
        read = answer.read()
        return dict(json.loads(read)) if answer.status == 200 else None
    finally:
        connection.close()


if __name__ == "__main__":
    sys.exit(main())
