"""What is answered before the SDK is loaded: the same as the SDK answers."""

from __future__ import annotations

import asyncio
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import SessionEnvironment
from aileron.mcp._definitions import own_definitions, read_definitions
from aileron.mcp._greeting import greet
from aileron.mcp._opening import HANDSHAKE_VERSIONS, MODERN_VERSIONS, Opening, ToolsRequest
from aileron.mcp._server import ToolServer
from aileron.mcp._streams import InputStream, OutputStream, parse_line
from aileron.mcp.offering.tools import write_tool
from aileron.mcp.waiting.calling import ClientPolicy
from aileron.mcp.waiting.profiles import introduce, know_client
from tests.extent import examples
from tests.mcp.case import action, in_a_loop
from tests.mcp.offering.test_catalog import Offered
from tests.mcp.test_server import done

SCHEMA = {"type": "object", "properties": {"ts": {"$ref": "#/$defs/t"}}, "$defs": {"t": {"type": "string"}}}
ASKS = {"text": {"type": "string"}, "who": {"type": "string"}}
ACTIONS = (
    action(),
    action("look-up", gated=True, read_only=True, idempotent=True, output_schema=SCHEMA),
    action("ask", asks=["who"], input_schema={"type": "object", "properties": ASKS, "required": ["who", "text"]}),
)
SESSION = SessionEnvironment("http://127.0.0.1:9", "t")


def request(method: str, request_id: Any = 1, **params: Any) -> dict[str, Any]:
    """A request, without parameters if there are none."""
    return {"jsonrpc": "2.0", "id": request_id, "method": method, **({"params": params} if params else {})}


def initialize(version: str = "2025-11-25", **more: Any) -> dict[str, Any]:
    """The first message of a handshake."""
    client = {"name": "claude-code", "version": "1"}
    return request("initialize", 0, **{"protocolVersion": version, "capabilities": {}, "clientInfo": client, **more})


def modern(method: str, request_id: Any = 1, **more: Any) -> dict[str, Any]:
    """A request without a handshake."""
    meta = {
        "protocolVersion": "2026-07-28",
        "clientInfo": {"name": "claude-code", "version": "1"},
        "clientCapabilities": {},
        **more,
    }
    return request(method, request_id, _meta={f"io.modelcontextprotocol/{name}": each for name, each in meta.items()})


INITIALIZED = {"jsonrpc": "2.0", "method": "notifications/initialized"}


def line(message: Any) -> bytes:
    """A message as it is read."""
    return json.dumps(message).encode()


async def ask_sdk(messages: Sequence[Mapping[str, Any]], session: SessionEnvironment = SESSION) -> list[Any]:
    """The SDK's answers to these messages, in order."""
    server = ToolServer(Offered(*ACTIONS), ClientPolicy(session)).server
    stream, written = InputStream(), list[bytes]()
    serving = asyncio.ensure_future(
        server.run(stream, OutputStream(written.append), server.create_initialization_options())
    )
    wanted = 0
    for message in messages:
        stream.put(parse_line(line(message)))
        wanted += "id" in message
        while len(written) < wanted:
            await asyncio.sleep(0)
    serving.cancel()
    return [json.loads(each) for each in written]


def ask_early(messages: Sequence[Mapping[str, Any]], session: SessionEnvironment = SESSION) -> list[Any]:
    """The early answers to these messages; None for each that is left to the SDK."""
    opening = Opening()
    return [_read(opening.take(line(message)), session) for message in messages if "id" in message]


def _read(answer: bytes | ToolsRequest | None, session: SessionEnvironment) -> Any:
    if isinstance(answer, ToolsRequest):
        client = know_client(introduce(answer.client, answer.capabilities, modern=answer.modern), session)
        definitions = sorted(own_definitions(45), key=lambda each: each.name)
        offered = [*read_definitions(ACTIONS), *definitions]
        answer = answer.answer([write_tool(each, asked=client.shows_forms) for each in offered])
    return None if answer is None else json.loads(answer)


class SameAnswersTests(SynchronousTestCase):
    """Both ways of answering, side by side."""

    def test_versions(self) -> None:
        """The versions of the protocol are those that the SDK serves."""
        self.assertEqual(HANDSHAKE_VERSIONS, tuple(HANDSHAKE_PROTOCOL_VERSIONS))
        self.assertEqual(MODERN_VERSIONS, tuple(MODERN_PROTOCOL_VERSIONS))

    @in_a_loop
    async def test_handshake(self) -> None:
        """In each version with a handshake, and in one that nobody knows, every answer is the SDK's own."""
        for version in (*HANDSHAKE_VERSIONS, *MODERN_VERSIONS, "1999-01-01", ""):
            messages = [
                initialize(version),
                INITIALIZED,
                request("ping", "é"),
                request("tools/list", 2),
                request("tools/list", "3", _meta={"progressToken": 1}),
            ]
            self.assertEqual(ask_early(messages), await ask_sdk(messages), version)

    @in_a_loop
    async def test_stateless(self) -> None:
        """Without a handshake every answer is the SDK's own."""
        messages = [modern("server/discover", "a"), modern("tools/list", 2)]
        self.assertEqual(ask_early(messages), await ask_sdk(messages))

    @in_a_loop
    async def test_capabilities(self) -> None:
        """A client that shows forms, and one that does not, is listed the arguments that the SDK would list."""
        kinds: Sequence[dict[str, Any]] = ({}, {"form": {}}, {"url": {}}, {"form": {}, "url": {}})
        for capabilities in ({"roots": {}}, *({"elicitation": kind} for kind in kinds)):
            for attended in (False, True):
                session = SessionEnvironment("http://127.0.0.1:9", "t", client="claude", attended=attended)
                for messages in (
                    [initialize(capabilities=capabilities), INITIALIZED, request("tools/list", 2)],
                    [
                        modern("server/discover", clientCapabilities=capabilities),
                        modern("tools/list", 2, clientCapabilities=capabilities),
                    ],
                ):
                    self.assertEqual(ask_early(messages, session), await ask_sdk(messages, session), capabilities)

    @in_a_loop
    async def test_answered_before(self) -> None:
        """The SDK is given what was answered, and its own answer to that is not written."""
        opening, written = Opening(), list[bytes]()
        self.assertIsNotNone(opening.take(line(initialize())))
        server, stream = ToolServer(Offered(*ACTIONS, answer=done)).server, InputStream()
        output = OutputStream(written.append, opening.answered)
        serving = asyncio.ensure_future(server.run(stream, output, server.create_initialization_options()))
        for each in (*opening.lines, line(INITIALIZED), line(request("ping", 0))):
            stream.put(parse_line(each))
        while not written:
            await asyncio.sleep(0)
        serving.cancel()
        self.assertEqual([json.loads(each) for each in written], [{"jsonrpc": "2.0", "id": 0, "result": {}}])


LEFT: Sequence[Any] = (
    {},
    [],
    request("tools/call", 2, name="x"),
    request("ping", 2, extra=1),
    request("tools/list", 2, cursor="x"),
    request("tools/list", True),
    request("tools/list", None),
    request("tools/list", 2.5),
    {**request("ping"), "jsonrpc": "1.0"},
    modern("tools/list", 2),
    initialize(),
    {"jsonrpc": "2.0", "method": "tools/list"},
)


class LeftTests(SynchronousTestCase):
    """What only the SDK answers."""

    def test_first(self) -> None:
        """A first message in any other form than the usual one is left to the SDK."""
        for message in (
            *LEFT[:-2],
            request("tools/list"),
            request("ping"),
            initialize(7),  # type: ignore[arg-type]
            initialize(capabilities=None),
            initialize(capabilities={"roots": True}),
            initialize(clientInfo={"name": "x"}),
            initialize(clientInfo=[]),
            {**initialize(), "id": None},
            modern("server/discover", protocolVersion="2025-11-25"),
            modern("server/discover", clientCapabilities=[]),
            modern("server/discover", clientInfo=5),
            modern("server/discover", clientInfo={"name": 5, "version": "1"}),
            modern("server/discover", clientInfo={}),
            request("server/discover"),
        ):
            self._assert_left(Opening(), line(message))
        for text in (b"{nonsense", b"\xff", b"[" * 100_000, b'"x"', b"1"):
            self._assert_left(Opening(), text)

    def test_later(self) -> None:
        """So is whatever is no usual request after the greeting; a notification alone needs no answer."""
        for message in LEFT:
            opening = Opening()
            opening.take(line(initialize()))
            self._assert_left(opening, line(message))
        opening = Opening()
        opening.take(line(modern("server/discover")))
        self.assertIsNone(opening.take(line(INITIALIZED)))
        self.assertFalse(opening.over)
        for message in (request("tools/list", 2), request("ping", 2), initialize()):
            self._assert_left(opening, line(message))

    def _assert_left(self, opening: Opening, text: bytes) -> None:
        before = list(opening.lines)
        self.assertIsNone(opening.take(text), text)
        self.assertTrue(opening.over)
        self.assertEqual(opening.lines, [*before, text])

    @settings(deadline=None, max_examples=examples(300))
    @given(
        st.recursive(
            st.none() | st.booleans() | st.integers() | st.text(max_size=5),
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
            max_leaves=10,
        ),
        st.sampled_from(("initialize", "server/discover", "tools/list", "ping")),
        st.booleans(),
    )
    def test_anything(self, params: Any, method: str, greeted: bool) -> None:
        """Whatever a client sends is answered or left to the SDK, and nothing is raised."""
        opening = Opening()
        if greeted:
            opening.take(line(initialize()))
        opening.take(line({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}))


class GreetingTests(SynchronousTestCase):
    """The first message, over pipes."""

    def setUp(self) -> None:
        """Make two pipes."""
        (self.readable, self.client_out), (self.client_in, self.writable) = os.pipe(), os.pipe()
        self.open = [self.readable, self.client_out, self.client_in, self.writable]
        self.addCleanup(self.close_all)
        self.opening = Opening()

    def close(self, descriptor: int) -> None:
        """Close one end."""
        self.open.remove(descriptor)
        os.close(descriptor)

    def close_all(self) -> None:
        """Close what is open."""
        for descriptor in list(self.open):
            self.close(descriptor)

    def test_answered(self) -> None:
        """It is answered at once, and what follows it is handed on."""
        os.write(self.client_out, line(initialize()) + b"\n" + line(INITIALIZED) + b"\nand")
        self.assertEqual(greet(self.readable, self.writable, self.opening), line(INITIALIZED) + b"\nand")
        self.assertEqual(json.loads(os.read(self.client_in, 65_536))["id"], 0)
        self.assertEqual((self.opening.lines, self.opening.answered), ([line(initialize())], 0))

    def test_left(self) -> None:
        """What cannot be answered yet is kept for the SDK."""
        os.write(self.client_out, line(request("tools/call", name="x")) + b"\n")
        self.assertEqual(greet(self.readable, self.writable, self.opening), b"")
        self.assertEqual(self.opening.lines, [line(request("tools/call", name="x"))])
        self.assertTrue(self.opening.over)

    def test_gone(self) -> None:
        """A client that ends, also within a message, is gone; and so is one that does not read."""
        os.write(self.client_out, b'{"jsonrpc"')
        self.close(self.client_out)
        self.assertIsNone(greet(self.readable, self.writable, self.opening))

    def test_deaf(self) -> None:
        """A client that closed its own input is gone."""
        self.close(self.client_in)
        os.write(self.client_out, line(initialize()) + b"\n")
        self.assertIsNone(greet(self.readable, self.writable, self.opening))

    def test_not_blocking(self) -> None:
        """Descriptors that do not block are waited for all the same."""
        for descriptor in (self.readable, self.writable):
            os.set_blocking(descriptor, False)
        os.write(self.client_out, b"\n" + line(initialize()))
        self.assertEqual(greet(self.readable, self.writable, self.opening), line(initialize()))
