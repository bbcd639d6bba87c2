"""A local MCP server that relays to one over HTTP, so that the suite can judge what our connector says to a program."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

_SESSION, _VERSION = "Mcp-Session-Id", "MCP-Protocol-Version"


class Relay:
    """Relays each message, one after the other."""

    def __init__(self, url: str) -> None:
        self._url = url
        self._headers = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}

    def relay(self, message: Any) -> Iterator[Any]:
        """What the server says to a message."""
        meta = (message.get("params") or {}).get("_meta", {})
        headers = {"Mcp-Method": message.get("method", ""), "Mcp-Name": (message.get("params") or {}).get("name", "")}
        version = meta.get("io.modelcontextprotocol/protocolVersion")
        own = {name: text for name, text in headers.items() if text} | ({_VERSION: version} if version else {})
        request = Request(self._url, json.dumps(message).encode(), {**self._headers, **own})
        try:
            response = urlopen(request, timeout=10)
        except HTTPError as error:
            response = error
        with response:
            if (session := response.headers.get(_SESSION)) is not None:
                self._headers[_SESSION] = session
            yield from self._read(response, message)

    def _read(self, response: Any, message: Any) -> Iterator[Any]:
        if "text/event-stream" in response.headers.get("Content-Type", ""):
            for line in response:
                if line.startswith(b"data:") and line[5:].strip():
                    yield json.loads(line[5:])
            return
        try:
            yield json.loads(response.read())
        except ValueError:
            if "id" in message:
                error = {"code": -32600, "message": f"status {response.status}"}
                yield {"jsonrpc": "2.0", "id": message["id"], "error": error}


def main() -> None:
    """Relay until the input ends."""
    relay = Relay(sys.argv[1])
    for line in sys.stdin:
        for said in relay.relay(json.loads(line)):
            print(json.dumps(said), flush=True)
            result = said.get("result") or {}
            if "protocolVersion" in result:
                relay._headers[_VERSION] = result["protocolVersion"]


if __name__ == "__main__":
    main()
