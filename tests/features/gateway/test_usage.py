"""Tokens are read where a provider tells them, and of an answer no more is kept than that needs, however it comes."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Sequence
from fractions import Fraction
from functools import partial
from hashlib import sha256

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.gateway._body_sample import MOST_PACKED_BYTES, PLAIN_BYTES, Allowance, BodySample
from aileron.features.gateway._usage import FIRST_BYTES, LAST_BYTES, TextExcerpt, usage_at_once, usage_streamed
from aileron.model.usage import Usage
from tests.extent import examples
from tests.features.gateway import answers
from tests.growth import seconds

CHAT = Usage(input=120, output=34, cached=100)
RESPONSES = Usage(input=50, output=7, cached=40)
MESSAGE = Usage(input=3210, output=55, cached=3000)
MESSAGES = Usage(input=3210, output=89, cached=3000)
CHUNKED = "Transfer-Encoding: chunked"
LONG = "word " * 20_000
MANY = ["word " * 20] * 1_000
TOLD: Sequence[tuple[bytes, bool, Usage]] = (
    *((answers.chat(content), False, CHAT) for content in ("Hello.", LONG)),
    *((answers.responses(content), False, RESPONSES) for content in ("Hello.", LONG)),
    *((answers.messages(content), False, MESSAGE) for content in ("Hello.", LONG)),
    *((answers.chat_stream(content), True, CHAT) for content in (["Hel", "lo."], MANY)),
    *((answers.responses_stream(content), True, RESPONSES) for content in (["Hel", "lo."], MANY)),
    *((answers.messages_stream(content), True, MESSAGES) for content in (["Hel", "lo."], MANY)),
    *((answers.messages_stream(content, b"\r\n"), True, MESSAGES) for content in (["Hel", "lo."], MANY)),
)
"""Answers of each provider, short and long; whether they are streamed; and what they tell."""


def at_once(text: bytes) -> Usage | None:
    """What the excerpt of an answer tells."""
    return usage_at_once(TextExcerpt.of(text))


def streamed(text: bytes) -> Usage | None:
    """What the excerpt of a stream tells."""
    return usage_streamed(TextExcerpt.of(text))


class AtOnceTests(SynchronousTestCase):
    """Answers of one object."""

    def test_dialects(self) -> None:
        """Each provider's numbers are read, short or long, streamed or not; what a cache served is a part of the input.

        The closing event of a response is longer than what is kept of it.
        """
        for text, is_stream, told in TOLD:
            self.assertEqual((streamed if is_stream else at_once)(text), told, text[:100])

    def test_forms(self) -> None:
        """An answer may have cost no output, and the object may stand before what it is about."""
        embeddings = {"data": [[0.5] * 9000], "usage": {"prompt_tokens": 8, "total_tokens": 8}}
        self.assertEqual(at_once(json.dumps(embeddings, indent=2).encode()), Usage(input=8))
        text = json.dumps({"usage": answers.CHAT_USAGE, "choices": [json.loads(answers.TRAP)]})
        self.assertEqual(at_once(text.encode()), CHAT)

    def test_arguments(self) -> None:
        """An object of that name within another one, or within a string, is not taken."""
        for content in ([json.loads(answers.TRAP)], answers.TRAP, {"x": [answers.TRAP, json.loads(answers.TRAP)]}):
            for filler in ("", LONG):
                text = json.dumps({"filler": filler, "content": content, "model": "m"})
                self.assertIsNone(at_once(text.encode()), text[-200:])

    def test_none(self) -> None:
        """An answer that tells nothing, or is none, has none."""
        for text in (
            b"",
            b"null",
            b"{}",
            b'{"usage":null}',
            b'{"usage":{}}',
            b'{"usage":{"x":1}}',
            b'{"input_tokens":4}',
            b'{"usage":{"prompt_tokens":4}',
            b'[{"usage":{"prompt_tokens":4}}]',
        ):
            self.assertIsNone(at_once(text), text)

    def test_numbers(self) -> None:
        """What is no count of tokens counts nothing."""
        for number in ("-1", "1.5", "true", '"7"', "null", "1e9", "9" * 30, "9" * 5000, "[1]", "NaN"):
            text = f'{{"usage":{{"input_tokens":{number},"output_tokens":3}}}}'
            self.assertIn(at_once(text.encode()), {Usage(output=3), None}, text)
        self.assertEqual(
            at_once(b'{"usage":{"prompt_tokens":1,"prompt_tokens_details":7,"completion_tokens":2}}'), Usage(1, 2)
        )

    @settings(deadline=None, max_examples=examples(200))
    @given(st.integers() | st.floats(allow_nan=False, allow_infinity=False))
    @example(0.00014)
    @example(10_000)
    def test_cost(self, dollars: float) -> None:
        """A cost is read to the nearest millionth of a dollar; one below nothing or beyond belief is not."""
        usage = {"prompt_tokens": 3, "completion_tokens": 4, "cost": dollars}
        told = at_once(json.dumps({"usage": usage}).encode())
        assert told is not None
        self.assertEqual((told.input, told.output), (3, 4))
        cost = told.cost_microdollars
        if 0 <= dollars <= 10_000:
            self.assertIs(type(cost), int)
            self.assertLessEqual(abs(Fraction(cost or 0) - Fraction(dollars) * 1_000_000), Fraction(500_001, 1_000_000))
        else:
            self.assertIsNone(cost)

    def test_no_cost(self) -> None:
        """What is no number of dollars is no cost, and the tokens beside it count."""
        for cost in (
            "NaN",
            "Infinity",
            "-Infinity",
            "1e400",
            "-0.01",
            "true",
            '"0.5"',
            "null",
            "[1]",
            '{"a":1}',
            "9" * 400,
        ):
            text = f'{{"usage":{{"prompt_tokens":3,"completion_tokens":4,"cost":{cost}}}}}'
            self.assertEqual(at_once(text.encode()), Usage(3, 4), cost)

    def test_cost_in_each_dialect(self) -> None:
        """A cost is read beside the tokens of either dialect, streamed or not; one elsewhere in the answer is not."""
        stream = (
            b'data: {"choices":[],"usage":{"prompt_tokens":3,"completion_tokens":4,"cost":0.5}}\n\ndata: [DONE]\n\n'
        )
        self.assertEqual(streamed(stream), Usage(3, 4, 0, 500_000))
        self.assertEqual(at_once(b'{"usage":{"input_tokens":3,"output_tokens":4,"cost":1}}'), Usage(3, 4, 0, 1_000_000))
        self.assertEqual(at_once(b'{"cost":1,"usage":{"input_tokens":3,"details":{"cost":2}}}'), Usage(3))


class StreamedTests(SynchronousTestCase):
    """Answers of many events."""

    def test_later(self) -> None:
        """Where several events tell tokens the last one counts; what it leaves open stays as an earlier one told it."""
        chunks = (
            b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":%d}}\n\n' % n for n in range(500)
        )
        text = b"".join(chunks)
        self.assertEqual((streamed(text), streamed(text[:300])), (Usage(9, 499), Usage(9, 3)))
        text = answers.messages_stream().replace(b'{"output_tokens":89}', b'{"input_tokens":null,"output_tokens":89}')
        self.assertEqual(streamed(text), MESSAGES)

    def test_cut(self) -> None:
        """A stream that was cut has cost what its beginning told."""
        text = answers.messages_stream(MANY)
        self.assertEqual(streamed(text[:4000]), Usage(input=3210, output=1, cached=3000))
        self.assertEqual(streamed(text[:40_000]), Usage(input=3210, output=1, cached=3000))

    def test_untold(self) -> None:
        """A chat that was not asked for its tokens tells none, nor does an object of that name deeper in an event."""
        self.assertIsNone(streamed(answers.chat_stream(usage=False)))
        self.assertIsNone(streamed(answers.chat_stream(MANY, usage=False)))
        event = b'data: {"type":"content_block_start","content_block":{"input":' + answers.TRAP.encode() + b"}}\n\n"
        self.assertIsNone(streamed(event))
        self.assertIsNone(streamed(b"data: x\n\n" * 4000 + event + b"data: x\n\n" * 100))


PIECES = st.sampled_from(
    [
        b'"usage":{',
        b'{"usage":{"prompt_tokens":3}}',
        b"data:",
        b"data: {",
        b"\n",
        b"\r\n",
        b'"type":"message_start",',
        b'"message":{',
        b"[" * 900,
        b"{" * 900,
        b'{"a":' * 400,
        b"}",
        b"]",
        b'"',
        b"\\",
        b"9" * 900,
        b" " * 900,
        b"\xff\xfe",
        b"\x00",
    ]
)
WILD = st.lists(PIECES | st.binary(max_size=20), max_size=60).map(b"".join)


class HostileTests(SynchronousTestCase):
    """Bodies that mean harm."""

    @settings(deadline=None, max_examples=examples(200))
    @given(WILD)
    @example(b'{"usage":' * 3000)
    @example(b'"usage":{' + b"[" * 20_000)
    @example(b'{"usage":{"input_tokens":' + b"9" * 20_000)
    def test_never_raises(self, text: bytes) -> None:
        """Whatever a body is, it tells tokens or it does not."""
        for found in (at_once(text), streamed(text)):
            self.assertIsInstance(found, (Usage, type(None)))

    def test_cost(self) -> None:
        """No body costs time that grows with the square of what is kept of it."""
        kept = FIRST_BYTES + LAST_BYTES
        plain = b'{"a":"' + b"x" * (kept - 9) + b'"}'
        parse = min(seconds(partial(json.loads, plain)) for _ in range(5))
        unit = max(parse, 20e-6)
        for piece in (
            b'"usage":{',
            b'{"usage":{"a":',
            b'"usage":{}',
            b'"usage" ',
            b'"usage":' + b" " * 50,
            b"{",
            b"\n",
        ):
            text = (piece * kept)[:kept]
            for read in (at_once, streamed):
                took = min(seconds(partial(read, text)) for _ in range(3))
                self.assertLess(took, 2000 * unit, piece)


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
        for body, streamed, told in TOLD:
            for size in (7, 1000, 9001, 65_536, 1 << 24):
                plain = copied(answers.head(streamed=streamed), cut(body, size))
                self.assertEqual(plain.usage(), told)
                for chunk in (11, 150, 40_000):
                    pieces = cut(answers.chunked(body, chunk), size)
                    self.assertEqual(copied(answers.head(CHUNKED, streamed=streamed), pieces).usage(), told)

    @settings(deadline=None, max_examples=examples(100))
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
        first.discard()
        first.discard()
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

    @settings(deadline=None, max_examples=examples(150))
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

    def test_discard(self) -> None:
        """Nothing is left of a copy that is let go, and neither it nor an excerpt shows what it holds."""
        copy = copied(answers.head(), cut(answers.chat(LONG), 1000))
        self.assertNotIn("word", f"{copy!r} {TextExcerpt.of(answers.chat(LONG))!r}")
        copy.discard()
        self.assertEqual((copy._first, copy.room), (None, bytearray()))
