"""A long body is made no faster than the client takes it; so is the stream of what is put on record."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IConsumer, IProducer
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.http_headers import Headers
from twisted.web.iweb import IRequest
from zope.interface import implementer

from aileron.api.channels.request import stream
from aileron.api.endpoint import Received, RequestContext
from aileron.api.faults import Streamed
from aileron.api.guard import Caller, Who
from aileron.api.routes.audit import STILL_HERE_SECONDS, follow_events
from aileron.model.errors import StoreUnavailable
from aileron.model.sessions import OperatorSession

from .case import ApiCase


@implementer(IConsumer)
class SlowRequest:
    """A client that takes one chunk at a time."""

    def __init__(self) -> None:
        self.producer: Any = None
        self.written: list[bytes] = []
        self.responseHeaders = Headers()
        self.status = 0

    def setResponseCode(self, status: int) -> None:
        self.status = status

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        self.producer = producer

    def unregisterProducer(self) -> None:
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
        """Nothing is made while the client is slow; it goes on where it was, and ends, short where something failed."""
        done = self.begin()
        for number in (1, 2, 3):
            self.assertNoResult(done)
            self.assertEqual(self.made, number)
            self.request.producer.resumeProducing()
        self.assertEqual((self.successResultOf(done), self.request.written), (b"", [b"0", b"1", b"2"]))
        self.assertIsNone(self.request.producer)
        done = self.begin(fails=True)
        self.request.producer.resumeProducing()
        self.assertEqual((self.successResultOf(done), self.request.written), (b"", [b"0"]))

    def test_gone(self) -> None:
        """A client that goes away ends it, and what makes the body, though that waits to be asked for more."""
        done = self.begin()
        self.request.producer.stopProducing()
        self.assertEqual((self.successResultOf(done), self.made), (b"", 1))
        done = self.begin()
        self.assertFalse(self.ended)
        done.addErrback(lambda failure: failure.trap(CancelledError))
        done.cancel()
        self.assertTrue(self.ended)


class EventsTests(ApiCase):
    """A page that looks on."""

    def setUp(self) -> None:
        super().setUp()
        token = self.operator_token()
        self.me = cast("OperatorSession", self.operators.by_token(token))

    def follow(self, **query: int) -> AsyncIterator[bytes]:
        """The chunks that the operator gets."""
        context = RequestContext(Caller(Who.OPERATOR, operator=self.me), {}, query, None, 0.0, Received({}, bytes, ()))
        return self.successResultOf(Deferred.fromCoroutine(self.answer(context))).chunks

    async def answer(self, context: RequestContext) -> Streamed:
        """What the route answers."""
        return cast("Streamed", await follow_events(context, self.deps))

    def next_of(self, chunks: AsyncIterator[bytes]) -> Deferred[bytes]:
        """The next chunk."""
        return Deferred.fromCoroutine(chunks.__anext__())  # type: ignore[arg-type]

    def test_from_now_on(self) -> None:
        """What happened before is not told, what happens is, without contents."""
        self.open_session()
        chunks = self.follow()
        self.assertEqual(self.successResultOf(self.next_of(chunks)), b"id: 1\nevent: ready\ndata: {}\n\n")
        waiting = self.next_of(chunks)
        self.assertNoResult(waiting)
        session = self.open_session("claude")
        head, kind, data = self.successResultOf(waiting).decode().strip().split("\n")
        self.assertEqual((head, kind), ("id: 2", "event: record"))
        told = json.loads(data.removeprefix("data: "))
        self.assertEqual((told["type"], told["session_id"]), ("session.started", session["id"]))
        self.assertEqual(set(told), {"type", "at", "run_id", "session_id", "action"})

    def test_from_there(self) -> None:
        """Who was away is told what it missed, at once and in order."""
        for _ in range(3):
            self.open_session()
        chunks = self.follow(after=1)
        self.successResultOf(self.next_of(chunks))
        missed = self.successResultOf(self.next_of(chunks)).decode()
        self.assertEqual([line for line in missed.split("\n") if line.startswith("id")], ["id: 2", "id: 3"])

    def test_silence(self) -> None:
        """Where nothing happens it says that it is still there."""
        chunks = self.follow()
        self.successResultOf(self.next_of(chunks))
        waiting = self.next_of(chunks)
        self.clock.advance(STILL_HERE_SECONDS)
        self.assertEqual(self.successResultOf(waiting), b": still here\n\n")

    def test_ends_with_the_login(self) -> None:
        """Who was logged out is told nothing more."""
        chunks = self.follow()
        self.successResultOf(self.next_of(chunks))
        self.operators.log_out(self.me.id)
        self.failureResultOf(self.next_of(chunks), StopAsyncIteration)

    def test_ends_while_it_waits(self) -> None:
        """Who was logged out is not told either of what they had waited for before that."""
        chunks = self.follow()
        self.successResultOf(self.next_of(chunks))
        waiting = self.next_of(chunks)
        self.operators.log_out(self.me.id)
        self.open_session("claude")
        self.failureResultOf(waiting, StopAsyncIteration)
