"""A request through an ASGI application: what crosses, how fast, and what becomes of it when either side leaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any

from twisted.internet.defer import CancelledError, Deferred

from aileron.base.json import utc
from aileron.features.mcp_http._asgi import App, Receive, Send, exchange_request
from aileron.features.mcp_http.values import McpReply, McpRequest
from aileron.model.errors import InternalError
from aileron.model.sessions import Session
from tests.mcp.stepped import SteppedCase

NOW = utc(1_760_000_000.0)
FIELDS = (
    (b"Accept", b"text/event-stream"),
    (b"Authorization", b"Bearer ail_a_canary"),
    (b"Cookie", b"a=b"),
    (b"Last-Event-Id", b"7"),  # the server would give no answer at all, since it keeps no events
)
START = {"type": "http.response.start", "status": 201, "headers": [(b"x-a", b"1"), (b"connection", b"keep-alive")]}

Act = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]


def piece(body: bytes, *, more: bool = True) -> MutableMapping[str, Any]:
    """A piece of a body."""
    return {"type": "http.response.body", "body": body, "more_body": more}


class ExchangeTests(SteppedCase):
    """Both sides stepped by hand."""

    sent = 0

    def start(self, app: App) -> Deferred[McpReply]:
        """Begin a request."""
        session = Session("s", "agent", "/src", NOW, NOW)
        request = McpRequest(session, "ail_a_canary", "POST", "/mcp", FIELDS, b"hello")
        answer = Deferred.fromCoroutine(exchange_request(self.sides.bridge, app, request))
        self.sides.settle()
        return answer

    def take(self, reply: McpReply) -> Deferred[bytes]:
        """Ask for the next piece."""
        asked: Deferred[bytes] = Deferred.fromCoroutine(_next(reply))
        self.sides.settle()
        return asked

    async def pieces(self, send: Send, count: int) -> None:
        """Send a head and so many pieces."""
        await send(dict(START))
        for number in range(count):
            await send(piece(b"%d" % number, more=number + 1 < count))
            self.sent = number + 1

    def test_whole(self) -> None:
        """Request and answer cross whole, but for the credentials and what is of the connection."""
        seen: list[Any] = []

        async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
            seen.extend([scope, await receive()])
            await self.pieces(send, 1)

        reply = self.successResultOf(self.start(app))
        self.assertEqual((reply.status, dict(reply.headers)), (201, {"x-a": "1"}))
        self.assertEqual([self.successResultOf(self.take(reply)) for _ in range(2)], [b"", b"0"])
        self.failureResultOf(self.take(reply), StopAsyncIteration)
        scope, message = seen
        self.assertEqual((scope["type"], scope["method"], scope["path"]), ("http", "POST", "/mcp"))
        self.assertEqual(scope["headers"], [(b"accept", b"text/event-stream")])
        self.assertEqual((message["body"], message["more_body"]), (b"hello", False))

    def test_no_faster(self) -> None:
        """Of a body one piece is made ahead at most, however long the client takes."""
        reply = self.successResultOf(self.start(lambda scope, receive, send: self.pieces(send, 9)))
        self.assertEqual(self.sent, 1)
        self.successResultOf(self.take(reply))
        self.assertEqual(self.sent, 1)
        for number in range(3):
            self.assertEqual(self.successResultOf(self.take(reply)), b"%d" % number)
        self.assertEqual(self.sent, 4)

    def test_left(self) -> None:
        """An application hears that the client has left, whatever it waits for, and is not kept from ending."""
        heard: list[str] = []

        async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
            await receive()
            sending = asyncio.ensure_future(self.pieces(send, 9))
            heard.append((await receive())["type"])
            await sending

        reply = self.successResultOf(self.start(app))
        self.assertEqual((heard, self.sent), ([], 1))
        reply.close()
        self.sides.settle()
        self.assertEqual((heard, self.sent), (["http.disconnect"], 9))

    def test_cancelled(self) -> None:
        """So it does if the client leaves before there is a head."""
        heard: list[str] = []

        async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
            await receive()
            heard.append((await receive())["type"])

        answer = self.start(app)
        self.assertNoResult(answer)
        answer.cancel()
        self.sides.settle()
        self.failureResultOf(answer, CancelledError)
        self.assertEqual(heard, ["http.disconnect"])

    def test_no_answer(self) -> None:
        """An application that ends or fails without an answer is a failure that says nothing of the inside."""

        async def silent(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
            """Answer nothing."""

        async def broken(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
            raise RuntimeError("hunter2")

        self.failureResultOf(self.start(silent), InternalError)
        with self.assertLogs("aileron.features.mcp_http._asgi"):
            failure = self.failureResultOf(self.start(broken), InternalError)
        self.assertNotIn("hunter2", str(failure.value))

    def test_cut_short(self) -> None:
        """A body that ends before its end is a failure, not an end."""

        async def app(scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
            await send(dict(START))
            await send(piece(b"0"))

        reply = self.successResultOf(self.start(app))
        self.successResultOf(self.take(reply))
        self.failureResultOf(self.take(reply), InternalError)

    def test_loop_ends(self) -> None:
        """An application that waits for its client to read does not keep the loop from ending."""
        reply = self.successResultOf(self.start(lambda scope, receive, send: self.pieces(send, 9)))
        self.sides.close()
        self.assertEqual((reply.status, self.sent, self.sides.left), (201, 1, 0))

    def test_loop_gone(self) -> None:
        """Where the loop has ended a body ends with a failure, and leaving is none."""
        reply = self.successResultOf(self.start(lambda scope, receive, send: self.pieces(send, 9)))
        self.successResultOf(self.take(reply))
        self.sides.close()
        self.failureResultOf(self.take(reply), InternalError)
        reply.close()


async def _next(reply: McpReply) -> bytes:
    return await anext(aiter(reply.chunks))
