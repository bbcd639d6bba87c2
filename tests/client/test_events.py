"""Events are heard as they come, and a stream ends for every reason that it can have."""

from __future__ import annotations

from twisted.internet.defer import CancelledError
from twisted.internet.task import Clock
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseDone

from aileron.client._transport import SILENCE_SECONDS, EventStream


class Transport(StringTransport):
    """One that tells its protocol when it is cut."""

    stream: EventStream

    def stopProducing(self) -> None:
        """Cut it."""
        super().stopProducing()  # type: ignore[no-untyped-call]
        self.stream.connectionLost(Failure(ResponseDone()))


class EventStreamTests(SynchronousTestCase):
    def setUp(self) -> None:
        """Have a stream."""
        self.clock, self.count, transport = Clock(), 0, Transport()
        self.stream = transport.stream = EventStream(self.clock, self._count_event)
        self.stream.makeConnection(transport)  # type: ignore[no-untyped-call]

    def _count_event(self) -> None:
        self.count += 1

    def test_events(self) -> None:
        """Each whole event is heard once, however it is cut; a comment is none."""
        for piece in (b"id: 1\nev", b"ent: ready\n", b"\n: still here\n\n", b"event: a\n\nevent: b\n\nevent: c"):
            self.stream.dataReceived(piece)
        self.assertEqual(self.count, 3)
        self.assertNoResult(self.stream.ended)

    def test_silence(self) -> None:
        """Where the daemon is silent too long it is over; anything that comes puts that off."""
        self.clock.advance(SILENCE_SECONDS - 1)
        self.stream.dataReceived(b": still here\n\n")
        self.clock.advance(SILENCE_SECONDS - 1)
        self.assertNoResult(self.stream.ended)
        self.clock.advance(1)
        self.assertIsNone(self.successResultOf(self.stream.ended))

    def test_endless(self) -> None:
        """An event that does not end is not kept for ever."""
        self.stream.dataReceived(b"x" * 70_000)
        self.assertIsNone(self.successResultOf(self.stream.ended))

    def test_over(self) -> None:
        """When the daemon ends it, it is over, and no clock runs on."""
        self.stream.connectionLost(Failure(ResponseDone()))
        self.assertIsNone(self.successResultOf(self.stream.ended))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_cancelled(self) -> None:
        """Cancelling cuts it, and is told as that."""
        self.stream.ended.cancel()
        self.failureResultOf(self.stream.ended, CancelledError)
        self.assertEqual(self.clock.getDelayedCalls(), [])
