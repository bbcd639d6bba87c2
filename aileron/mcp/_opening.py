"""Answers a client's first messages before the SDK is loaded, because loading takes long.

Only the requests that nearly every client sends first are answered here, and only if well-formed: C{initialize},
C{server/discover}, C{ping} and the first page of C{tools/list}. All other messages are left to the SDK, which receives
the first messages when it is loaded. Importing this module loads only the standard library.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from aileron import __version__

INSTRUCTIONS = (
    "These tools act in the world through Aileron, which holds the keys and asks the user where that is wanted. "
    "A call that answers as pending has not been done: show the user its message, and ask check_action_status later. "
    "An action that is not listed is found by search_actions. If something is missing, aileron_diagnostics tells why."
)
TASKS = "io.modelcontextprotocol/tasks"

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
MODERN_VERSIONS = ("2026-07-28",)
"""The protocol versions that the SDK serves, with and without a handshake. The newest is the last."""

SERVER = {"name": "aileron", "title": "Aileron", "version": __version__}
_CHANGES = {"resources": {"listChanged": True, "subscribe": True}, "tools": {"listChanged": True}, "completions": {}}

_META = "io.modelcontextprotocol/"
_VERSION, _CAPABILITIES, _CLIENT = f"{_META}protocolVersion", f"{_META}clientCapabilities", f"{_META}clientInfo"


class ToolsRequest(NamedTuple):
    """A request for the first page of the list of tools.

    :ivar request_id: the ID of the request.
    :ivar modern: whether the client uses the protocol without a handshake.
    :ivar client: the client's own name.
    :ivar capabilities: the capabilities that the client declares.
    """

    request_id: str | int
    modern: bool
    client: str
    capabilities: Mapping[str, Any]

    def answer(self, tools: list[Any]) -> bytes:
        """Return the response that lists C{tools}, as one line of JSON."""
        return _answer(self.request_id, {"tools": tools, **(_COMPLETE if self.modern else {})})


_COMPLETE = {
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {f"{_META}serverInfo": SERVER},
}


class Opening:
    """The first messages of one client, before the MCP SDK is loaded.

    :ivar lines: the messages to pass to the SDK, in order.
    :ivar answered: the ID of the request in C{lines} that was answered here, so that the SDK's response must be
        dropped.
    :ivar over: True if the SDK must answer one of C{lines}.
    """

    def __init__(self) -> None:
        self.lines: list[bytes] = []
        self.answered: str | int | None = None
        self.over = False
        self._modern: bool | None = None
        self._client = ""
        self._capabilities: Mapping[str, Any] = {}

    def take(self, line: bytes) -> bytes | ToolsRequest | None:
        """Process a message.

        :return: the line that answers the message, a request for the tools that the caller must answer, or None if the
            message was left to the SDK.
        """
        message = _parse(line)
        method = message.get("method")
        if method == "initialize" and self._modern is None:
            answer = self._greet(message)
        elif method == "server/discover" and self._modern is None:
            answer = self._describe(message)
        elif method == "ping" and self._modern is False and _has_id(message) and not message.keys() - _PLAIN_KEYS:
            return _answer(message["id"], {})
        elif method == "tools/list" and (asked := self._find_tools_request(message)) is not None:
            return asked
        else:
            answer = None
        self.lines.append(line)
        self.over = self.over or (answer is None and not _is_notification(message))
        return answer

    def leave(self, line: bytes) -> None:
        """Store a message for the MCP SDK, which must answer it.

        No later message is answered before the SDK is loaded.
        """
        self.lines.append(line)
        self.over = True

    def _greet(self, message: Mapping[str, Any]) -> bytes | None:
        params = _mapping(message.get("params"))
        client, version = _mapping(params.get("clientInfo")), params.get("protocolVersion")
        named = all(isinstance(client.get(name), str) for name in ("name", "version"))
        if not (_has_id(message) and isinstance(version, str) and named and _has_capabilities(params, "capabilities")):
            return None
        self._begin(message, str(client["name"]), params["capabilities"], modern=False)
        result = {
            "protocolVersion": version if version in HANDSHAKE_VERSIONS else HANDSHAKE_VERSIONS[-1],
            "capabilities": {**_CHANGES, "prompts": {"listChanged": False}},
            "serverInfo": SERVER,
            "instructions": INSTRUCTIONS,
        }
        return _answer(message["id"], result)

    def _describe(self, message: Mapping[str, Any]) -> bytes | None:
        envelope = _read_envelope(message)
        if not _has_id(message) or envelope is None:
            return None
        self._begin(message, *envelope, modern=True)
        result = {
            "supportedVersions": list(MODERN_VERSIONS),
            "capabilities": {**_CHANGES, "prompts": {"listChanged": True}, "extensions": {TASKS: {}}},
            "instructions": INSTRUCTIONS,
            **_COMPLETE,
        }
        return _answer(message["id"], result)

    def _begin(self, message: Mapping[str, Any], client: str, capabilities: Mapping[str, Any], *, modern: bool) -> None:
        self.answered = message["id"]
        self._modern, self._client, self._capabilities = modern, client, capabilities

    def _find_tools_request(self, message: Mapping[str, Any]) -> ToolsRequest | None:
        params = _mapping(message.get("params"))
        if self._modern is None or not _has_id(message) or params.get("cursor") is not None:
            return None
        if self._modern:
            envelope = _read_envelope(message)
            return None if envelope is None else ToolsRequest(message["id"], True, *envelope)
        if _VERSION in _mapping(params.get("_meta")) or not isinstance(message.get("params", {}), dict):
            return None
        return ToolsRequest(message["id"], False, self._client, self._capabilities)


_PLAIN_KEYS = {"jsonrpc", "id", "method"}


def _answer(request_id: str | int, result: Mapping[str, Any]) -> bytes:
    message = {"jsonrpc": "2.0", "id": request_id, "result": result}
    return json.dumps(message, separators=(",", ":")).encode("ascii")


def _parse(line: bytes) -> Mapping[str, Any]:
    """Parse a line. If it is not a JSON-RPC 2.0 message, return an empty mapping."""
    try:
        message = json.loads(line)
    except (ValueError, RecursionError):
        return {}
    return message if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else {}


def _has_id(message: Mapping[str, Any]) -> bool:
    return isinstance(message.get("id"), (str, int)) and not isinstance(message["id"], bool)


def _is_notification(message: Mapping[str, Any]) -> bool:
    method = message.get("method")
    return "id" not in message and isinstance(method, str) and method.startswith("notifications/")


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _has_capabilities(said: Mapping[str, Any], name: str) -> bool:
    """Return whether the member C{name} has the form of a client's capabilities: an object of objects."""
    value = said.get(name)
    return isinstance(value, dict) and all(isinstance(each, dict) for each in value.values())


def _read_envelope(message: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]] | None:
    """Return the client's name and capabilities from a request without a handshake, or None if they are missing."""
    meta = _mapping(_mapping(message.get("params")).get("_meta"))
    client = meta.get(_CLIENT)
    if meta.get(_VERSION) not in MODERN_VERSIONS or not _has_capabilities(meta, _CAPABILITIES):
        return None
    if not isinstance(client, dict) or not all(isinstance(client.get(name), str) for name in ("name", "version")):
        return None
    return str(client["name"]), meta[_CAPABILITIES]
