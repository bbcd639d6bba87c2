"""Where requests end, whatever pieces they come in; held against h11, which reads the same bytes."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.http1 import Body, Chunked, ChunkedContent, Fixed, Malformed, unchunked
from tests.extent import examples

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

    @settings(deadline=None, max_examples=examples(150))
    @given(CHUNKS, st.sampled_from([b"", b"T: v\r\n", b"T: v\r\nU:\r\n"]), st.binary(max_size=50), CUTS)
    def test_chunked(self, chunks: list[bytes], trailer: bytes, after: bytes, cuts: list[int]) -> None:
        """A chunked body ends where its framing says, however it is cut and whatever follows, and has that content."""
        framed = chunked(chunks, trailer)
        self.assertEqual(unchunked(framed), b"".join(chunks))
        self.assertEqual(end_of(Chunked(), pieces(framed + after, cuts)), len(framed))
        self.assertEqual(end_of(Chunked(), pieces(framed[:-1], cuts)), -1)
        reading = ChunkedContent()
        self.assertEqual(b"".join(map(reading.take, pieces(framed, cuts))), b"".join(chunks))

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
