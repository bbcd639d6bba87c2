"""Long answers to reads of tools: passed on while they arrive, searched for the secret, and never ended falsely."""

from __future__ import annotations

import random
from typing import Any

from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IConsumer
from zope.interface import implementer

from aileron.connectors._body import MOST_GATHERED_BYTES
from aileron.connectors._streaming import GATHER_SECONDS
from aileron.model.connectors import Outcome
from aileron.model.streams import AnswerCut, StreamedAnswer
from tests.connectors.service import answer
from tests.connectors.test_kept import KeptCase

SECRET = b"s3cret-value"
LONG = MOST_GATHERED_BYTES + 1


@implementer(IConsumer)
@define
class Taker:
    """A consumer that takes everything, and pauses when the test says so.

    :ivar most: the number of bytes after which it pauses.
    """

    got: bytearray = field(factory=bytearray)
    producer: Any = None
    most: int | None = None

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        assert streaming
        self.producer = producer

    def unregisterProducer(self) -> None:
        self.producer = None

    def write(self, data: bytes) -> None:
        self.got += data
        if self.most is not None and len(self.got) >= self.most:
            self.producer.pauseProducing()


def begin_answer(length: int, status: int = 200) -> bytes:
    """Return the head of an answer with a binary body of this length."""
    kind = "Content-Type: application/octet-stream"
    return f"HTTP/1.1 {status} OK\r\n{kind}\r\nContent-Length: {length}\r\n\r\n".encode()


CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """Return data as one chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class StreamTests(KeptCase):
    """L{HttpConnector.open_read}."""

    def open(self, reply: bytes, **more: Any) -> StreamedAnswer:
        """Begin a read whose answer is long."""
        self.service.replies.append(reply)
        found = self.successResultOf(self.begin(**more))
        assert isinstance(found, StreamedAnswer)
        return found

    def pass_on(self, found: StreamedAnswer) -> tuple[Taker, Deferred[None]]:
        """Pass its body on."""
        taker = Taker()
        passing = Deferred.fromCoroutine(found.body.pass_on(taker))
        self.service.advance()
        return taker, passing

    def say(self, data: bytes) -> None:
        """Have the service send more."""
        transport = self.service.peers[-1].transport
        assert transport is not None
        transport.write(data)
        self.service.advance()

    def test_short(self) -> None:
        """An answer that is short is judged as a whole, with the secret replaced in a text."""
        outcome = self.read(answer(b"your " + SECRET, 200))
        self.assertEqual("your [redacted]", outcome.output["body"])  # type: ignore[index,call-overload]
        self.assertEqual(["plain"], outcome.notes["echoed"])

    def test_long(self) -> None:
        """A long answer is opened with its head and length, passed on as it comes, and its connection is kept."""
        data = random.Random(1).randbytes(LONG * 3)
        found = self.open(begin_answer(len(data)) + data[:100])
        self.assertEqual((200, len(data), None), (found.outcome.status, found.length, found.outcome.fault))
        assert isinstance(found.outcome.output, dict)
        self.assertEqual(["Content-Type: application/octet-stream"], found.outcome.output["headers"])
        taker, passing = self.pass_on(found)
        self.assertEqual(data[:100], bytes(taker.got))
        self.say(data[100:])
        self.successResultOf(passing)
        self.assertEqual(data, bytes(taker.got))
        self.read()
        self.assertEqual(1, self.connections)

    def test_unknown_length(self) -> None:
        """An answer in chunks is passed on once it is long, or has not ended after a while."""
        found = self.open(CHUNKED + chunk(b"x" * LONG))
        self.assertIsNone(found.length)
        taker, passing = self.pass_on(found)
        self.say(chunk(b"y") + b"0\r\n\r\n")
        self.successResultOf(passing)
        self.assertEqual(b"x" * LONG + b"y", bytes(taker.got))
        self.service.replies.append(CHUNKED + chunk(b"slow"))
        asked = self.begin()
        self.assertNoResult(asked)
        self.service.advance(GATHER_SECONDS)
        slow = self.successResultOf(asked)
        assert isinstance(slow, StreamedAnswer)
        taker, passing = self.pass_on(slow)
        self.assertEqual(b"slow", bytes(taker.got))
        self.say(b"0\r\n\r\n")
        self.successResultOf(passing)

    def test_until_closed(self) -> None:
        """An answer without a length is complete if the connection is closed in order."""
        found = self.open(b"HTTP/1.1 200 OK\r\n\r\n" + b"x" * LONG)
        taker, passing = self.pass_on(found)
        self.service.hang_up()
        self.successResultOf(passing)
        self.assertEqual(LONG, len(taker.got))

    def test_secret(self) -> None:
        """A long answer is cut before the secret, also if pieces split it."""
        for cut in range(1, len(SECRET)):
            found = self.open(begin_answer(LONG) + b"\x00before " + SECRET[:cut])
            taker, passing = self.pass_on(found)
            self.say(SECRET[cut:] + b" after")
            self.assertEqual("plain", self.failureResultOf(passing, AnswerCut).value.echoed)
            self.assertEqual(b"\x00before ", bytes(taker.got))
            self.assertTrue(self.service.peers[-1].closed)

    def test_secret_in_head(self) -> None:
        """The secret is replaced in the head of a long answer."""
        found = self.open(f"HTTP/1.1 200 OK\r\nX-You: {SECRET.decode()}\r\nContent-Length: {LONG}\r\n\r\n".encode())
        self.assertNotIn(SECRET.decode(), repr(found.outcome))
        self.assertEqual(["plain"], found.outcome.notes["echoed"])
        found.body.close()

    def test_encoded(self) -> None:
        """A body that is encoded, so that it cannot be searched, is not passed on."""
        self.service.replies.append(
            f"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: {LONG}\r\n\r\n".encode() + b"x" * LONG
        )
        found = self.successResultOf(self.begin())
        assert isinstance(found, Outcome)
        self.assertEqual("encoded", found.output["withheld"])  # type: ignore[index,call-overload]
        self.assertTrue(self.service.peers[-1].closed)

    def test_broken(self) -> None:
        """A connection that breaks in the middle is no end of the body, with a length and without."""
        for begun in (begin_answer(LONG), CHUNKED + chunk(b"x" * LONG)):
            taker, passing = self.pass_on(self.open(begun + b"5\r\nab"))
            self.service.hang_up()
            self.assertEqual("", self.failureResultOf(passing, AnswerCut).value.echoed)
            self.assertNotIn(b"\r\n0\r\n", bytes(taker.got))

    def test_broken_early(self) -> None:
        """If it breaks while a short body is being received, the outcome is a failure."""
        self.service.replies.append(begin_answer(10) + b"abc")
        asked = self.begin()
        self.service.hang_up()
        found = self.successResultOf(asked)
        assert isinstance(found, Outcome)
        self.assertIsNotNone(found.fault)

    def test_login(self) -> None:
        """A long answer that refuses the credential is not passed on."""
        self.service.replies.append(begin_answer(LONG, 401) + b"x" * LONG)
        found = self.successResultOf(self.begin())
        assert isinstance(found, Outcome)
        self.assertEqual((401, True), (found.status, found.fault is not None))
        self.assertTrue(self.service.peers[-1].closed)

    def test_slow_taker(self) -> None:
        """While the consumer is paused, nothing more is received."""
        found = self.open(begin_answer(8 * LONG) + b"x" * LONG)
        taker = Taker(most=1)
        passing = Deferred.fromCoroutine(found.body.pass_on(taker))
        self.say(b"x" * LONG * 7)
        before = len(taker.got)
        self.assertLess(before, LONG + 3 * 64 * 1024)
        taker.most = None
        taker.producer.resumeProducing()
        self.service.advance()
        self.successResultOf(passing)
        self.assertEqual(8 * LONG, len(taker.got))

    def test_gathers_little(self) -> None:
        """What nobody takes yet is received no further than a short answer would be."""
        found = self.open(CHUNKED + chunk(b"x" * 20 * LONG))
        gathered: Any = found.body
        self.assertLess(gathered._body._size, MOST_GATHERED_BYTES + 2 * 64 * 1024)
        found.body.close()

    def test_given_up(self) -> None:
        """A body that nobody takes any more closes its connection, before and while it is passed on."""
        found = self.open(begin_answer(LONG))
        found.body.close()
        found.body.close()
        self.service.advance()
        self.assertTrue(self.service.peers[-1].closed)
        _, passing = self.pass_on(self.open(begin_answer(LONG)))
        passing.cancel()
        self.failureResultOf(passing, CancelledError)
        self.service.advance()
        self.assertTrue(self.service.peers[-1].closed)
        self.assertEqual([], self.service.reactor.getDelayedCalls())

    def test_slow_head(self) -> None:
        """An answer that does not begin in time is a failure, and what has begun may take longer."""
        self.service.replies.append(None)
        asked = self.begin()
        self.service.advance(60)
        found = self.successResultOf(asked)
        assert isinstance(found, Outcome)
        assert found.fault is not None
        self.assertEqual("resource_limit_exceeded", found.fault.kind)
        _, passing = self.pass_on(self.open(begin_answer(LONG)))
        self.service.advance(3600)
        self.assertNoResult(passing)

    @given(st.lists(st.binary(min_size=1, max_size=5000), max_size=5), st.lists(st.integers(1, 4000), max_size=6))
    def test_any_chunks(self, chunks: list[bytes], sizes: list[int]) -> None:
        """However a service chunks its answer, and the network splits it, the body is passed on as it is."""
        self.setUp()
        raw = b"".join(chunk(each) for each in chunks) + b"0\r\n\r\n"
        taker, passing = self.pass_on(self.open(CHUNKED + chunk(b"x" * LONG)))
        for size in sizes:
            self.say(raw[:size])
            raw = raw[size:]
        self.say(raw)
        self.successResultOf(passing)
        self.assertEqual(b"x" * LONG + b"".join(chunks), bytes(taker.got))
