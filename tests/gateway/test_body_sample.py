"""What is kept of an answer is bounded, and enough to read its tokens whatever way it came."""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Callable, Iterable
from hashlib import sha256

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.gateway._body_sample import MOST_PACKED_BYTES, PLAIN_BYTES, Allowance, BodySample
from aileron.values import Usage
from tests.gateway import answers
from tests.gateway.test_usage import CHAT, LONG, MANY, RESPONSES

MESSAGES = Usage(input=3210, output=89, cached=3000)
CHUNKED = "Transfer-Encoding: chunked"


def copied(head: bytes, pieces: Iterable[bytes], allowance: Allowance | None = None) -> BodySample:
    """A copy of what came in these pieces, made as the meter makes it."""
    copy, received, full_at = BodySample(head, allowance or Allowance(1)), 0, PLAIN_BYTES
    for piece in pieces:
        received += len(piece)
        if received <= full_at:
            copy.room += piece
        else:
            full_at = received + copy.more(piece)
    return copy


def cut(body: bytes, size: int) -> list[bytes]:
    """A body in pieces of C{size} bytes."""
    return [body[start : start + size] for start in range(0, len(body), size)]


def raw_deflate(body: bytes) -> bytes:
    """What some call deflate."""
    packer = zlib.compressobj(wbits=-zlib.MAX_WBITS)
    return packer.compress(body) + packer.flush()


CODINGS: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "X-GZIP": gzip.compress,
    "deflate": zlib.compress,
    "Deflate": raw_deflate,
}


class PlainTests(SynchronousTestCase):
    """Answers that are not compressed."""

    def test_pieces(self) -> None:
        """However long an answer is and however it comes, in chunks too, its tokens are read."""
        for body, streamed, told in (
            (answers.chat(), False, CHAT),
            (answers.chat(LONG), False, CHAT),
            (answers.responses_stream(MANY), True, RESPONSES),
            (answers.messages_stream(), True, MESSAGES),
            (answers.messages_stream(MANY), True, MESSAGES),
            (answers.messages_stream(MANY, b"\r\n"), True, MESSAGES),
        ):
            for size in (7, 1000, 9001, 65_536, 1 << 24):
                plain = copied(answers.head(streamed=streamed), cut(body, size))
                self.assertEqual(plain.usage(), told)
                for chunk in (11, 150, 40_000):
                    pieces = cut(answers.chunked(body, chunk), size)
                    self.assertEqual(copied(answers.head(CHUNKED, streamed=streamed), pieces).usage(), told)

    @settings(deadline=None, max_examples=100)
    @given(st.lists(st.integers(0, 30_000), max_size=12))
    @example([PLAIN_BYTES, 1 << 20])
    @example([1 << 20, 1 << 20, 7])
    def test_first_and_last(self, sizes: list[int]) -> None:
        """Whatever the pieces, no more is kept than the first and last bytes, and these are the right ones."""
        text = bytes(range(256)) * (sum(sizes) // 256 + 1)
        position, pieces = 0, []
        for size in sizes:
            pieces.append(text[position : position + size])
            position += size
        copy = copied(answers.head(), pieces)
        kept = (copy._first or b"") + bytes(copy.room)
        whole = text[:position]
        self.assertLessEqual(len(kept), PLAIN_BYTES + len(copy._first or b""))
        self.assertTrue(whole.endswith(bytes(copy.room)))
        self.assertTrue(whole.startswith(copy._first or bytes(copy.room)))
        self.assertGreaterEqual(len(copy.room), min(len(whole) - len(copy._first or b""), 16 * 1024))


class PackedTests(SynchronousTestCase):
    """Compressed answers."""

    def test_codings(self) -> None:
        """gzip and both kinds of deflate are read, in chunks too."""
        for name, pack in CODINGS.items():
            for body, streamed, told in (
                (answers.chat(), False, CHAT),
                (answers.messages_stream(MANY), True, MESSAGES),
            ):
                packed = pack(body)
                head = answers.head(f"content-encoding: {name}", streamed=streamed)
                self.assertEqual(copied(head, cut(packed, 100)).usage(), told, name)
                head = answers.head(CHUNKED, f"Content-Encoding:{name} ", streamed=streamed)
                self.assertEqual(copied(head, cut(answers.chunked(packed, 37), 1000)).usage(), told, name)

    def test_long(self) -> None:
        """A compressed answer is kept beyond the bounds of a plain one."""
        noise = [sha256(b"%d" % number).hexdigest() for number in range(3000)]
        packed = gzip.compress(answers.chat_stream(noise))
        self.assertGreater(len(packed), PLAIN_BYTES)
        head = answers.head("Content-Encoding: gzip", streamed=True)
        self.assertEqual(copied(head, cut(packed, 1000)).usage(), CHAT)

    def test_too_long(self) -> None:
        """One that is longer still is let go, whether it comes in one piece or many, and tells nothing."""
        head = answers.head("Content-Encoding: gzip")
        packed = gzip.compress(answers.chat()) + bytes(MOST_PACKED_BYTES)
        for size in (1000, 1 << 24):
            allowance = Allowance(1)
            copy = copied(head, cut(packed, size), allowance)
            self.assertEqual((copy.usage(), len(copy.room)), (None, 0))
            self.assertTrue(allowance.take())

    def test_allowance(self) -> None:
        """Of long ones there are only so many at once; one that is let go makes way."""
        head = answers.head("Content-Encoding: gzip")
        packed = cut(gzip.compress(answers.chat()) + bytes(PLAIN_BYTES), 5000)
        allowance = Allowance(1)
        first = copied(head, packed, allowance)
        self.assertIsNone(copied(head, packed, allowance).usage())
        self.assertEqual(first.usage(), CHAT)
        first.let_go()
        first.let_go()
        self.assertEqual(copied(head, packed, allowance).usage(), CHAT)
        self.assertFalse(allowance.take())

    def test_bomb(self) -> None:
        """No more than a mebibyte is unpacked."""
        packed = gzip.compress(answers.chat("x" * (64 << 20)), 9)
        self.assertLess(len(packed), MOST_PACKED_BYTES)
        self.assertIsNone(copied(answers.head("Content-Encoding: gzip"), [packed]).usage())

    def test_unread(self) -> None:
        """Other codings, and more than one, are not read."""
        for name in ("br", "zstd", "gzip, br", "identity, gzip"):
            body = answers.chat() + b" " * PLAIN_BYTES
            head = answers.head(f"Content-Encoding: {name}")
            for copy in (copied(head, [body]), copied(head, [answers.chat()]), copied(head, cut(body, 999))):
                self.assertIsNone(copy.usage())

    @settings(deadline=None, max_examples=150)
    @given(st.binary(max_size=200), st.sampled_from(["gzip", "deflate"]), st.booleans(), st.integers(0, 400))
    def test_broken(self, noise: bytes, name: str, chunked: bool, at: int) -> None:
        """A broken one tells something or nothing, and raises nothing."""
        packed = CODINGS[name](answers.messages_stream())
        body = answers.chunked(packed, 50) if chunked else packed
        head = answers.head(f"Content-Encoding: {name}", *([CHUNKED] if chunked else []), streamed=True)
        for broken in (body[:at] + noise, body[:at] + noise + body[at:], noise):
            self.assertIsInstance(copied(head, [broken]).usage(), (Usage, type(None)))


class SecretTests(SynchronousTestCase):
    """What was said does not stay."""

    def test_let_go(self) -> None:
        """Nothing is left of a copy that is let go, and none shows what it holds."""
        copy = copied(answers.head(), cut(answers.chat(LONG), 1000))
        self.assertNotIn("word", repr(copy))
        copy.let_go()
        self.assertEqual((copy._first, copy.room), (None, bytearray()))
