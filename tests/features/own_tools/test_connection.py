"""Opened connections over real TLS: one request after another, and answers that count once they were taken."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionAborted
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import digest_of_bytes
from aileron.features.own_tools import _http
from aileron.features.own_tools._authority import SessionAuthority
from aileron.features.own_tools._budget import MOST_HELD_OF_SESSION, HeldBytes
from aileron.features.own_tools._connection import (
    IDLE_SECONDS,
    LINGER_SECONDS,
    REQUEST_SECONDS,
    ToolSession,
    serve_tool,
    write_head,
)
from aileron.features.own_tools._http import UnfitRequest
from aileron.features.own_tools._spool import PIECE_BYTES, BodySpools
from aileron.features.own_tools.values import ToolAnswer
from aileron.home.stored_contents import StoredContents, UnfinishedContent
from tests.features.own_tools.test_http import chunked, fixed, head
from tests.features.own_tools.tls import HOST, End, Net, Served, Tool, WaitingDoor, make_tool

MEBIBYTE = 1024 * 1024
GET = head(start="GET /items HTTP/1.1")


@cache
def find_authority(name: str = "") -> SessionAuthority:
    """Return an authority that is valid now, as OpenSSL looks at the machine's clock: by one name, the same one."""
    return SessionAuthority((HOST,), datetime.now(UTC))


class ConnectionCase(SynchronousTestCase):
    """A tool, and the daemon's end of its connection.

    :ivar spools: stores long bodies, if they are accepted.
    """

    spools: BodySpools | None = None

    def setUp(self) -> None:
        self.authority = find_authority()
        self.clock, self.net, self.door, self.held = Clock(), Net(), WaitingDoor(), HeldBytes()
        self.reports: list[str] = []
        self.given = 0

    def connect(self, authority: SessionAuthority | None = None) -> tuple[Tool, End]:
        """Return a tool that is connected, and its end of the connection."""
        session = ToolSession("session-1", 7, HOST, self.door, self.held, self.reports.append, spools=self.spools)
        options = self.authority.make_options(HOST)
        served = Served(lambda transport: serve_tool(session, options, transport, self.clock))
        tool, below = make_tool(self.clock, (authority or self.authority).pem)
        end, self.own = self.net.connect(below, served)
        self.net.run()
        return tool, end

    def say(self, tool: Tool, *pieces: bytes) -> None:
        """Have a tool send something."""
        for each in pieces:
            tool.transport.write(each)
            self.net.run()

    def answer(self, body: bytes = b"{}", status: int = 200, *headers: tuple[str, str]) -> None:
        """Answer the oldest request."""
        self.door.answer(ToolAnswer(status, "Fine", headers, body, self.note_given))
        self.net.run()

    def note_given(self) -> None:
        """Count an answer that was given."""
        self.given += 1

    def turn(self, seconds: float = 0) -> None:
        """Let time pass."""
        self.clock.advance(seconds)
        self.net.run()

    def held_now(self) -> int:
        """Return how many bytes the connections hold."""
        return self.held._of_sessions.get("session-1", 0)


class LongTests(ConnectionCase):
    """Long bodies, which go to the disk while they are received. The thread is stepped by hand."""

    def setUp(self) -> None:
        super().setUp()
        home = Path(self.mktemp()).absolute()
        home.mkdir(mode=0o700)
        self.stored = StoredContents.of_home(home)
        self.waiting: list[Deferred[None]] = []
        self.stepping = True
        self.spools = BodySpools(self.stored, self.in_thread)
        self.body = bytes(range(256)) * (3 * MEBIBYTE // 256)

    async def in_thread(self, work: Any, *args: Any) -> Any:
        """Call a function at once, or once the thread is stepped."""
        if not self.stepping:
            turn: Deferred[None] = Deferred()
            self.waiting.append(turn)
            await turn
        return work(*args)

    def step(self) -> None:
        """Let the thread work, from now on at once."""
        self.stepping = True
        while self.waiting:
            self.waiting.pop(0).callback(None)
        self.net.run()

    def names(self) -> list[str]:
        """Return the names of all files."""
        return [each.name for each in self.stored.directory.iterdir()] if self.stored.directory.exists() else []

    def upload(self, *lines: str) -> bytes:
        """Return a request with the long body."""
        return fixed(self.body, "Content-Type: application/zip", *lines)

    def test_received(self) -> None:
        """The door gets a long body by its digest and size. It is deleted with the answer."""
        for data in (self.upload(), chunked(self.body[:7], self.body[7:], lines=["Content-Type: application/zip"])):
            tool, _ = self.connect()
            self.say(tool, data)
            request = self.door.requests.pop()
            assert request.long is not None
            self.assertEqual((b"", digest_of_bytes(self.body)), (request.body, request.long.digest))
            self.assertEqual((1, 0), (len(self.names()), self.held_now()))
            self.answer()
            self.assertEqual([], self.names())
            self.say(tool, GET)
            self.answer()
            self.assertEqual(2, tool.got.count(b"HTTP/1.1 200 "))
            self.door.requests.clear()

    def test_pressure(self) -> None:
        """While the disk is slow, the connection is not read, and little of the body is in memory."""
        self.stepping = False
        tool, _ = self.connect()
        self.say(tool, self.upload())
        self.assertFalse(self.own.reading)
        self.assertLess(self.held_now(), 4 * PIECE_BYTES)
        self.step()
        self.assertEqual(1, len(self.door.requests))

    def test_slow(self) -> None:
        """An upload may take long as long as something comes; a silent one is ended, and its file deleted."""
        tool, _ = self.connect()
        data = self.upload()
        for at in range(0, MEBIBYTE, MEBIBYTE // 4):
            self.say(tool, data[at : at + MEBIBYTE // 4])
            self.turn(REQUEST_SECONDS - 1)
        self.assertIsNone(tool.reason)
        self.assertEqual(1, len(self.names()))
        self.turn(REQUEST_SECONDS)
        self.assertIsNotNone(tool.reason)
        self.assertEqual([], self.names())

    def test_gone(self) -> None:
        """A tool that leaves in the midst, or while it waits, leaves no file, unless a run is made of its body."""
        for sent, taken in ((2 * MEBIBYTE, False), (10 * MEBIBYTE, False), (10 * MEBIBYTE, True)):
            tool, _ = self.connect()
            self.say(tool, self.upload()[:sent])
            self.assertEqual(1, len(self.names()))
            if taken:
                spool = self.door.requests[-1].spool
                assert spool is not None
                spool.take()
            tool.transport.abortConnection()
            self.net.run()
            self.assertEqual(taken, bool(self.names()), sent)

    def test_disk(self) -> None:
        """If the body cannot be written, the tool reads why, and the door gets no request."""

        def full(*_: object) -> None:
            raise OSError(28, "No space left on device")

        self.patch(UnfinishedContent, "add", full)
        tool, _ = self.connect()
        self.say(tool, self.upload())
        self.assertTrue(
            tool.got.startswith(b"HTTP/1.1 403 The body cannot be stored: No space left on device"), tool.got
        )
        self.assertEqual(([], []), (self.door.requests, self.names()))

    def test_too_long(self) -> None:
        """A body that becomes longer than allowed is refused, and deleted."""
        self.patch(_http, "MOST_LONG_BYTES", 2 * MEBIBYTE)
        tool, _ = self.connect()
        self.say(tool, chunked(*[self.body] * 2, lines=["Content-Type: application/zip"]))
        self.assertTrue(tool.got.startswith(b"HTTP/1.1 413 "), tool.got)
        self.assertEqual(([], []), (self.door.requests, self.names()))

    def test_expectation(self) -> None:
        """A tool that waits for C{100 Continue} before a long body is told to go on."""
        tool, _ = self.connect()
        data = self.upload("Expect: 100-continue")
        self.say(tool, data[: -len(self.body)])
        self.assertEqual(b"HTTP/1.1 100 Continue\r\n\r\n", tool.got)
        self.say(tool, self.body)
        self.assertEqual(1, len(self.door.requests))


class AnswerTests(ConnectionCase):
    """Requests and their answers."""

    def test_request(self) -> None:
        """A request reaches the door as it was sent, with its session and host, and its answer comes at once."""
        tool, _ = self.connect()
        self.say(tool, fixed(b"{}", "X-A: 1"))
        (request,) = self.door.requests
        self.assertEqual(("session-1", 7, HOST), (request.session_id, request.connection, request.host))
        found = (request.method, request.target, request.headers, request.body)
        self.assertEqual(("POST", "/items", (("X-A", "1"),), b"{}"), found)
        self.answer(b'{"id": 1}', 201, ("ETag", "x"))
        lines = b"HTTP/1.1 201 Fine\r\nETag: x\r\nContent-Length: 9\r\nConnection: keep-alive\r\n\r\n"
        self.assertEqual(lines + b'{"id": 1}', tool.got)
        self.assertIsNone(tool.reason)

    def test_kept(self) -> None:
        """A connection is used for one request after another, and ends when the tool says so."""
        tool, _ = self.connect()
        for _ in range(3):
            self.say(tool, GET)
            self.answer()
        self.assertEqual((3, 3), (len(self.door.requests), tool.got.count(b"HTTP/1.1 200")))
        self.say(tool, head("Connection: close", start="GET /items HTTP/1.1"))
        self.answer()
        self.assertIn(b"Connection: close\r\n", tool.got)
        self.assertIsNotNone(tool.reason)

    def test_at_once(self) -> None:
        """A door that answers at once is asked again for the next request."""
        self.door.usual = ToolAnswer(204, "No Content")
        tool, _ = self.connect()
        self.say(tool, GET, GET)
        self.assertEqual(2, tool.got.count(b"HTTP/1.1 204 No Content\r\nConnection: keep-alive\r\n\r\n"))

    def test_pipelined(self) -> None:
        """A request that comes before the answer to the last one is not read: the connection ends then."""
        for together in (True, False):
            tool, _ = self.connect()
            self.say(tool, *([fixed(b"a") + GET] if together else [fixed(b"a"), GET]))
            self.answer()
            self.assertEqual(1, len(self.door.requests))
            self.assertIn(b"Connection: close\r\n", tool.got)
            self.assertIsNotNone(tool.reason)
            self.door.requests.clear()

    def test_expectation(self) -> None:
        """A tool that waits for C{100 Continue} is told to go on, once, and only if the request is fit."""
        tool, _ = self.connect()
        self.say(tool, head("Content-Length: 3", "Expect: 100-continue"))
        self.assertEqual(b"HTTP/1.1 100 Continue\r\n\r\n", tool.got)
        self.say(tool, b"a", b"bc")
        self.answer()
        self.assertEqual(1, tool.got.count(b"100 Continue"))
        self.assertEqual(b"abc", self.door.requests[0].body)
        tool, _ = self.connect()
        self.say(tool, head("Content-Length: 3", "Expect: 100-continue", host="other.example"))
        self.assertTrue(tool.got.startswith(b"HTTP/1.1 421 "))

    def test_without_content(self) -> None:
        """An answer to HEAD has no content, and the length that the service gave; 204 and 304 have neither."""
        tool, _ = self.connect()
        self.say(tool, head(start="HEAD /items HTTP/1.1"))
        self.answer(b"abc", 200, ("Content-Length", "3"))
        self.say(tool, GET)
        self.answer(b"abc", 204)
        self.say(tool, GET)
        self.answer(b"abc", 304)
        self.assertNotIn(b"abc", tool.got)
        self.assertEqual(1, tool.got.count(b"Content-Length"))
        self.assertEqual(3, tool.got.count(b"\r\n\r\n"))

    def test_refused(self) -> None:
        """An unfit request is reported, answered in words and JSON, and ends the connection; nobody is asked."""
        tool, _ = self.connect()
        self.say(tool, head("Upgrade: websocket", "Connection: Upgrade"))
        raw, _, body = tool.got.partition(b"\r\n\r\n")
        self.assertTrue(raw.startswith(b"HTTP/1.1 400 A change of protocol"))
        for line in (b"Connection: close", b"x-should-retry: false", b"Cache-Control: no-store"):
            self.assertIn(line, raw.split(b"\r\n"))
        self.assertIn("change of protocol", json.loads(body)["message"])
        self.assertEqual(([], 1), (self.door.requests, len(self.reports)))
        self.say(tool, GET)
        self.assertEqual([], self.door.requests)
        self.assertIsNotNone(tool.reason)

    def test_failure(self) -> None:
        """A failure of the door is logged, and answered without its text."""
        tool, _ = self.connect()
        self.say(tool, GET)
        self.door.waiting.pop().errback(ZeroDivisionError("secret"))
        self.net.run()
        self.assertEqual(1, len(self.flushLoggedErrors(ZeroDivisionError)))
        self.assertTrue(tool.got.startswith(b"HTTP/1.1 500 "))
        self.assertNotIn(b"secret", tool.got)

    def test_tool_leaves(self) -> None:
        """A tool that leaves while it waits cancels the waiting, and nothing is left of it."""
        tool, end = self.connect()
        self.say(tool, fixed(b"x" * 1000))
        self.assertEqual(1000, self.held_now())
        end.abortConnection()
        self.net.run()
        self.assertEqual((1, 0), (self.door.cancelled, self.held_now()))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_other_protocols(self) -> None:
        """A client that offers HTTP/2 as well gets HTTP/1.1."""
        session = ToolSession("session-1", 7, HOST, self.door, self.held, self.reports.append, spools=self.spools)
        tool, below = make_tool(self.clock, self.authority.pem, HOST, b"h2", b"http/1.1")
        made = self.authority.make_options(HOST)
        self.net.connect(below, Served(lambda transport: serve_tool(session, made, transport, self.clock)))
        self.net.run()
        self.assertEqual(b"http/1.1", tool.transport.negotiatedProtocol)

    def test_untrusted(self) -> None:
        """A tool that trusts another session's authority does not connect, and sends nothing."""
        tool, _ = self.connect(find_authority("other"))
        self.assertIsNotNone(tool.reason)
        self.say(tool, GET)
        self.assertEqual([], self.door.requests)


class DeliveryTests(ConnectionCase):
    """An answer is given when the transport below TLS has sent all of it, to a connection that is still open."""

    def asked(self) -> tuple[Tool, End]:
        """Return a tool whose request waits."""
        tool, end = self.connect()
        self.say(tool, fixed(b"a"))
        return tool, end

    def test_given(self) -> None:
        """It is given once, in the turn after it was sent."""
        self.asked()
        self.answer()
        self.assertEqual(0, self.given)
        self.turn()
        self.assertEqual(1, self.given)
        self.turn(IDLE_SECONDS)
        self.assertEqual(1, self.given)

    def test_blocked(self) -> None:
        """An answer that the tool does not take is not given, however short it is, until the tool takes it."""
        tool, end = self.asked()
        end.pauseProducing()
        self.answer(b"short")
        self.turn(IDLE_SECONDS - 1)
        self.assertEqual((0, b""), (self.given, tool.got))
        end.resumeProducing()
        self.net.run()
        self.turn()
        self.assertEqual(1, self.given)
        self.assertIn(b"short", tool.got)

    def test_slow(self) -> None:
        """A long answer is sent piece by piece, and is given after its last piece; each piece has its time."""
        tool, end = self.asked()
        end.pauseProducing()
        self.answer(b"x" * MEBIBYTE)
        self.assertGreater(self.held_now(), MEBIBYTE)
        for _ in range(8):
            self.turn(IDLE_SECONDS - 1)
            end.resumeProducing()
            for _ in range(4):
                self.net.turn()
            end.pauseProducing()
            self.assertEqual(0, self.given)
        self.assertLess(self.own.peak, 4 * 65536)
        end.resumeProducing()
        self.net.run()
        self.turn()
        self.assertEqual((1, 0), (self.given, self.held_now()))
        self.assertTrue(tool.got.endswith(b"x" * MEBIBYTE))

    def test_stuck(self) -> None:
        """A tool that takes nothing for too long is cut, and its answer was not given."""
        _, end = self.asked()
        end.pauseProducing()
        self.answer(b"x" * MEBIBYTE)
        self.turn(IDLE_SECONDS)
        self.assertIs(ConnectionAborted, self.own.reason)
        self.turn()
        self.assertEqual((0, 0), (self.given, self.held_now()))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_closed(self) -> None:
        """If the tool has gone by the turn after its answer was sent, it was not given."""
        _, end = self.asked()
        self.answer()
        end.abortConnection()
        self.net.run()
        self.turn()
        self.assertEqual(0, self.given)

    def test_closed_before(self) -> None:
        """An answer for which nobody waits any more is not given."""
        for by_tls in (True, False):
            tool, end = self.asked()
            leave = tool.transport.loseConnection if by_tls else end.abortConnection
            leave()
            self.net.run()
            self.assertEqual(1, self.door.cancelled)
            self.door.cancelled = 0
            self.door.waiting.clear()
            self.turn()
            self.assertEqual(0, self.given)

    def test_tls_ends(self) -> None:
        """If the tool ends TLS while its answer is being sent, the rest is dropped, and the answer was not given."""
        tool, end = self.asked()
        end.pauseProducing()
        self.answer(b"x" * MEBIBYTE)
        tool.transport.loseConnection()
        self.net.run()
        end.resumeProducing()
        self.net.run()
        self.turn()
        self.assertEqual((0, 0), (self.given, self.held_now()))
        self.assertIsNotNone(self.own.reason)

    def test_last(self) -> None:
        """The last answer of a connection is given as well, to a tool that ends TLS properly once it has it."""
        tool, _ = self.connect()
        self.say(tool, head("Connection: close", "Content-Length: 0"))
        self.answer(b"abc")
        self.assertIsNotNone(self.own.reason)
        self.turn()
        self.assertEqual(1, self.given)

    def test_refused_answer(self) -> None:
        """An answer that cannot be passed on was not given, and nothing of it is sent."""
        tool, _ = self.asked()
        self.answer(b"secret", 200, ("X-A", "b\r\nSet-Cookie: c"))
        self.turn()
        self.assertEqual(0, self.given)
        self.assertTrue(tool.got.startswith(b"HTTP/1.1 502 "))
        self.assertNotIn(b"ookie", tool.got)
        self.assertNotIn(b"secret", tool.got)


class TimeTests(ConnectionCase):
    """How long anything may take."""

    def lasts(self, seconds: float) -> None:
        """Check that the connection is cut after so many seconds, and not a second before."""
        self.turn(seconds - 1)
        self.assertIsNone(self.own.reason)
        self.turn(1)
        self.assertIs(ConnectionAborted, self.own.reason)
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_handshake(self) -> None:
        """A client that does not finish the handshake is not waited for."""
        session = ToolSession("session-1", 7, HOST, self.door, self.held, self.reports.append, spools=self.spools)
        options = self.authority.make_options(HOST)
        served = Served(lambda transport: serve_tool(session, options, transport, self.clock))
        _, self.own = self.net.connect(Tool(), served)
        self.lasts(REQUEST_SECONDS)

    def test_no_request(self) -> None:
        """Neither is one that sends no request."""
        self.connect()
        self.lasts(REQUEST_SECONDS)

    def test_slow_request(self) -> None:
        """A request has its time from its first byte, whatever comes meanwhile."""
        tool, _ = self.connect()
        self.say(tool, GET)
        self.answer()
        self.turn(IDLE_SECONDS - 1)
        self.say(tool, b"P")
        for each in (b"O", b"S", b"T"):
            self.turn(REQUEST_SECONDS // 4)
            self.say(tool, each)
        self.lasts(REQUEST_SECONDS - 3 * (REQUEST_SECONDS // 4))

    def test_idle(self) -> None:
        """A connection without a request ends some time."""
        tool, _ = self.connect()
        self.say(tool, GET)
        self.answer()
        self.lasts(IDLE_SECONDS)

    def test_waiting(self) -> None:
        """While the door has a request, no time ends."""
        tool, _ = self.connect()
        self.say(tool, GET)
        self.turn(10 * IDLE_SECONDS)
        self.assertIsNone(self.own.reason)

    def test_lingering(self) -> None:
        """A tool that does not close its side after the last answer is cut."""
        tool, end = self.connect()
        self.say(tool, head("Upgrade: x"))
        tool, end = self.connect()
        end.pauseProducing()
        self.say(tool, head("Upgrade: x"))
        self.lasts(LINGER_SECONDS)


class MemoryTests(ConnectionCase):
    """What connections hold."""

    def test_bodies(self) -> None:
        """Requests that are not complete count, and what is too much is refused; then there is room again."""
        self.held.change("session-1", 0, MOST_HELD_OF_SESSION - MEBIBYTE)
        first, end = self.connect()
        self.say(first, fixed(b"x" * MEBIBYTE)[:-1])
        second, _ = self.connect()
        self.say(second, chunked(b"x" * 1000)[:-1])
        self.assertTrue(second.got.startswith(b"HTTP/1.1 403 "), second.got)
        self.assertIn(b"too long together", second.got)
        end.abortConnection()
        self.net.run()
        third, _ = self.connect()
        self.say(third, fixed(b"x" * 1000))
        self.assertEqual(1, len(self.door.requests))

    def test_answers(self) -> None:
        """An answer for which there is no room is refused, and was not given."""
        self.held.change("session-1", 0, MOST_HELD_OF_SESSION - 1000)
        tool, _ = self.connect()
        self.say(tool, GET)
        self.answer(b"x" * 1001)
        self.turn()
        self.assertEqual(0, self.given)
        self.assertTrue(tool.got.startswith(b"HTTP/1.1 403 "))
        self.assertEqual(MOST_HELD_OF_SESSION - 1000, self.held_now())


class HeadTests(SynchronousTestCase):
    """L{write_head}."""

    def head(self, *headers: tuple[str, str], status: int = 200, reason: str = "OK") -> bytes:
        """Return the head of an answer."""
        return write_head(ToolAnswer(status, reason, headers, b"abc"), "GET", keep=True)

    def test_line_ends(self) -> None:
        """No name, value or reason phrase ends a line, begins one or is anything but text."""
        for name, value in (
            ("X-A", "b\r\nX-C: d"),
            ("X-A", "b\n"),
            ("X-A", "b\r"),
            ("X-A", "b\0"),
            ("X-A", "\u0130"),
            ("X-A\r\nX-B", "c"),
            ("X A", "b"),
            ("X-A:", "b"),
            ("", "b"),
            ("X-\xc4", "b"),
        ):
            self.assertRaises(UnfitRequest, self.head, (name, value))
        for reason in ("OK\r\nX-A: b", "OK\n", "\xc4", "O\0K"):
            self.assertRaises(UnfitRequest, self.head, reason=reason)
        for status in (100, 101, 199, 600, 0):
            self.assertRaises(UnfitRequest, self.head, status=status)

    def test_length(self) -> None:
        """The answer to HEAD has the length that the service gave, if it is one; no other answer has it."""
        given = ToolAnswer(200, "OK", (("Content-Length", "5"),))
        self.assertIn(b"\r\nContent-Length: 5\r\n", write_head(given, "HEAD", keep=True))
        self.assertIn(b"\r\nContent-Length: 0\r\n", write_head(given, "GET", keep=True))
        for status, value in ((200, "5, 6"), (200, "-1"), (200, "x"), (204, "5"), (304, "5")):
            odd = ToolAnswer(status, "OK", (("Content-Length", value),))
            self.assertNotIn(b"Content-Length", write_head(odd, "HEAD", keep=True))

    def test_connection(self) -> None:
        """Headers about the service's connection are left out, and the length is that of the content."""
        lines = (
            ("Transfer-Encoding", "chunked"),
            ("content-length", "9"),
            ("Connection", "close"),
            ("Keep-Alive", "timeout=5"),
            ("Upgrade", "h2c"),
            ("Trailer", "x"),
            ("Alt-Svc", 'h3=":443"'),
            ("X-A", "\xe4b"),
        )
        expected = "HTTP/1.1 200 OK\r\nX-A: \xe4b\r\nContent-Length: 3\r\nConnection: keep-alive\r\n\r\n"
        self.assertEqual(expected.encode("latin-1"), self.head(*lines))
