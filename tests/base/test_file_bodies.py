"""Bodies that are sent from a file leave in pieces, as the connection takes them, and only as they were stored."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.file_bodies import PIECE_BYTES, ChangedBody, FileBody, FileProducer
from aileron.base.json import digest_of_bytes

CONTENT = bytes(range(256)) * 700  # not a multiple of the size of a piece


class Consumer:
    """A connection that takes pieces."""

    def __init__(self) -> None:
        self.pieces: list[bytes] = []

    def write(self, data: bytes) -> None:
        """Take a piece."""
        self.pieces.append(data)

    def registerProducer(self, producer: object, streaming: bool) -> None:
        """Do nothing."""

    def unregisterProducer(self) -> None:
        """Do nothing."""


class ProducerTests(SynchronousTestCase):
    """A body in a file, with the thread stepped by hand."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp())
        self.path.write_bytes(CONTENT)
        self.waiting: list[Deferred[Any]] = []
        self.consumer = Consumer()

    def body(self, content: bytes = CONTENT) -> FileBody:
        """Return the body of the file, of which a content is expected."""
        file = self.path.open("rb")
        self.addCleanup(file.close)

        async def in_thread(work: Any, *args: Any) -> Any:
            turn: Deferred[None] = Deferred()
            self.waiting.append(turn)
            await turn
            return work(*args)

        return FileBody(file, len(content), digest_of_bytes(content), in_thread)

    def step(self, most: int = 100) -> None:
        """Let the thread work."""
        for _ in range(most):
            if self.waiting:
                self.waiting.pop(0).callback(None)

    def test_whole(self) -> None:
        """All bytes leave, in pieces of a limited size, each read when the one before was written."""
        producer = FileProducer(self.body())
        self.assertEqual(len(CONTENT), producer.length)
        done = producer.startProducing(self.consumer)  # type: ignore[arg-type]
        self.step(1)
        self.assertEqual(1, len(self.consumer.pieces))
        self.step()
        self.successResultOf(done)
        self.assertEqual(CONTENT, b"".join(self.consumer.pieces))
        self.assertLessEqual(max(map(len, self.consumer.pieces)), PIECE_BYTES)

    def test_pauses(self) -> None:
        """While the connection takes nothing, nothing is written, and nothing more is read."""
        producer = FileProducer(self.body())
        done = producer.startProducing(self.consumer)  # type: ignore[arg-type]
        for _ in range(2):
            producer.pauseProducing()
        self.step()
        self.assertEqual(([], []), (self.consumer.pieces, self.waiting))
        producer.resumeProducing()
        producer.resumeProducing()
        self.step()
        self.successResultOf(done)
        self.assertEqual(CONTENT, b"".join(self.consumer.pieces))

    def test_stopped(self) -> None:
        """A request that ended takes no further piece, also if it was paused."""
        for paused in (False, True):
            producer = FileProducer(self.body())
            done = producer.startProducing(self.consumer)  # type: ignore[arg-type]
            if paused:
                producer.pauseProducing()
                self.step()
            producer.stopProducing()
            self.step()
            self.successResultOf(done)
        self.assertEqual([], self.consumer.pieces)

    def test_changed(self) -> None:
        """Of a file that is changed while it is sent, the last piece never leaves."""
        for other in (CONTENT[:-1] + b"!", b"!" + CONTENT[1:], CONTENT[:-1]):
            self.path.write_bytes(CONTENT)
            self.consumer.pieces.clear()
            producer = FileProducer(self.body())
            done = producer.startProducing(self.consumer)  # type: ignore[arg-type]
            self.path.write_bytes(other)
            self.step()
            self.failureResultOf(done, ChangedBody)
            self.assertLess(sum(map(len, self.consumer.pieces)), len(CONTENT))

    def test_checked(self) -> None:
        """A file is compared as a whole before, and read from its beginning afterwards."""
        body = self.body()
        body.file.read(10)
        checked = Deferred.fromCoroutine(body.check())
        self.step()
        self.successResultOf(checked)
        self.assertEqual(CONTENT, body.file.read())
        for expected in (CONTENT + b"!", CONTENT[:-1], b"!" + CONTENT[1:]):
            refused = Deferred.fromCoroutine(self.body(expected).check())
            self.step()
            self.failureResultOf(refused, ChangedBody)
        closed = Deferred.fromCoroutine(body.close())
        self.step()
        self.successResultOf(closed)
        self.assertTrue(body.file.closed)
