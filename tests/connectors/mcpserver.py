"""An MCP server at the other end of memory transports, and the loop in which the SDK's client is stepped by hand."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from attrs import define, field
from twisted.internet.defer import succeed

from aileron.base.json import JSON, canonical, digest
from aileron.connectors import HttpSessions, HttpTransport, McpConnector, McpSpec
from aileron.connectors._schema import read_file
from aileron.model.interfaces.connectors import IConnector
from tests.connectors.service import Service, _Peer, answer, json_answer
from tests.mcp.stepped import Stepped

URL = "http://127.0.0.1:8765/mcp"
MODERN, HANDSHAKE = "2026-07-28", "2025-11-25"

CREATE: dict[str, Any] = {
    "name": "create_issue",
    "title": "Create an issue",
    "description": "Creates an issue in a team.",
    "inputSchema": {"type": "object", "properties": {"title": {"type": "string"}}},
    "annotations": {"destructiveHint": False},
}
SEARCH: dict[str, Any] = {
    "name": "search",
    "description": "Searches issues.",
    "inputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
}

FILE = f"""
[connector]
name = "local://me/tracker"
version = "1.0.0"
kind = "mcp"
private_network = true

[mcp]
url = "{URL}"

[credential]
kind = "api_key"
header = "Authorization"
format = "Bearer {{key}}"

[operations.create_issue]
tool = "create_issue"
pin = "PIN-OF-CREATE"
timeout_seconds = 3600

[operations.search]
tool = "search"
pin = "PIN-OF-SEARCH"
effect = "read"
"""

JSON_TYPE = {"Content-Type": "application/json"}

Answering = Callable[[Mapping[str, Any]], bytes | None]
"""From a message to the raw answer; L{None}: it never comes."""


def pin_of(tool: Mapping[str, Any]) -> str:
    """The pin of a tool, reckoned independently of the connector."""
    return digest({key: each for key, each in tool.items() if key != "_meta"})


def filled(text: str = FILE, create: Mapping[str, Any] = CREATE) -> str:
    """The file, its pins filled in."""
    return text.replace("PIN-OF-CREATE", pin_of(create)).replace("PIN-OF-SEARCH", pin_of(SEARCH))


def spec_of(text: str = FILE, create: Mapping[str, Any] = CREATE) -> McpSpec:
    """What it says, read."""
    reading = read_file(filled(text, create).encode(), "tracker.toml")
    assert isinstance(reading.spec, McpSpec), reading.problems
    return reading.spec


def events(*messages: Any, ends: bool = True) -> bytes:
    """A stream of events, each one message; without an end it stays open."""
    body = b"".join(b"event: message\ndata: " + canonical(each) + b"\n\n" for each in messages)
    if ends:
        return answer(body, headers={"Content-Type": "text/event-stream"})
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n\r\n"
    return head + body


def result(message: Mapping[str, Any], value: Mapping[str, Any]) -> dict[str, Any]:
    """The response that gives a message's result."""
    return {"jsonrpc": "2.0", "id": message["id"], "result": value}


def error(message: Mapping[str, Any], code: int, text: str = "no") -> dict[str, Any]:
    """The response that says that a message failed."""
    return {"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": text}}


def always(raw: bytes | None) -> Answering:
    """Answer with this, whatever is asked."""
    return lambda _: raw


def giving(value: Any, **change: Any) -> Answering:
    """Answer with this result.

    :param change: what else the response says.
    """
    return lambda message: json_answer({**result(message, value), **change}, 200, JSON_TYPE)


def failing(code: int, text: str = "no") -> Answering:
    """Answer with this error."""
    return lambda message: json_answer(error(message, code, text), 200, JSON_TYPE)


@define(slots=False)
class McpService(Service):
    """The server, the network, the clock and the loop.

    :ivar version: the only one of the protocol that it speaks.
    :ivar tools: one page each.
    :ivar answers: instead of the usual answers, by method.
    :ivar messages: every message that arrived, with the headers of its request.
    """

    version: str = HANDSHAKE
    tools: list[list[dict[str, Any]]] = field(factory=lambda: [[CREATE, SEARCH]])
    answers: dict[str, Answering] = field(factory=dict)
    messages: list[tuple[dict[str, Any], dict[str, str]]] = field(factory=list)
    sides: Stepped = field(factory=Stepped)

    def connecting(self, spec: McpSpec | None = None) -> McpConnector:
        """A connector whose network is this server."""
        found = spec or spec_of()
        transport = HttpTransport(self.opener)
        return McpConnector(
            found, HttpSessions(lambda: succeed(self.sides.bridge), transport, self.reactor, found), self.reactor
        )

    def methods(self) -> list[str]:
        """What arrived."""
        return [message.get("method", "") for message, _ in self.messages]

    def calls(self) -> list[dict[str, Any]]:
        """The parameters of every call that arrived."""
        return [message["params"] for message, _ in self.messages if message.get("method") == "tools/call"]

    def took(self, peer: _Peer, request: bytes) -> None:
        """A request arrived whole."""
        self.requests.append(request)
        head, _, body = request.partition(b"\r\n\r\n")
        lines = head.decode("ascii").split("\r\n")
        headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines[1:])}
        message = json.loads(body) if body else {"method": lines[0].partition(" ")[0]}
        self.messages.append((message, headers))
        reply = self.answers.get(message.get("method", ""), self._usual)(message)
        if reply is not None and peer.transport is not None:
            peer.transport.write(reply)

    def advance(self, seconds: float = 0) -> None:
        """Let time pass, every byte arrive, and the loop do its work."""
        super().advance(seconds)
        idle = 0
        while idle < 4:  # a message takes a few turns of both, and more may follow
            before = len(self.requests), len(self.connected)
            self.sides.settle()
            super().advance(0)
            idle = idle + 1 if before == (len(self.requests), len(self.connected)) else 0

    def _usual(self, message: Mapping[str, Any]) -> bytes:
        if "id" not in message or "method" not in message:
            return answer(b"", 202)
        made: Any = getattr(self, "_" + message["method"].replace("/", "_"), None)
        if made is None:
            return json_answer(error(message, -32601), 404, JSON_TYPE)
        said = made(message)
        headers = dict(JSON_TYPE)
        if message["method"] == "initialize":
            headers["Mcp-Session-Id"] = "session-1"
        return json_answer(said, 200, headers)

    def _server_discover(self, message: Mapping[str, Any]) -> dict[str, Any]:
        if self.version != MODERN:
            return error(message, -32601, "Method not found")
        about = {"supportedVersions": [MODERN], "capabilities": {"tools": {}}, "resultType": "complete"}
        return result(message, {**about, "ttlMs": 0, "cacheScope": "private"})

    def _initialize(self, message: Mapping[str, Any]) -> dict[str, Any]:
        about = {"protocolVersion": self.version, "capabilities": {"tools": {}}}
        return result(message, {**about, "serverInfo": {"name": "tracker", "version": "1"}})

    def _tools_list(self, message: Mapping[str, Any]) -> dict[str, Any]:
        page = int(message.get("params", {}).get("cursor", "0"))
        said: dict[str, Any] = {"tools": self.tools[page], **self._stateless()}
        if page + 1 < len(self.tools):
            said["nextCursor"] = str(page + 1)
        return result(message, said)

    def _tools_call(self, message: Mapping[str, Any]) -> dict[str, Any]:
        said = json.dumps(message["params"].get("arguments"))
        return result(message, {"content": [{"type": "text", "text": said}], **self._complete()})

    def _complete(self) -> dict[str, Any]:
        return {"resultType": "complete"} if self.version == MODERN else {}

    def _stateless(self) -> dict[str, Any]:
        return {**self._complete(), "ttlMs": 0, "cacheScope": "private"} if self.version == MODERN else {}


@define
class McpRig:
    """A server in the hand of the contract of every connector.

    :ivar write: the raw answer that a message is.
    """

    service: McpService
    connector: IConnector
    base_url: str
    write: Callable[[Mapping[str, Any]], bytes]
    reads: str = "search"
    writes: str = "create_issue"
    inputs: Mapping[str, JSON] = field(factory=lambda: {"title": "Grüße"})

    def queue_answer(self, output: JSON) -> JSON:
        """Answer with this as the structured content."""
        said = {"content": [], "structuredContent": output}
        self.service.answers["tools/call"] = lambda message: self.write(result(message, said))
        return {"structured": output}

    def queue_silence(self) -> None:
        """Answer no call."""
        self.service.answers["tools/call"] = always(None)

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self.service.advance(seconds)

    def sent(self) -> int:
        """Count the calls."""
        return len(self.service.calls())
