"""A connection to the daemon: one request, one whole answer, however its bytes come."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import ISSLTransport
from twisted.internet.testing import StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import alsoProvides

from aileron.client._line import Line, NotSecured, unchunked
from aileron.http1 import Malformed

MOST = 100
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3;x=1\r\nabc\r\n2\r\nde\r\n0\r\nX: 1\r\n\r\n"
SPLITS = st.lists(st.integers(0, len(CHUNKED)), max_size=6)


class Shelf:
    """Notes what becomes of its one connection."""

    def __init__(self) -> None:
        self.kept = 0
        self.gone = 0

    def keep(self, _line: Line) -> None:
        """Once more."""
        self.kept += 1

    def forget(self, _line: Line) -> None:
        """No more."""
        self.gone += 1


class LineCase(SynchronousTestCase):
    """A connection that was just made."""

    def setUp(self) -> None:
        self.begin()

    def begin(self) -> None:
        """A fresh one."""
        self.shelf, self.transport = Shelf(), StringTransport()
        self.line = Line(self.shelf, MOST)
        self.line.makeConnection(self.transport)  # type: ignore[no-untyped-call]

    def ask(self) -> Deferred[Any]:
        """Send a request."""
        self.transport.clear()
        return self.line.ask(b"GET", b"GET / HTTP/1.1\r\n\r\n").addCallback(lambda found: (found[0].code, found[1]))

    def lose(self, error: Exception) -> None:
        """The other end is gone."""
        self.line.connectionLost(Failure(error))


class AnswerTests(LineCase):
    """What comes back."""

    def test_whole(self) -> None:
        """Nothing is told before all of the answer came; then the connection is kept, and asked again."""
        for _ in range(2):
            asking = self.ask()
            self.assertEqual(self.transport.value(), b"GET / HTTP/1.1\r\n\r\n")
            self.line.dataReceived(ANSWER[:-1])
            self.assertNoResult(asking)
            self.line.dataReceived(ANSWER[-1:])
            self.assertEqual(self.successResultOf(asking), (200, b"{}"))
        self.assertEqual((self.shelf.kept, self.shelf.gone), (2, 0))
        self.assertFalse(self.transport.disconnecting)

    def test_kept_before_it_is_told(self) -> None:
        """Whoever is told may ask on the same connection at once."""
        asking, then = self.ask(), []
        asking.addCallback(lambda _: then.append((self.shelf.kept, self.ask())))
        self.line.dataReceived(ANSWER)
        ((kept, second),) = then
        self.assertEqual(kept, 1)
        self.line.dataReceived(ANSWER)
        self.assertEqual(self.successResultOf(second), (200, b"{}"))

    @settings(deadline=None, max_examples=60)
    @given(SPLITS)
    def test_chunked(self, splits: list[int]) -> None:
        """Chunks are put together, wherever the bytes were cut."""
        self.begin()
        asking, places = self.ask(), [0, *sorted(splits), len(CHUNKED)]
        for begin, end in pairwise(places):
            if begin < end:
                self.line.dataReceived(CHUNKED[begin:end])
        self.assertEqual(self.successResultOf(asking), (200, b"abcde"))
        self.assertEqual(self.shelf.kept, 1)

    def test_interim(self) -> None:
        """Answers that say that one will follow are passed over."""
        asking = self.ask()
        self.line.dataReceived(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nA: b\r\n\r\n" + ANSWER)
        self.assertEqual(self.successResultOf(asking), (200, b"{}"))

    def test_no_body(self) -> None:
        """An answer without a body ends with its head."""
        asking = self.ask()
        self.line.dataReceived(b"HTTP/1.1 204 No Content\r\n\r\n")
        self.assertEqual(self.successResultOf(asking), (204, b""))

    def test_until_the_end(self) -> None:
        """A body that says no length is whole when the connection ends cleanly, and only then."""
        for error, whole in ((ConnectionDone(), True), (ConnectionLost(), False)):
            self.begin()
            asking = self.ask()
            self.line.dataReceived(b"HTTP/1.1 200 OK\r\n\r\n[1]")
            self.assertNoResult(asking)
            self.lose(error)
            if whole:
                self.assertEqual(self.successResultOf(asking), (200, b"[1]"))
            else:
                self.failureResultOf(asking, ConnectionLost)
            self.assertEqual((self.shelf.kept, self.shelf.gone), (0, 1))


class NotKeptTests(LineCase):
    """When a connection ends with the answer."""

    def ends(self, *parts: bytes) -> Deferred[Any]:
        """Ask, and hear these; the connection is ended then and never kept."""
        asking = self.ask()
        for part in parts:
            self.line.dataReceived(part)
        self.assertTrue(self.transport.disconnecting)
        self.assertEqual(self.shelf.kept, 0)
        return asking

    def test_closing(self) -> None:
        """The other end says that it closes."""
        asking = self.ends(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 1\r\n\r\n1")
        self.assertEqual(self.successResultOf(asking), (200, b"1"))

    def test_more_than_asked(self) -> None:
        """Bytes follow that belong to no answer."""
        self.assertEqual(self.successResultOf(self.ends(ANSWER + b"H")), (200, b"{}"))

    def test_unasked(self) -> None:
        """Bytes come where nothing was asked."""
        self.line.dataReceived(ANSWER)
        self.assertTrue(self.transport.disconnecting)

    def test_malformed(self) -> None:
        """What is no answer is none, nor is a head without an end."""
        for wrong in (b"nothing\r\n\r\n", b"HTTP/1.1 200 OK\r\nA: " + b"x" * 70_000):
            self.begin()
            self.failureResultOf(self.ends(wrong), Malformed)

    def test_too_long(self) -> None:
        """Of an answer beyond the cap no more is waited for than shows that it is."""
        for head in (b"Content-Length: 999999", b"Transfer-Encoding: chunked"):
            self.begin()
            asking = self.ends(b"HTTP/1.1 200 OK\r\n" + head + b"\r\n\r\n", b"fff\r\n" + b"1" * MOST)
            self.assertGreater(len(self.successResultOf(asking)[1]), MOST)

    def test_cancelled(self) -> None:
        """Whoever waits no longer ends the connection; what comes late is nobody's."""
        asking = self.ask()
        asking.addErrback(lambda _: None)
        asking.cancel()
        self.assertTrue(self.transport.disconnecting)
        self.line.dataReceived(ANSWER[:20])
        self.line.dataReceived(ANSWER[20:])
        self.lose(ConnectionLost())
        self.assertEqual(self.shelf.kept, 0)

    def test_closed(self) -> None:
        """Closing is over when the connection is."""
        closing = self.line.close()
        self.assertNoResult(closing)
        self.lose(ConnectionDone())
        self.successResultOf(closing)


class UnchunkedTests(SynchronousTestCase):
    """L{unchunked}."""

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.binary(min_size=1, max_size=40)))
    def test_back(self, parts: list[bytes]) -> None:
        """It gives back what was put into chunks."""
        raw = b"".join(b"%x\r\n%b\r\n" % (len(part), part) for part in parts)
        self.assertEqual(unchunked(raw + b"0\r\n\r\n"), b"".join(parts))


def secured() -> StringTransport:
    """What says that it is TLS."""
    transport = StringTransport()
    alsoProvides(transport, ISSLTransport)
    return transport


class HandshakeTests(SynchronousTestCase):
    """By TLS a request leaves when its handshake is over."""

    def lost(self, transport: StringTransport, *, agreed: bool) -> BaseException:
        """What whoever asked is told when the connection breaks."""
        line = Line(Shelf(), MOST)
        line.makeConnection(transport)  # type: ignore[no-untyped-call]
        asking = line.ask(b"GET", b"GET / HTTP/1.1\r\n\r\n")
        if agreed:
            line.handshakeCompleted()
        line.connectionLost(Failure(ConnectionDone("why")))
        error: BaseException = self.failureResultOf(asking).value
        return error

    def test_before(self) -> None:
        """What breaks before, had nothing of ours; it is told with its reason."""
        error = self.lost(secured(), agreed=False)
        assert isinstance(error, NotSecured)
        self.assertIsInstance(error.reason, ConnectionDone)

    def test_after(self) -> None:
        """What breaks afterwards, or where there is no TLS, may have had it."""
        self.assertIsInstance(self.lost(secured(), agreed=True), ConnectionDone)
        self.assertIsInstance(self.lost(StringTransport(), agreed=False), ConnectionDone)
