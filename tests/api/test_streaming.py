"""A long body is made no faster than the client takes it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IConsumer, IProducer
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers
from twisted.web.iweb import IRequest
from zope.interface import implementer

from aileron.api._faults import Streamed
from aileron.api.channels.request import stream
from aileron.errors import StoreUnavailable


@implementer(IConsumer)
class SlowRequest:
    """A client that takes one chunk at a time."""

    def __init__(self) -> None:
        self.producer: Any = None
        self.written: list[bytes] = []
        self.responseHeaders = Headers()
        self.status = 0

    def setResponseCode(self, status: int) -> None:
        """Remember it."""
        self.status = status

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """Remember it."""
        self.producer = producer

    def unregisterProducer(self) -> None:
        """Forget it."""
        self.producer = None

    def write(self, data: bytes) -> None:
        """Take it, and no more for now."""
        self.written.append(data)
        self.producer.pauseProducing()


class StreamTests(SynchronousTestCase):
    """One body of three chunks."""

    def begin(self, fails: bool = False) -> Deferred[bytes]:
        """Start to write it."""
        self.request, self.made, self.ended = SlowRequest(), 0, False

        async def chunks() -> AsyncIterator[bytes]:
            try:
                for number in range(3):
                    self.made += 1
                    yield b"%d" % number
                    if fails:
                        raise StoreUnavailable("gone")
            finally:
                self.ended = True

        answer = Streamed(chunks(), "text/plain")
        return Deferred.fromCoroutine(stream(cast("IRequest", self.request), answer))

    def test_waits(self) -> None:
        """Nothing is made while the client is slow; it goes on where it was, and ends."""
        done = self.begin()
        for number in (1, 2, 3):
            self.assertNoResult(done)
            self.assertEqual(self.made, number)
            self.request.producer.resumeProducing()
        self.assertEqual((self.successResultOf(done), self.request.written), (b"", [b"0", b"1", b"2"]))
        self.assertIsNone(self.request.producer)

    def test_gone(self) -> None:
        """A client that goes away ends it."""
        done = self.begin()
        self.request.producer.stopProducing()
        self.assertEqual((self.successResultOf(done), self.made), (b"", 1))

    def test_let_go(self) -> None:
        """What makes the body ends with the client, though it waits to be asked for more: it may hold something."""
        done = self.begin()
        self.assertFalse(self.ended)
        done.addErrback(lambda failure: failure.trap(CancelledError))
        done.cancel()
        self.assertTrue(self.ended)

    def test_failed(self) -> None:
        """A failure on the way ends the body short, without another word."""
        done = self.begin(fails=True)
        self.request.producer.resumeProducing()
        self.assertEqual((self.successResultOf(done), self.request.written), (b"", [b"0"]))
