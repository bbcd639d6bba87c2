"""One agent's server: what it serves, how much at once, and when it closes."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import product
from typing import Any

from attrs import evolve
from mcp.server.request_state import RequestStateSecurity
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from aileron.base.json import utc
from aileron.client import Daemon, DaemonClient, SessionEnvironment
from aileron.features.mcp_http._http_endpoint import MOST_UNDER_WAY, SessionServer
from aileron.features.mcp_http.values import McpReply, McpRequest, McpSettings
from aileron.mcp.agent import AgentServer
from aileron.model.errors import InternalError, LimitExceeded
from aileron.model.sessions import Session
from tests.mcp.case import action, offering
from tests.mcp.stepped import SteppedCase
from tests.scripted_site import ScriptedSite

NOW = utc(1_760_000_000.0)
HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}
IDLE_SECONDS = 60
MODERN = "2026-07-28"
UNUSABLE_IDS: tuple[Any, ...] = (
    *(None, True, False, 1.5, 1.0, 1e300, float("nan"), float("inf")),
    *({}, {"id": 1}, [], [1], 1 << 63, -(1 << 63) - 1, 10**4000, "x" * 1025),
)
USABLE_IDS: tuple[int | str, ...] = (0, -1, (1 << 63) - 1, -(1 << 63), "", "a", "1.5", "x" * 1024)


def written(method: str, params: Mapping[str, Any], **headers: str) -> McpRequest:
    """A message of the protocol."""
    fields = {"accept": "application/json, text/event-stream", "content-type": "application/json", **headers}
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": dict(params)}
    return McpRequest(
        Session("s", "agent", "/src", NOW, NOW),
        "ail_a_x",
        "POST",
        "/mcp",
        [(name.replace("_", "-").encode(), text.encode()) for name, text in fields.items()],
        json.dumps(body).encode(),
    )


class SessionServerTests(SteppedCase):
    """Loop, reactor, time and daemon by hand."""

    def setUp(self) -> None:
        super().setUp()
        self.clock, self.site = Clock(), ScriptedSite()
        self.closed = 0
        self.session_server = self.furnished(McpSettings(http=True, sessions=100, idle_seconds=IDLE_SECONDS))

    def furnished(self, settings: McpSettings) -> SessionServer:
        """An open one."""
        session = SessionEnvironment("http://127.0.0.1:9", "ail_a_x")
        daemon = Daemon(DaemonClient(self.site.agent, session.url, session.token, self.clock))
        sealing = RequestStateSecurity(keys=[b"k" * 32])
        served = AgentServer(self.clock, self.sides.bridge, session, daemon, sealing, most_calls=MOST_UNDER_WAY)
        session_server = SessionServer(self.clock, self.sides.bridge, settings, served, self.close)
        self.site.answer(200, offering(1, action()))
        session_server.open()
        self.addCleanup(self.settle)
        self.addCleanup(session_server.close)
        self.settle()
        return session_server

    def close(self) -> None:
        """Count."""
        self.closed += 1

    def ask(self, method: str, params: Mapping[str, Any], **headers: str) -> Deferred[McpReply]:
        """Send a message."""
        answer = Deferred.fromCoroutine(self.session_server.serve(written(method, params, **headers)))
        self.settle()
        return answer

    def greet(self) -> McpReply:
        """Open a session; its answer is not read."""
        return self.successResultOf(self.ask("initialize", HELLO))

    def calling(self) -> Deferred[McpReply]:
        """A stateless call whose run waits at the daemon."""
        meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
        params = {"name": "ship_update", "arguments": {}, "_meta": meta}
        return self.ask(
            "tools/call", params, mcp_protocol_version=MODERN, mcp_method="tools/call", mcp_name="ship_update"
        )

    def test_traceparent(self) -> None:
        """The client's place in its trace goes with the run: that of C{_meta}, else that of one valid header."""
        in_meta, in_header = (f"00-{digit * 32}-{digit * 16}-01" for digit in "12")
        session_id = self.greet().headers["mcp-session-id"]
        self.left("notifications/initialized", {}, session_id, None)
        more = {"mcp_session_id": session_id, "mcp_protocol_version": "2025-11-25"}
        ways = (
            (in_meta, [in_header]),
            (None, [in_header]),
            ("bad", [in_header]),
            (None, [in_header] * 2),
            (None, ["bad"]),
        )
        for told, lines in ways:
            params = {"name": "ship_update", "arguments": {}, "_meta": {"traceparent": told}}
            request = written("tools/call", params, **more)
            fields = [*request.fields, *((b"Traceparent", line.encode()) for line in lines)]
            answer = Deferred.fromCoroutine(self.session_server.serve(evolve(request, fields=fields)))
            self.settle()
            self.successResultOf(answer).close()
            self.settle()
        sent = [asked.headers.get("traceparent") for asked in self.site.asked if asked.path.endswith("/run")]
        self.assertEqual(sent, [in_meta, in_header, in_header, None, None])

    def test_promised(self) -> None:
        """A client is given a session, and promised to hear of changes, as it is over standard streams."""
        reply = self.greet()
        self.assertEqual((reply.status, bool(reply.headers["mcp-session-id"])), (200, True))
        reading = Deferred.fromCoroutine(_whole(reply))
        self.settle()
        [data] = [line for line in self.successResultOf(reading).splitlines() if line.startswith(b"data: {")]
        promised = json.loads(data.removeprefix(b"data: "))["result"]["capabilities"]
        self.assertEqual(promised["tools"], {"listChanged": True})
        self.assertEqual(promised["resources"], {"subscribe": True, "listChanged": True})

    def test_under_way(self) -> None:
        """Beyond so many requests under way the next is refused; one that is over makes room, once."""
        replies = [self.greet() for _ in range(MOST_UNDER_WAY)]
        refused = self.failureResultOf(self.ask("initialize", HELLO), LimitExceeded)
        self.assertEqual(refused.value.details, {"retry_after": 1})
        replies[0].close()
        replies[0].close()
        self.greet()
        self.failureResultOf(self.ask("initialize", HELLO), LimitExceeded)

    def test_left_behind(self) -> None:
        """Calls whose clients left without a word count on: beyond so many nothing is sent, and one less makes room."""
        hello = self.greet()
        session_id = hello.headers["mcp-session-id"]
        self.left("notifications/initialized", {}, session_id, None)
        for number in range(MOST_UNDER_WAY + 3):
            self.left("tools/call", {"name": "ship_update", "arguments": {}}, session_id, number)
        self.assertEqual(self.sent(), MOST_UNDER_WAY)
        self.left("notifications/cancelled", {"requestId": 0}, session_id, None)
        self.left("tools/call", {"name": "ship_update", "arguments": {}}, session_id, 99)
        self.assertEqual(self.sent(), MOST_UNDER_WAY + 1)

    def left(self, method: str, params: Mapping[str, Any], session_id: str, number: int | str | None) -> None:
        """Send a message of the handshake's era in a session, and leave without its answer."""
        request = written(method, params, mcp_session_id=session_id, mcp_protocol_version="2025-11-25")
        body: dict[str, Any] = {"jsonrpc": "2.0", "method": method, "params": dict(params)}
        body |= {} if number is None else {"id": number}
        answer = Deferred.fromCoroutine(self.session_server.serve(evolve(request, body=json.dumps(body).encode())))
        self.settle()
        self.successResultOf(answer).close()
        self.settle()

    def sent(self) -> int:
        """How many runs the daemon was asked for."""
        return sum(asked.path.endswith("/run") for asked in self.site.asked)

    def tried(self, modern: bool, **of_message: Any) -> tuple[int, Any]:
        """Status and body of a call whose message has these members, of a client with or without a handshake."""
        params: dict[str, Any] = {"name": "ship_update", "arguments": {}}
        if modern:
            meta = {"io.modelcontextprotocol/protocolVersion": MODERN, "io.modelcontextprotocol/clientCapabilities": {}}
            params["_meta"] = meta
            headers = {"mcp_protocol_version": MODERN, "mcp_method": "tools/call", "mcp_name": "ship_update"}
        else:
            session_id = self.greet().headers["mcp-session-id"]
            self.left("notifications/initialized", {}, session_id, None)
            headers = {"mcp_session_id": session_id, "mcp_protocol_version": "2025-11-25"}
        message = {"jsonrpc": "2.0", "method": "tools/call", "params": params, **of_message}
        request = evolve(written("tools/call", params, **headers), body=json.dumps(message).encode())
        answer = Deferred.fromCoroutine(self.session_server.serve(request))
        self.settle()
        reply = self.successResultOf(answer)
        reading = Deferred.fromCoroutine(_whole(reply))
        self.settle()
        body = self.successResultOf(reading)
        reply.close()
        return reply.status, json.loads(body) if body else None

    def test_unusable_ids(self) -> None:
        """A call whose id nobody could answer is refused with a JSON-RPC error and its null id; nothing is called."""
        for modern, unusable in product((False, True), UNUSABLE_IDS):
            status, body = self.tried(modern, id=unusable)
            self.assertEqual((status, body["id"], body["error"]["code"]), (400, None, -32600), (modern, unusable))
            self.assertIn("id of a request", body["error"]["message"])
        self.assertEqual(self.sent(), 0)

    def test_notification(self) -> None:
        """A call without any id is a notification, which is accepted, not answered, and calls nothing."""
        for modern in (False, True):
            self.assertEqual(self.tried(modern), (202, None))
        self.assertEqual(self.sent(), 0)

    def test_usable_ids(self) -> None:
        """Integers of 64 bits and strings are ids: each such call reaches the daemon."""
        for number, usable in enumerate(USABLE_IDS, 1):
            session_id = self.greet().headers["mcp-session-id"]
            self.left("notifications/initialized", {}, session_id, None)
            self.left("tools/call", {"name": "ship_update", "arguments": {}}, session_id, usable)
            self.assertEqual(self.sent(), number, usable)

    def test_sessions(self) -> None:
        """Beyond so many sessions the next is refused by the protocol's transport."""
        self.session_server = self.furnished(McpSettings(http=True, sessions=1))
        self.assertEqual(self.greet().status, 200)
        with self.assertLogs("mcp", "WARNING"):
            self.assertEqual(self.greet().status, 503)

    def test_idle(self) -> None:
        """It closes after so long without a request under way, and not before."""
        reply = self.greet()
        self.clock.advance(IDLE_SECONDS)
        self.assertEqual(self.closed, 0)
        reply.close()
        self.clock.advance(IDLE_SECONDS - 1)
        self.greet().close()
        self.clock.advance(IDLE_SECONDS - 1)
        self.assertEqual(self.closed, 0)
        self.clock.advance(1)
        self.assertEqual(self.closed, 1)

    def test_closed(self) -> None:
        """What is under way ends with it, at the daemon too."""
        call = self.calling()
        self.assertNoResult(call)
        self.assertIn("/v1/actions/ship-update/run", [asked.path for asked in self.site.asked])
        self.session_server.close()
        self.session_server.close()
        self.settle()
        self.failureResultOf(call, InternalError)
        self.site.agent.flush()
        self.assertEqual((self.closed, self.site.waiting), (1, 0))

    def test_client_gone(self) -> None:
        """A stateless client that leaves ends its wait at the daemon."""
        call = self.calling()
        before = self.site.waiting
        call.cancel()
        self.settle()
        call.addErrback(lambda _: None)
        self.site.agent.flush()
        self.assertEqual(self.site.waiting, before - 1)


async def _whole(reply: McpReply) -> bytes:
    """The body of an answer."""
    return b"".join([chunk async for chunk in reply.chunks])
