"""Long answers are passed on to a tool while they arrive, no faster than it reads, and never end falsely."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import Any, cast

from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionAborted
from twisted.internet.interfaces import IConsumer

from aileron.features.own_tools._budget import MOST_HELD_OF_SESSION, STREAM_BYTES
from aileron.features.own_tools._connection import IDLE_SECONDS
from aileron.features.own_tools.values import ToolAnswer, ToolRequest
from aileron.model.streams import AnswerCut
from tests.features.own_tools.test_connection import GET, ConnectionCase
from tests.features.own_tools.tls import End, Tool


@define(eq=False)
class Body:
    """The body of a long answer, whose pieces the test gives.

    :ivar is_paused: whether the tool cannot take more.
    """

    consumer: Any = None
    end: Deferred[None] = field(factory=Deferred)
    is_paused: bool = False
    is_closed: bool = False

    async def pass_on(self, consumer: IConsumer) -> None:
        """Pass on what the test gives, until it gives an end."""
        self.consumer = consumer
        consumer.registerProducer(self, True)  # type: ignore[arg-type]
        try:
            await self.end
        finally:
            consumer.unregisterProducer()

    def close(self) -> None:
        """Note that nobody takes it."""
        self.is_closed = True

    def pauseProducing(self) -> None:
        self.is_paused = True

    def resumeProducing(self) -> None:
        self.is_paused = False

    def stopProducing(self) -> None:
        self.is_closed = True


class StreamTests(ConnectionCase):
    """L{ToolConnection} with long answers."""

    def setUp(self) -> None:
        super().setUp()
        self.ended: list[tuple[int, bool]] = []

    def begin(self, length: int | None = None, *headers: tuple[str, str]) -> tuple[Tool, End, Body]:
        """Return a tool whose answer begins."""
        tool, end = self.connect()
        self.say(tool, GET)
        return tool, end, self.answer_long(length, *headers)

    def answer_long(self, length: int | None = None, *headers: tuple[str, str]) -> Body:
        """Begin a long answer to the oldest request."""
        body = Body()

        def note(size: int, is_cut: bool) -> None:
            self.ended.append((size, is_cut))

        self.door.answer(ToolAnswer(200, "OK", headers, stream=body, length=length, ended=note))
        self.net.run()
        return body

    def give(self, body: Body, *pieces: bytes) -> None:
        """Have the service send pieces."""
        for each in pieces:
            body.consumer.write(each)
            self.net.run()

    def test_length(self) -> None:
        """A body whose length is known is passed on as it is, and the connection is used again."""
        tool, _, body = self.begin(6, ("ETag", "x"))
        lines = b"HTTP/1.1 200 OK\r\nETag: x\r\nContent-Length: 6\r\nConnection: keep-alive\r\n\r\n"
        self.assertEqual(lines, tool.got)
        self.assertEqual(STREAM_BYTES, self.held_now())
        self.give(body, b"abc", b"def")
        self.assertEqual(lines + b"abcdef", tool.got)
        body.end.callback(None)
        self.turn()
        self.assertEqual(([(6, False)], 0), (self.ended, self.held_now()))
        self.say(tool, GET)
        self.answer()
        self.assertEqual(2, tool.got.count(b"HTTP/1.1 200"))

    def test_chunks(self) -> None:
        """A body whose length is not known is passed on in chunks, with an end."""
        tool, _, body = self.begin(None, ("Content-Length", "9"), ("Transfer-Encoding", "gzip"))
        self.give(body, b"abc", b"", b"x" * 20)
        body.end.callback(None)
        self.net.run()
        raw, _, got = tool.got.partition(b"\r\n\r\n")
        self.assertIn(b"\r\nTransfer-Encoding: chunked\r\n", raw)
        self.assertNotIn(b"Length", raw)
        self.assertNotIn(b"gzip", raw)
        self.assertEqual(b"3\r\nabc\r\n14\r\n" + b"x" * 20 + b"\r\n0\r\n\r\n", got)
        self.assertEqual([(23, False)], self.ended)

    def test_cut(self) -> None:
        """An answer that is cut ends the connection at once, without a last chunk and without an end of TLS."""
        for length in (None, 100):
            tool, _end, body = self.begin(length)
            self.give(body, b"abc")
            body.end.errback(AnswerCut())
            self.net.run()
            self.assertEqual((3, True), self.ended.pop())
            self.assertNotIn(b"0\r\n\r\n", tool.got.partition(b"\r\n\r\n")[2])
            self.assertIs(ConnectionAborted, self.own.reason)
            self.assertEqual(0, self.held_now())

    def test_short(self) -> None:
        """A body that is shorter than its length is cut as well."""
        _tool, _, body = self.begin(4)
        self.give(body, b"abc")
        body.end.callback(None)
        self.net.run()
        self.assertEqual([(3, True)], self.ended)
        self.assertIs(ConnectionAborted, self.own.reason)

    def test_failure(self) -> None:
        """A failure of Aileron is logged and cuts the answer."""
        _, _, body = self.begin(4)
        body.end.errback(ZeroDivisionError())
        self.net.run()
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.assertIs(ConnectionAborted, self.own.reason)

    def test_slow_tool(self) -> None:
        """If the tool does not read, the body is paused, and little of it is in memory."""
        _tool, end, body = self.begin()
        end.pauseProducing()
        written = 0
        while not body.is_paused and written < 2 * STREAM_BYTES:
            self.give(body, b"x" * 16384)
            written += 16384
        self.assertLess(written, STREAM_BYTES)
        self.turn(IDLE_SECONDS - 1)
        end.resumeProducing()
        self.net.run()
        self.assertFalse(body.is_paused)
        self.turn(IDLE_SECONDS - 1)
        self.assertIsNone(self.own.reason)
        self.turn(1)
        self.assertEqual((ConnectionAborted, True), (self.own.reason, body.end.called), "nothing moved for too long")

    def test_tool_leaves(self) -> None:
        """A tool that breaks its connection ends the body at once."""
        _, end, body = self.begin()
        self.give(body, b"abc")
        end.abortConnection()
        self.net.run()
        self.assertEqual((True, [(3, True)], 0), (body.end.called, self.ended, self.held_now()))

    def test_tls_ends(self) -> None:
        """A tool that ends TLS gets nothing more: the next piece ends the body."""
        tool, end, body = self.begin()
        end.pauseProducing()
        self.give(body, b"x" * 200_000)
        tool.transport.loseConnection()
        self.net.run()
        self.assertRaises(AnswerCut, body.consumer.write, b"more")

    def test_tool_left_before(self) -> None:
        """If the tool has left when the answer begins, its body is closed."""
        body = Body()

        async def handle(request: ToolRequest) -> ToolAnswer:
            with contextlib.suppress(CancelledError):
                await Deferred()
            return ToolAnswer(200, "OK", stream=body)

        self.door = cast(Any, SimpleNamespace(handle=handle))
        tool, end = self.connect()
        self.say(tool, GET)
        end.abortConnection()
        self.net.run()
        self.assertTrue(body.is_closed)

    def test_pipelined(self) -> None:
        """A request that comes while a long answer is passed on is not read: the connection ends after it."""
        tool, _, body = self.begin(3)
        self.say(tool, GET)
        self.give(body, b"abc")
        body.end.callback(None)
        self.net.run()
        self.assertEqual(1, len(self.door.requests))
        self.assertIsNotNone(tool.reason)

    def test_memory(self) -> None:
        """A session's long answers are limited together; one too many is refused, and its body closed."""
        most = MOST_HELD_OF_SESSION // STREAM_BYTES
        bodies = [self.begin()[2] for _ in range(most)]
        self.assertFalse(any(each.is_closed for each in bodies))
        tool, _, body = self.begin()
        self.assertTrue(body.is_closed)
        self.assertTrue(tool.got.startswith(b"HTTP/1.1 403 "))
        self.assertEqual([(0, True)], self.ended)

    def test_unclear_head(self) -> None:
        """A head that can be read in two ways is not passed on."""
        tool, _, body = self.begin(3, ("X-A", "b\r\nSet-Cookie: c"))
        self.assertTrue(tool.got.startswith(b"HTTP/1.1 502 "))
        self.assertTrue(body.is_closed)

    @given(st.lists(st.binary(max_size=300), max_size=8))
    def test_any_pieces(self, pieces: list[bytes]) -> None:
        """Whatever the pieces are, the tool reads them in proper chunks."""
        self.setUp()
        tool, _, body = self.begin()
        self.give(body, *pieces)
        body.end.callback(None)
        self.net.run()
        raw, found = tool.got.partition(b"\r\n\r\n")[2], b""
        while True:
            size, _, raw = raw.partition(b"\r\n")
            length = int(size, 16)
            found, end, raw = found + raw[:length], raw[length : length + 2], raw[length + 2 :]
            self.assertEqual(b"\r\n", end)
            if not length:
                break
        self.assertEqual((b"".join(pieces), b""), (found, raw))
