"""Tokens are read where a provider tells them, and nowhere else."""

from __future__ import annotations

import json
import time

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.gateway._usage import FIRST_BYTES, LAST_BYTES, TextExcerpt, usage_at_once, usage_streamed
from aileron.values import Usage
from tests.gateway import answers

CHAT = Usage(input=120, output=34, cached=100)
RESPONSES = Usage(input=50, output=7, cached=40)
LONG = "word " * 20_000
MANY = ["word " * 20] * 1_000


def at_once(text: bytes) -> Usage | None:
    """What the excerpt of an answer tells."""
    return usage_at_once(TextExcerpt.of(text))


def streamed(text: bytes) -> Usage | None:
    """What the excerpt of a stream tells."""
    return usage_streamed(TextExcerpt.of(text))


class AtOnceTests(SynchronousTestCase):
    """Answers of one object."""

    def test_dialects(self) -> None:
        """Each provider's numbers are read; what was read from or written to a cache is a part of the input."""
        self.assertEqual(at_once(answers.chat()), CHAT)
        self.assertEqual(at_once(answers.responses()), RESPONSES)
        self.assertEqual(at_once(answers.messages()), Usage(input=3210, output=55, cached=3000))

    def test_long(self) -> None:
        """The end of a long answer tells them as well."""
        self.assertEqual(at_once(answers.chat(LONG)), CHAT)
        self.assertEqual(at_once(answers.responses(LONG)), RESPONSES)
        self.assertEqual(at_once(answers.messages(LONG)), Usage(input=3210, output=55, cached=3000))

    def test_embeddings(self) -> None:
        """An answer may have cost no output."""
        text = json.dumps({"data": [[0.5] * 9000], "usage": {"prompt_tokens": 8, "total_tokens": 8}}, indent=2)
        self.assertEqual(at_once(text.encode()), Usage(input=8))

    def test_order(self) -> None:
        """The object may stand before what it is about."""
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


class StreamedTests(SynchronousTestCase):
    """Answers of many events."""

    def test_dialects(self) -> None:
        """Each provider's closing events are read; the number that comes later is the truer one."""
        self.assertEqual(streamed(answers.chat_stream()), CHAT)
        self.assertEqual(streamed(answers.responses_stream()), RESPONSES)
        self.assertEqual(streamed(answers.messages_stream()), Usage(input=3210, output=89, cached=3000))

    def test_long(self) -> None:
        """First and last bytes of a long stream are enough."""
        self.assertEqual(streamed(answers.chat_stream(MANY)), CHAT)
        self.assertEqual(streamed(answers.messages_stream(MANY)), Usage(input=3210, output=89, cached=3000))

    def test_long_closing_event(self) -> None:
        """A closing event that is longer than what is kept is read from where its tokens stand."""
        text = answers.responses_stream(MANY)
        self.assertGreater(len(text[text.rindex(b"\ndata") :]), LAST_BYTES)
        self.assertEqual(streamed(text), RESPONSES)

    def test_line_ends(self) -> None:
        """Lines may end as HTTP's do."""
        text = answers.messages_stream(line_end=b"\r\n")
        self.assertEqual(streamed(text), Usage(input=3210, output=89, cached=3000))

    def test_running(self) -> None:
        """Where each event tells them anew, the last one is right."""
        chunks = (
            b'data: {"choices":[],"usage":{"prompt_tokens":9,"completion_tokens":%d}}\n\n' % n for n in range(500)
        )
        text = b"".join(chunks)
        self.assertEqual(streamed(text), Usage(9, 499))
        self.assertEqual(streamed(text[:300]), Usage(9, 3))

    def test_null(self) -> None:
        """A number that the closing event leaves open stays as the opening one told it."""
        text = answers.messages_stream().replace(b'{"output_tokens":89}', b'{"input_tokens":null,"output_tokens":89}')
        self.assertEqual(streamed(text), Usage(input=3210, output=89, cached=3000))

    def test_cut(self) -> None:
        """A stream that was cut has cost what its beginning told."""
        text = answers.messages_stream(MANY)
        self.assertEqual(streamed(text[:4000]), Usage(input=3210, output=1, cached=3000))
        self.assertEqual(streamed(text[:40_000]), Usage(input=3210, output=1, cached=3000))

    def test_untold(self) -> None:
        """A chat that was not asked for its tokens tells none, whatever its tools are called with."""
        self.assertIsNone(streamed(answers.chat_stream(usage=False)))
        self.assertIsNone(streamed(answers.chat_stream(MANY, usage=False)))

    def test_deeper(self) -> None:
        """An object of that name deeper in an event is not taken."""
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

    @settings(deadline=None, max_examples=200)
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
        parse = min(_seconds(lambda: json.loads(plain)) for _ in range(5))
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
                took = min(_seconds(lambda read=read, text=text: read(text)) for _ in range(3))
                self.assertLess(took, 2000 * unit, piece)

    def test_nothing_is_shown(self) -> None:
        """An excerpt shows nothing of what it holds."""
        self.assertNotIn("Hello", repr(TextExcerpt.of(answers.chat())))


def _seconds(call: object) -> float:
    began = time.process_time()
    assert callable(call)
    call()
    return time.process_time() - began
