"""Requests of tools are read in one way, in whatever pieces they come; what could be read in two ways is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import pairwise
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.own_tools import _http
from aileron.features.own_tools._http import (
    MOST_BODY_BYTES,
    MOST_DRAINED_BYTES,
    MOST_HEAD_BYTES,
    PUSH_TYPE,
    ParsedRequest,
    RequestParser,
    UnfitRequest,
)
from tests.growth import times_as_long

HOST = "api.example"
ROOM = 2 * MOST_BODY_BYTES


def head(*lines: str, start: str = "POST /items HTTP/1.1", host: str = HOST) -> bytes:
    """Return a head with these further lines."""
    return "\r\n".join((start, f"Host: {host}", *lines, "", "")).encode("latin-1")


def fixed(body: bytes, *lines: str) -> bytes:
    """Return a request with a body of a known length."""
    return head(f"Content-Length: {len(body)}", *lines) + body


def chunked(*pieces: bytes, end: bytes = b"0\r\n\r\n", lines: Sequence[str] = ()) -> bytes:
    """Return a request with a body in chunks."""
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(each), each) for each in pieces)
    return head("Transfer-Encoding: chunked", *lines) + chunks + end


def split(data: bytes, places: Iterable[int]) -> list[bytes]:
    """Return the pieces of data that is split at some places."""
    edges = sorted({0, len(data), *(each % (len(data) + 1) for each in places)})
    return [data[start:end] for start, end in pairwise(edges)]


class HttpCase(SynchronousTestCase):
    """A parser for one host."""

    def parse(self, *pieces: bytes, host: str = HOST) -> ParsedRequest:
        """Return the request that is complete with the last piece, and not before."""
        parser, found = RequestParser(host), None
        for piece in pieces:
            self.assertIsNone(found, "it was complete before")
            found = parser.receive(piece)
        assert found is not None, "it is not complete"
        self.assertFalse(parser.has_begun)
        self.assertEqual(0, parser.held)
        return found

    def refused(self, data: bytes, status: int, host: str = HOST) -> str:
        """Check that bytes are refused, also one by one, and return the reason."""
        with self.assertRaises(UnfitRequest) as whole:
            self.assertIsNone(RequestParser(host).receive(data))
        if len(data) < MOST_HEAD_BYTES // 2:
            with self.assertRaises(UnfitRequest) as piecemeal:
                parser = RequestParser(host)
                for at in range(len(data)):
                    self.assertIsNone(parser.receive(data[at : at + 1]))
            self.assertEqual(whole.exception.status, piecemeal.exception.status)
        self.assertEqual(status, whole.exception.status, whole.exception.why)
        why: str = whole.exception.why
        why.encode("ascii")
        return why


class RequestTests(HttpCase):
    """What is passed on."""

    def test_exact(self) -> None:
        """Method, target, headers and body are as they were sent; the framing and the connection's are left out."""
        lines = ("content-type:\ttext/plain ", "X-A: 1", "x-a: 2", "Connection: keep-alive, TE", "TE: trailers")
        found = self.parse(fixed(b"\0\xff", *lines, "Keep-Alive: timeout=5", "Accept: */*"))
        expected = (("content-type", "text/plain"), ("X-A", "1"), ("x-a", "2"), ("Accept", "*/*"))
        self.assertEqual(ParsedRequest("POST", "/items", expected, b"\0\xff", True), found)
        target = "/a%2Fb/ü".encode().decode("latin-1")
        self.refused(head(start=f"GET {target} HTTP/1.1"), 400)
        plain = "/a%2Fb/%C3%BC;v=1:x@y!$&'()*+,=~?a=b/c?d&e=%20[x]"
        self.assertEqual(plain, self.parse(head(start=f"GET {plain} HTTP/1.1")).target)

    def test_bodies(self) -> None:
        """A body comes by its length or in chunks; without either there is none."""
        self.assertEqual(b"", self.parse(head()).body)
        self.assertEqual(b"abc", self.parse(fixed(b"abc")).body)
        self.assertEqual(b"abcd", self.parse(chunked(b"abc", b"d")).body)
        self.assertEqual(b"", self.parse(chunked()).body)
        self.assertEqual(b"x", self.parse(head("Transfer-Encoding: CHUNKED") + b"0001\r\nx\r\n000\r\n\r\n").body)

    def test_keep(self) -> None:
        """The connection is used again unless the tool says otherwise."""
        for line, keep in (("X: y", True), ("Connection: close", False), ("connection: Keep-Alive, CLOSE", False)):
            self.assertEqual(keep, self.parse(head(line)).keep)

    def test_one_after_the_other(self) -> None:
        """The parser reads the next request after a complete one, of either kind."""
        parser = RequestParser(HOST)
        for each in (fixed(b"a"), chunked(b"b"), head(), fixed(b"c"), chunked()):
            self.assertFalse(parser.has_begun)
            self.assertIsNotNone(parser.receive(each))

    def test_ahead(self) -> None:
        """Bytes after a request are kept apart from it."""
        for each in (fixed(b"a"), chunked(b"b"), head()):
            parser = RequestParser(HOST)
            self.assertIsNotNone(parser.receive(each + b"GET"))
            self.assertEqual(b"GET", bytes(parser.rest))

    @given(
        st.lists(st.binary(max_size=40), max_size=6),
        st.booleans(),
        st.lists(st.integers(0, 500), max_size=12),
    )
    def test_every_split(self, pieces: Sequence[bytes], in_chunks: bool, places: Sequence[int]) -> None:
        """However the bytes are split, the same request is read, once it is complete."""
        body = b"".join(pieces)
        data = chunked(*filter(None, pieces)) if in_chunks else fixed(body, "X-A: b")
        self.assertEqual(self.parse(data), self.parse(*split(data, places)))
        self.assertEqual(body, self.parse(data).body)

    @given(st.binary(max_size=60), st.sampled_from((b"", head(), fixed(b"abc"), chunked(b"abc"))), st.data())
    def test_any_bytes(self, junk: bytes, before: bytes, data: st.DataObject) -> None:
        """Any bytes are a request or an error, and the same one however they are split."""
        sent = before[: data.draw(st.integers(0, len(before)))] + junk
        places = data.draw(st.lists(st.integers(0, 500), max_size=8))
        self.assertEqual(self.end_of([sent]), self.end_of(split(sent, places)))

    def end_of(self, pieces: Sequence[bytes]) -> object:
        """Return what comes of bytes: the first request, the status of an error, or nothing."""
        parser = RequestParser(HOST)
        try:
            return next((found for piece in pieces if (found := parser.receive(piece)) is not None), None)
        except UnfitRequest as refused:
            return refused.status


class HeadTests(HttpCase):
    """Heads that are refused."""

    def test_ambiguous(self) -> None:
        """What two servers could read differently is refused."""
        for data in (
            head("Content-Length: 3", "Content-Length: 3") + b"abc",
            head("Content-Length: 3, 3") + b"abc",
            head("Content-Length: +3") + b"abc",
            head("Content-Length: 0x3") + b"abc",
            head("Content-Length: 3", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
            head("Transfer-Encoding: chunked", "Transfer-Encoding: chunked") + b"0\r\n\r\n",
            head("Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n",
            head("Transfer-Encoding: identity") + b"0\r\n\r\n",
            head("Transfer-Encoding : chunked") + b"0\r\n\r\n",
            head("Transfer_Encoding: chunked") + b"0\r\n\r\n",
            head("Content_Length: 3") + b"abc",
            head("Transfer-Encoding: \x0bchunked") + b"0\r\n\r\n",
            head("X-A: 1", " folded"),
            head("X-A: 1", "\tfolded"),
            head(": nameless"),
            head("no colon"),
            head("X-A: 1\0"),
            head("X-A: 1\rX-B: 2"),
            head("X-A: 1\nX-B: 2"),
            head("Host: api.example"),
            head().replace(b"\r\n", b"\n"),
            head(start="POST  /items HTTP/1.1"),
            head(start=" POST /items HTTP/1.1"),
            head(start="POST /items  HTTP/1.1"),
            b"\r\n" + head(),
        ):
            self.refused(data, 400)

    def test_bare_line_ends(self) -> None:
        """A head whose lines end in a bare line feed is refused before it is complete."""
        with self.assertRaises(UnfitRequest):
            RequestParser(HOST).receive(b"POST /items HTTP/1.1\nHost: api.example\n\n")

    def test_other_host(self) -> None:
        """The Host header must name the host of the connection, which TLS named too."""
        for host in ("other.example", "", "api.example.", "api.example:80", "api.example:443:443", "x@api.example"):
            self.refused(head(host=host), 421)
        self.refused(b"POST /items HTTP/1.1\r\n\r\n", 421)
        for host in ("api.example", "API.example", "api.example:443"):
            self.parse(head(host=host))
        self.parse(head(host="api.example:8443"), host="api.example:8443")
        self.refused(head(), 421, host="api.example:8443")

    def test_versions(self) -> None:
        """Other versions of HTTP are refused with their own status: 1.0, and 2 without an upgrade."""
        self.refused(head(start="GET / HTTP/1.0"), 505)
        self.refused(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505)
        for start in ("GET / HTTP/1.2", "GET / HTTP/3", "GET / HTTP/0.9"):
            self.refused(head(start=start), 505)
        self.refused(head(start="GET /"), 400)
        self.refused(head(start="GET / http/1.1"), 400)

    def test_methods(self) -> None:
        """Methods that are no words in capitals, and those that concern proxies, are refused."""
        for method in ("get", "Get", "CONNECT", "TRACE", "TRACK", "PO-ST", "A" * 17):
            self.refused(head(start=f"{method} / HTTP/1.1"), 405)

    def test_body_of_get(self) -> None:
        """A GET or HEAD with a body is refused, since servers disagree about it."""
        for method in ("GET", "HEAD"):
            self.refused(head("Content-Length: 1", start=f"{method} / HTTP/1.1") + b"x", 400)
            self.refused(head("Transfer-Encoding: chunked", start=f"{method} / HTTP/1.1") + b"0\r\n\r\n", 400)
            self.parse(head("Content-Length: 0", start=f"{method} / HTTP/1.1"))

    def test_upgrade(self) -> None:
        """No header asks for another protocol, whatever Connection names."""
        for line in (
            "Upgrade: websocket",
            "upgrade: h2c",
            "HTTP2-Settings: AAMAAABkAAQAAP__",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
            "Sec-WebSocket-Version: 13",
            "Sec_WebSocket_Key: x",
        ):
            self.assertIn("change of protocol", self.refused(head(line), 400))

    def test_connection(self) -> None:
        """Connection names no further header, in any of its lines: the service would get the request without it."""
        for lines in (
            ("Connection: upgrade",),
            ("Connection: close", "Connection: Upgrade"),
            ("Connection: keep-alive, x-a", "X-A: 1"),
            ("Connection: authorization",),
            ("Connection: close", "connection: content-length"),
            ("Connection: \x0bclose",),
        ):
            self.refused(head(*lines), 400)

    def test_override(self) -> None:
        """No header has the service process another method, path or host."""
        for name in (
            "X-HTTP-Method-Override",
            "x-http-method",
            "X_Method_Override",
            "X-Original-URL",
            "X-Forwarded-Host",
        ):
            self.refused(head(f"{name}: DELETE"), 400)

    def test_misspelt(self) -> None:
        """Headers of the connection in a spelling that some servers read as theirs are refused."""
        for line in ("Keep_Alive: 1", "Proxy_Authorization: x", "Proxy_Connection: x"):
            self.refused(head(line), 400)

    def test_expectation(self) -> None:
        """A tool that waits for C{100 Continue} is told to go on once; another expectation is refused."""
        for line in ("Content-Length: 3", "Transfer-Encoding: chunked"):
            parser = RequestParser(HOST)
            parser.receive(head(line, "Expect: 100-Continue"))
            self.assertEqual((True, False), (parser.take_expectation(), parser.take_expectation()))
        parser = RequestParser(HOST)
        parser.receive(head("Content-Length: 0", "Expect: 100-continue"))
        self.assertFalse(parser.take_expectation(), "there is nothing to wait for")
        self.refused(head("Expect: 200-ok", "Content-Length: 1"), 417)
        self.refused(head("Expect: 100-continue", f"Content-Length: {MOST_BODY_BYTES + 1}"), 413)

    def test_long(self) -> None:
        """A head may have so many bytes, whether it ends or not."""
        room = MOST_HEAD_BYTES - len(head("X-A: "))
        self.parse(head("X-A: " + "a" * room))
        self.refused(head("X-A: " + "a" * (room + 1)), 431)
        self.refused(b"POST /items HTTP/1.1\r\nX-A: " + b"a" * MOST_HEAD_BYTES, 431)
        self.refused(head(*["X-A: 1"] * 200), 400)


class TargetTests(HttpCase):
    """Targets that are refused."""

    def target(self, target: str) -> None:
        """Check that a target is refused."""
        self.refused(head(start=f"GET {target} HTTP/1.1"), 400)

    def test_forms(self) -> None:
        """A target is a path: not a whole URL, an authority, an asterisk or a fragment."""
        for target in ("http://api.example/x", "https://other.example/", "api.example:443", "*", "//other.example/x"):
            self.target(target)
        for target in ("/a#b", "/a\\b", "/a%", "/a%2", "/a%zz", "x", "/a\x80"):
            self.target(target)

    def test_dots(self) -> None:
        """No segment is a dot segment, however it is encoded, and however often a server decodes it."""
        dots = (
            "..",
            ".",
            "%2e%2e",
            "%2E.",
            ".%2e",
            "%252e%252e",
            "%25252e.",
            "%c0%ae%c0%ae",
            "..;",
            "..;x=y",
            "%2e%2e%3b",
        )
        for each in dots:
            for target in (f"/a/{each}/b", f"/a/{each}", f"/{each}?x", f"/a%2f{each}%2fb", f"/a%5c{each}%5cb"):
                self.target(target)
        for target in ("/a/...", "/a/.b", "/a/..b", "/a?x=/../b"):
            self.parse(head(start=f"GET {target} HTTP/1.1"))

    def test_control(self) -> None:
        """No path has encoded control characters, or is encoded more often than is looked at."""
        for target in ("/a%00", "/a%0d%0ab", "/a%250a", "/a%7f", "/a%ff", "/%2525252525252e"):
            self.target(target)

    def test_method(self) -> None:
        """No parameter has the service use another method."""
        for query in (
            "_method=DELETE",
            "a=b&_method=x",
            "x-http-method=PUT",
            "method=delete",
            "a;_method=b",
            "%5fmethod=x",
        ):
            self.target(f"/a?{query}")


class BodyTests(HttpCase):
    """Bodies that are refused."""

    def test_extension(self) -> None:
        """Chunks have no extensions, no other spelling of their length, and no trailers."""
        for body in (
            b"1;a=b\r\nx\r\n0\r\n\r\n",
            b"1 \r\nx\r\n0\r\n\r\n",
            b" 1\r\nx\r\n0\r\n\r\n",
            b"0x1\r\nx\r\n0\r\n\r\n",
            b"1\nx\n0\n\n",
            b"1\r\nx0\r\n\r\n",
            b"1\r\nx\n0\r\n\r\n",
            b"1\r\nxy\r\n0\r\n\r\n",
            b"000000001\r\nx\r\n0\r\n\r\n",
            b"g\r\n",
            b"\r\n",
            b"-1\r\nx\r\n",
            b"1\r\nx\r\n0\r\nX-Trailer: 1\r\n\r\n",
            b"0\r\nContent-Length: 5\r\n\r\n",
        ):
            self.refused(head("Transfer-Encoding: chunked") + body, 400)

    def test_method(self) -> None:
        """No field of a form has the service use another method; a form with very many fields is not searched."""
        typed = "Content-Type: application/x-www-form-urlencoded; charset=utf-8"
        self.refused(fixed(b"a=b&_method=DELETE", typed), 400)
        self.parse(fixed(b"a=b&c=d", typed))
        self.parse(fixed(b"_method=DELETE", "Content-Type: text/plain"))
        self.parse(fixed(b"a&" * 999 + b"b", typed))
        self.refused(fixed(b"a&" * 1000, typed), 400)
        self.refused(fixed(b"a;" * 1000, typed), 400)

    def test_untyped(self) -> None:
        """Servers may read a POST without a type as a form, and a type until a comma."""
        self.refused(fixed(b"a=b&_method=DELETE"), 400)
        self.refused(fixed(b"a=b&_method=DELETE", "Content-Type: application/x-www-form-urlencoded, x"), 400)

    def test_long(self) -> None:
        """A body may have a mebibyte. A longer one is read for a while, so that the tool reads why it is refused."""
        most = b"x" * MOST_BODY_BYTES
        self.assertEqual(most, self.parse(fixed(most)).body)
        self.assertEqual(most, self.parse(chunked(most[1:], b"x")).body)
        for data in (fixed(most + b"x"), chunked(most, b"x")):
            parser = RequestParser(HOST)
            self.assertIsNone(parser.receive(data[:-1]))
            self.assertLessEqual(parser.held, MOST_BODY_BYTES)
            self.assertRaises(UnfitRequest, parser.receive, data[-1:])
            self.refused(data, 413)
        self.refused(head(f"Content-Length: {MOST_DRAINED_BYTES + 1}"), 413)

    def test_push(self) -> None:
        """At a git host a body may be longer; what is longer than that is refused as elsewhere."""
        most = b"x" * (3 * MOST_BODY_BYTES)
        for data in (fixed(most), chunked(most[1:], b"x")):
            found = RequestParser(HOST, len(most)).receive(data)
            assert found is not None
            self.assertEqual(most, found.body)
            with self.assertRaises(UnfitRequest) as refused:
                RequestParser(HOST, len(most) - 1).receive(data)
            self.assertEqual(413, refused.exception.status)

    def test_endless(self) -> None:
        """A body in chunks is read up to a limit, which counts the lines of the chunks too."""
        self.patch(_http, "MOST_DRAINED_BYTES", ROOM)
        for size in (0x10000, 1):
            parser, chunk = RequestParser(HOST), b"%x\r\n%b\r\n" % (size, b"x" * size)
            parser.receive(head("Transfer-Encoding: chunked"))
            piece, sent = chunk * max(1, 0x20000 // len(chunk)), 0
            with self.assertRaises(UnfitRequest) as refused:
                while sent < 2 * ROOM:
                    parser.receive(piece)
                    sent += len(piece)
            self.assertEqual(413, refused.exception.status)
            self.assertLessEqual(sent, ROOM)


class Sink:
    """Takes a long body."""

    held = 7

    def __init__(self) -> None:
        self.body = b""
        self.discards = 0

    def write(self, piece: bytes) -> None:
        """Take a piece."""
        self.body += piece

    def discard(self) -> None:
        """Note that the body was discarded."""
        self.discards += 1


class LongTests(HttpCase):
    """Bodies that are not kept in memory."""

    def setUp(self) -> None:
        self.patch(_http, "MOST_BODY_BYTES", 100)
        self.patch(_http, "MOST_LONG_BYTES", 1000)
        self.patch(_http, "MOST_DRAINED_BYTES", 500)
        self.sinks: list[Sink] = []
        self.kinds: list[str] = []

    def open(self, content_type: str) -> Any:
        """Return a new sink."""
        self.kinds.append(content_type)
        self.sinks.append(Sink())
        return self.sinks[-1]

    def parser(self) -> RequestParser:
        """Return a parser that accepts long bodies, and pushes of 2000 bytes."""
        return RequestParser(HOST, 2000, self.open)

    def test_long(self) -> None:
        """A long body is passed on piece by piece; a short one, and the next request, are read as usual."""
        for write in (fixed, lambda body, line: chunked(body[:60], *([body[60:]] if body[60:] else []), lines=[line])):
            for step in (1, 70, 5000):
                parser, found = self.parser(), None
                for body in (b"y" * 900, b"short", b"z" * 101, b"x" * 100):
                    data = write(body, "Content-Type: text/plain")
                    for at in range(0, len(data), step):
                        found = parser.receive(data[at : at + step])
                        self.assertLessEqual(parser.held, max(step, 100) + 120)
                    assert found is not None
                    sink: Any = found.sink
                    self.assertEqual(body, found.body if sink is None else sink.body)
                    self.assertEqual(len(body) > 100, sink is not None)
        self.assertEqual({"text/plain"}, set(self.kinds))
        self.assertEqual(0, sum(each.discards for each in self.sinks))

    def test_too_long(self) -> None:
        """What is longer than a long body may be is refused once it was read, and discarded."""
        for data in (
            fixed(b"y" * 1001, "Content-Type: a/b"),
            chunked(b"y" * 900, b"y" * 101, lines=["Content-Type: a/b"]),
        ):
            with self.assertRaises(UnfitRequest) as refused:
                self.parser().receive(data)
            self.assertEqual(413, refused.exception.status)
            self.assertIn("1000 bytes", refused.exception.why)
        self.assertEqual([1], [each.discards for each in self.sinks], "one of a known length is not begun")
        for size, lines in ((1001, ("Expect: 100-continue",)), (1401, ())):
            with self.assertRaises(UnfitRequest):
                self.parser().receive(head(f"Content-Length: {size}", "Content-Type: a/b", *lines))

    def test_expectation(self) -> None:
        """A tool that asks before it sends a long body is told to send it."""
        parser = self.parser()
        parser.receive(head("Content-Length: 900", "Content-Type: a/b", "Expect: 100-continue"))
        self.assertTrue(parser.take_expectation())

    def test_form(self) -> None:
        """A form, and a POST without a type, are not accepted as a long body; another method without a type is."""
        for lines in (
            ["Content-Type: application/x-www-form-urlencoded"],
            ["Content-Type: Application/X-WWW-Form-Urlencoded, a/b"],
            [],
        ):
            with self.assertRaises(UnfitRequest) as refused:
                self.parser().receive(fixed(b"y" * 101, *lines))
            self.assertEqual(413, refused.exception.status)
        self.assertEqual([], self.sinks)
        found = self.parser().receive(head("Content-Length: 101", start="PUT /a HTTP/1.1") + b"y" * 101)
        assert found is not None
        self.assertIsNotNone(found.sink)

    def test_push(self) -> None:
        """A push of git is kept in memory, since it is read as a whole."""
        found = self.parser().receive(fixed(b"y" * 2000, f"Content-Type: {PUSH_TYPE}"))
        assert found is not None
        self.assertEqual((2000, None), (len(found.body), found.sink))


class GrowthTests(HttpCase):
    """Requests in very small pieces."""

    def grows(self, write: Callable[[int], bytes], small: int) -> None:
        """Check that a request of sixteen times the length does not take much longer for each byte."""

        def read(data: bytes) -> None:
            parser = RequestParser(HOST)
            for at in range(len(data)):
                parser.receive(data[at : at + 1])

        self.assertLess(times_as_long(lambda size: partial(read, write(size)), small, 16 * small), 3)

    def test_head(self) -> None:
        """A head that comes byte by byte takes as long for each byte, however long it is."""
        self.grows(lambda size: head("X-A: " + "a" * size), 3500)
        self.grows(lambda size: head("a" * size + ": x"), 3500)

    def test_chunks(self) -> None:
        """So does a body in chunks of one byte, and one of a known length."""
        self.grows(lambda size: chunked(*[b"x"] * size), 500)
        self.grows(lambda size: fixed(b"x" * size), 3000)

    def test_chunks_at_once(self) -> None:
        """Very many chunks of one byte are read as a whole, in pieces of a transport's size."""
        size = MOST_BODY_BYTES // 8
        data = chunked(*[b"x"] * size)
        self.assertEqual(size, len(self.parse(*split(data, range(0, len(data), 1 << 16))).body))
