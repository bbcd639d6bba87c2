"""Where requests end, whatever pieces they come in; held against h11, which reads the same bytes."""

from __future__ import annotations

from itertools import pairwise

import h11
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.http1 import CHUNKED, Body, Chunked, Fixed, Malformed, parse_request, unchunked

NAMES = st.sampled_from(["Host", "A", "X-Y", "Content-Type", "Cookie", "Origin", "Authorization"])
VALUES = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=1, max_size=20)
CHUNKS = st.lists(st.binary(min_size=1, max_size=40), max_size=6)
CUTS = st.lists(st.integers(0, 400), max_size=8)


def pieces(data: bytes, cuts: list[int]) -> list[bytes]:
    """The data, cut."""
    edges = sorted({0, len(data), *(cut for cut in cuts if cut < len(data))})
    return [data[start:end] for start, end in pairwise(edges)]


def end_of(body: Body, parts: list[bytes]) -> int:
    """Where the body ends, counted from its beginning; -1: not yet."""
    before = 0
    for part in parts:
        end = body.take(part)
        if end >= 0:
            return before + end
        before += len(part)
    return -1


def chunked(chunks: list[bytes], trailer: bytes = b"") -> bytes:
    """The chunks, framed."""
    return b"".join(b"%x;e=1\r\n%s\r\n" % (len(chunk), chunk) for chunk in chunks) + b"0\r\n" + trailer + b"\r\n"


class BodyTests(SynchronousTestCase):
    """Ends of bodies."""

    @settings(deadline=None, max_examples=150)
    @given(CHUNKS, st.sampled_from([b"", b"T: v\r\n", b"T: v\r\nU:\r\n"]), st.binary(max_size=50), CUTS)
    def test_chunked(self, chunks: list[bytes], trailer: bytes, after: bytes, cuts: list[int]) -> None:
        """A chunked body ends where its framing says, however it is cut and whatever follows, and has that content."""
        framed = chunked(chunks, trailer)
        self.assertEqual(unchunked(framed), b"".join(chunks))
        self.assertEqual(end_of(Chunked(), pieces(framed + after, cuts)), len(framed))
        self.assertEqual(end_of(Chunked(), pieces(framed[:-1], cuts)), -1)

    def test_alone(self) -> None:
        """Chunks that come each in a piece of its own are followed like any, however their sizes are written."""
        for size in (*range(1, 300), *range(4080, 4110), 65519, 65535, 65536):
            for line in (b"%x", b"%X", b"%04x"):
                alone, last = line % size + b"\r\n" + bytes(size) + b"\r\n", b"0\r\n\r\n"
                end = 2 * len(alone) + len(last)
                self.assertEqual(end_of(Chunked(), [alone, alone, last]), end)
                self.assertEqual(end_of(Chunked(), [alone[:-1], b"\n" + alone + last]), end)

    def test_not_alone(self) -> None:
        """A piece that is longer or shorter than the one chunk that it looks like is read by what it says."""
        for size in (5, 15, 16, 255, 256, 4095, 4096):
            line = b"%x\r\n" % size
            for wrong in (
                bytes(size + 1) + b"\r\n",
                bytes(size - 1) + b"\r\n",
                bytes(size) + b"\r\r",
                bytes(size) + b"\n\n",
            ):
                self.assertRaises(Malformed, Chunked().take, line + wrong)
            shorter = line + bytes(size - 2) + b"\r\n"  # which belongs to the content
            self.assertEqual(end_of(Chunked(), [shorter, b"\r\n0\r\n\r\n"]), len(shorter) + 7)

    @settings(deadline=None, max_examples=50)
    @given(st.integers(1, 300), st.binary(max_size=400), CUTS)
    def test_fixed(self, length: int, data: bytes, cuts: list[int]) -> None:
        """A body of known length ends there."""
        self.assertEqual(end_of(Fixed(length), pieces(data, cuts)), length if len(data) >= length else -1)

    @settings(deadline=None, max_examples=300)
    @given(CHUNKS, st.integers(0, 200), st.binary(min_size=1, max_size=3), CUTS)
    def test_mutated(self, chunks: list[bytes], where: int, wrong: bytes, cuts: list[int]) -> None:
        """A damaged body that we accept ends where h11 lets it end, with the content that h11 reads."""
        framed = bytearray(chunked(chunks))
        framed[where % len(framed) : where % len(framed) + 1] = wrong
        try:
            ours = end_of(Chunked(), pieces(bytes(framed), cuts))
        except Malformed:
            return
        if ours >= 0:
            self.assertEqual((ours, unchunked(bytes(framed[:ours]))), _h11_body(bytes(framed)))


class HeadTests(SynchronousTestCase):
    """Heads."""

    @settings(deadline=None, max_examples=150)
    @given(st.lists(st.tuples(NAMES, VALUES), unique_by=lambda pair: pair[0], max_size=6), st.integers(0, 10**9))
    def test_fields(self, fields: list[tuple[str, str]], length: int) -> None:
        """What is read of a head is what h11 reads of it."""
        lines = "".join(f"{name}: {value} \r\n" for name, value in fields if name != "Host")
        raw = f"PUT /a?b HTTP/1.1\r\nHost: h:1\r\n{lines}Content-Length: {length}\r\n\r\n".encode()
        head = parse_request(raw)
        event = _h11_head(raw)
        self.assertEqual((head.method, head.target, head.minor), (event.method, event.target, 1))
        theirs = {name: value for name, value in event.headers if name in head.fields}
        self.assertEqual(dict(head.fields), theirs)
        self.assertEqual((head.length, head.path), (length, b"/a"))

    def test_chunked(self) -> None:
        """A chunked body is one in any case of the word."""
        self.assertEqual(parse_request(b"GET / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n").length, CHUNKED)


def _h11_head(raw: bytes) -> h11.Request:
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(raw)
    event = connection.next_event()
    assert isinstance(event, h11.Request)
    return event


def _h11_body(framed: bytes) -> tuple[int, bytes]:
    """Where h11 ends a chunked body, and what it holds; -1: not yet, -2: it refuses it."""
    connection = h11.Connection(h11.SERVER)
    connection.receive_data(b"POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n" + framed)
    content = b""
    try:
        while not isinstance(event := connection.next_event(), h11.EndOfMessage):
            if event is h11.NEED_DATA:
                return -1, content
            content += bytes(event.data) if isinstance(event, h11.Data) else b""
    except h11.RemoteProtocolError:
        return -2, content
    return len(framed) - len(connection.trailing_data[0]), content
