"""The team chat of the demo: a service in its own process, for clients that know its key.

Run as C{python -m aileron.features.demo._chat}: the key is the first line of standard input, the port the first of
standard output.  It ends when standard input is closed, so that it does not outlive the demo.
"""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from attrs import define, field

_MAX_BYTES = 64 * 1024


@define
class Room:
    """The room of the chat.

    :ivar messages: the messages by the ID of their request: a repeated request adds no message.
    """

    messages: dict[str, dict[str, Any]] = field(factory=dict)

    def post(self, message: Mapping[str, Any]) -> dict[str, Any]:
        """Store a message and return the answer of the service.

        :raises KeyError: if a member of the message is missing.
        """
        kept = self.messages.setdefault(
            str(message["id"]),
            {"channel": message["channel"], "text": message["text"], "number": len(self.messages) + 1},
        )
        return {"ok": True, "number": kept["number"], "channel": kept["channel"]}


class Chat(ThreadingHTTPServer):
    """The server of the chat, on a free port of loopback."""

    daemon_threads = True

    def __init__(self, key: str) -> None:
        super().__init__(("127.0.0.1", 0), _ChatHistory)
        self.key = key
        self.room = Room()


class _ChatHistory(BaseHTTPRequestHandler):
    server: Chat

    def do_GET(self) -> None:
        """Return all messages of the chat, or status 401 if the request lacks the key."""
        if self._admit():
            self._answer(200, {"ok": True, "messages": list(self.server.room.messages.values())})

    def do_POST(self) -> None:
        """Post a message, or return status 400 if it cannot be read, or 401 without the key."""
        body = self.rfile.read(min(int(self.headers.get("Content-Length", 0)), _MAX_BYTES))
        if self._admit():
            try:
                self._answer(200, self.server.room.post(json.loads(body)))
            except (ValueError, KeyError, TypeError):
                self._answer(400, {"ok": False, "error": "not_understood"})

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Write no log line for a request."""

    def _admit(self) -> bool:
        if self.headers.get("Authorization") == f"Bearer {self.server.key}":
            return True
        self._answer(401, {"ok": False, "error": "not_authorized"})
        return False

    def _answer(self, status: int, body: dict[str, Any]) -> None:
        data = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def main() -> None:
    """Read the key from standard input, print the port, and serve until standard input ends."""
    chat = Chat(sys.stdin.readline().strip())
    serving = threading.Thread(target=chat.serve_forever, daemon=True)
    serving.start()
    sys.stdout.write(f"{chat.server_address[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()
    chat.shutdown()


if __name__ == "__main__":
    main()
