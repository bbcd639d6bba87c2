"""Connections that are kept alive tell the truth about what was sent on them, and streams end for every reason."""

from __future__ import annotations

from typing import Any

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone, ConnectionLost, ConnectionRefusedError
from twisted.internet.interfaces import IHostnameResolver, ISSLTransport, IStreamClientEndpoint
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.task import Clock
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.client import ResponseDone
from zope.interface import alsoProvides, implementer

from aileron.base.outgoing import GuardedEndpoint, NotConnected
from aileron.client import Connections, DaemonUnreachable
from aileron.client._connections import MAX_HEAD_BYTES, MAX_IDLE_CONNECTIONS
from aileron.client._requests import SILENCE_SECONDS, EventStream
from aileron.client._tls import why_untrusted

HEALTHY = b'HTTP/1.1 200 OK\r\nContent-Length: 16\r\n\r\n{"status": "ok"}'


class Transport(StringTransport):
    """A connection in memory, which ends when it is told to."""

    def __init__(self, *, tls: bool = False) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.protocol: Any = None
        if tls:
            alsoProvides(self, ISSLTransport)

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Whether small writes wait."""

    def end(self, error: Exception) -> None:
        """The connection is gone."""
        self.protocol.connectionLost(Failure(error))


class ConnectionsCase(SynchronousTestCase):
    """A reactor in memory, and a client that connects by it."""

    def setUp(self) -> None:
        self.reactor = MemoryReactorClock()
        self.connections = Connections(self.reactor)
        self.daemon = self.connections.daemon("http://127.0.0.1:9", "ail_a_test")

    @property
    def connected(self) -> int:
        """How many connections were asked for."""
        return len(self.reactor.tcpClients)

    def accept(self) -> Transport:
        """Accept the connection that was asked for last."""
        factory: Any = self.reactor.tcpClients[-1][2]
        transport = Transport()
        transport.protocol = factory.buildProtocol(None)
        transport.protocol.makeConnection(transport)
        return transport

    def asking(self) -> Deferred[Any]:
        """Ask how the daemon does."""
        return Deferred.fromCoroutine(self.daemon.status())


class KeptConnectionTests(ConnectionsCase):
    """One connection, used twice."""

    def setUp(self) -> None:
        super().setUp()
        self.connect()

    def connect(self) -> None:
        """Have a connection that was used once."""
        first = self.asking()
        self.transport = self.accept()
        self.transport.protocol.dataReceived(HEALTHY)
        self.assertEqual(self.successResultOf(first), {"status": "ok"})
        self.transport.clear()

    def test_used_again(self) -> None:
        """The next request goes by the same connection."""
        second = self.asking()
        self.assertIn(b"GET /v1/status", self.transport.value())
        self.transport.protocol.dataReceived(HEALTHY)
        self.successResultOf(second)
        self.assertEqual(self.connected, 1)

    def test_cut_off_counts_as_sent(self) -> None:
        """Whatever is cut off on a kept connection may have arrived, and is not sent again behind one's back."""
        operator = self.connections.operator("http://127.0.0.1:9", "t")
        for call, sent in (
            (self.daemon.status, b"GET /v1/status"),
            (lambda: self.daemon.run("x", {}, "K", 0), b"POST /v1/actions/x/run"),
            (lambda: operator.delete("grants", "G"), b"DELETE /v1/grants/G"),
        ):
            before = self.connected
            asking = Deferred.fromCoroutine(call())
            self.assertIn(sent, self.transport.value())
            self.assertNoResult(asking)
            self.transport.end(ConnectionLost())
            self.assertTrue(self.failureResultOf(asking, DaemonUnreachable).value.sent)
            self.assertEqual(self.connected, before)
            self.connect()

    def test_ended_meanwhile(self) -> None:
        """A connection that was closed, or on which bytes came that nobody asked for, is not asked on any more."""
        for number, unasked in enumerate((b"", HEALTHY), 2):
            if unasked:
                self.transport.protocol.dataReceived(unasked)
                self.assertTrue(self.transport.disconnecting)
            self.transport.end(ConnectionDone())
            self.connect()
            self.assertEqual(self.connected, number)

    def test_cancelled(self) -> None:
        """Whoever waits no longer has the connection aborted, and nothing is asked anew."""
        second = self.asking()
        second.cancel()
        self.failureResultOf(second, CancelledError)
        self.assertTrue(self.transport.disconnecting)
        self.transport.end(ConnectionLost())
        self.assertEqual(self.connected, 1)


class AnswerTests(ConnectionsCase):
    """Answers that are too much, or too little."""

    def hear(self, *parts: bytes) -> Transport:
        """Ask, and hear these."""
        self.under_way = self.asking()
        transport = self.accept()
        for part in parts:
            transport.protocol.dataReceived(part)
        return transport

    def test_endless_head(self) -> None:
        """A head that does not end is cut off; how long a body is, is another matter."""
        line = b"A: " + b"x" * 1000 + b"\r\n"
        transport = self.hear(b"HTTP/1.1 200 OK\r\n", line * (MAX_HEAD_BYTES // len(line)))
        self.assertFalse(transport.disconnecting)
        transport.protocol.dataReceived(line)
        self.assertTrue(transport.disconnecting)
        transport.end(ConnectionLost())
        self.assertTrue(self.failureResultOf(self.under_way, DaemonUnreachable).value.sent)

    def test_long_body(self) -> None:
        """A body may be longer than a head, and the next head be as long as this one."""
        head = b"HTTP/1.1 200 OK\r\nA: " + b"x" * 10_000 + b"\r\nContent-Length: %d\r\n\r\n" % (2 * MAX_HEAD_BYTES)
        transport = self.hear(head + b"{" + b" " * MAX_HEAD_BYTES, b" " * (MAX_HEAD_BYTES - 2) + b"}")
        for _ in range(MAX_HEAD_BYTES // 10_000):
            self.assertEqual(self.successResultOf(self.under_way), {})
            self.under_way = self.asking()
            transport.protocol.dataReceived(head + b"{" + b" " * (2 * MAX_HEAD_BYTES - 2) + b"}")
        self.successResultOf(self.under_way)
        self.assertFalse(transport.disconnecting)

    def test_chunked(self) -> None:
        """An answer may come in chunks, after one that says that it will."""
        self.hear(
            b"HTTP/1.1 103 Early Hints\r\nA: b\r\n\r\n",
            b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r",
            b"\n0\r\n\r\n",
        )
        self.assertEqual(self.successResultOf(self.under_way), {})

    def test_no_end(self) -> None:
        """An answer that does not say where it ends may be half of one; what is no answer ends the connection."""
        self.hear(b"HTTP/1.1 200 OK\r\n\r\n{}").end(ConnectionDone())
        self.assertTrue(self.failureResultOf(self.under_way, DaemonUnreachable).value.sent)
        self.assertTrue(self.hear(b"nothing\r\n\r\n").disconnecting)
        self.assertTrue(self.failureResultOf(self.under_way, DaemonUnreachable).value.sent)


class ManyTests(ConnectionsCase):
    """Connections at once."""

    def test_few_are_kept(self) -> None:
        """Each request under way has a connection of its own; only so many are kept, and closing closes those."""
        asked, transports = [], []
        for _ in range(MAX_IDLE_CONNECTIONS + 1):
            asked.append(self.asking())
            transports.append(self.accept())
        for transport, asking in zip(transports, asked, strict=True):
            transport.protocol.dataReceived(HEALTHY)
            self.successResultOf(asking)
        self.assertEqual([transport.disconnecting for transport in transports].count(False), MAX_IDLE_CONNECTIONS)
        closing = self.connections.close()
        self.assertTrue(all(transport.disconnecting for transport in transports))
        self.assertNoResult(closing)
        for transport in transports:
            transport.end(ConnectionDone())
        self.successResultOf(closing)


@implementer(IHostnameResolver)
class Names:
    """Another resolver, which notes the names that it is asked for."""

    def __init__(self, resolver: Any) -> None:
        self._resolver = resolver
        self.asked: list[str] = []

    def resolveHostName(
        self,
        resolutionReceiver: Any,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Any = None,
        transportSemantics: str = "TCP",
    ) -> Any:
        self.asked.append(hostName)
        return self._resolver.resolveHostName(
            resolutionReceiver, hostName, portNumber, addressTypes, transportSemantics
        )


class SiteTests(ConnectionsCase):
    """Where a connection leads."""

    def test_localhost(self) -> None:
        """No resolver is asked for localhost or a name of the daemon's: a minimal system may not know it."""
        resolver: Any = self.reactor.nameResolver
        self.patch(self.reactor, "nameResolver", names := Names(resolver))
        for at, host in enumerate(("localhost:9", "bcdfghjklm.aileron.localhost:9"), 1):
            self.daemon = self.connections.daemon(f"http://{host}", None)
            asking = self.asking()
            self.assertEqual(names.asked, ["127.0.0.1"] * at)
            transport = self.accept()
            self.assertIn(f"\r\nHost: {host}\r\n".encode(), transport.value())
            transport.protocol.dataReceived(HEALTHY)
            self.successResultOf(asking)

    def test_addresses(self) -> None:
        """Each site is asked at its own address, also of IPv6; where that says https, nothing leaves in the clear."""
        for url, port in (("127.0.0.1:9", 9), ("127.0.0.1:10", 10), ("[::1]:9", 9)):
            self.daemon = self.connections.daemon(f"http://{url}", None)
            asking = self.asking()
            self.assertEqual(self.reactor.tcpClients[-1][:2], ("127.0.0.1", port))  # to which all names lead here
            transport = self.accept()
            self.assertIn(f"\r\nHost: {url}\r\n".encode(), transport.value())
            transport.protocol.dataReceived(HEALTHY)
            self.successResultOf(asking)
        self.daemon = self.connections.daemon("https://127.0.0.1:9", "t")
        self.assertNoResult(self.asking())
        self.assertEqual(self.accept().value()[:1], b"\x16", "not the handshake of TLS")


@implementer(IStreamClientEndpoint)
class Endpoint:
    """Connects to a transport in memory, or fails to."""

    def __init__(self, transport: Transport | None) -> None:
        self._transport = transport

    def connect(self, protocolFactory: Any) -> Deferred[Any]:
        connecting: Deferred[Any] = Deferred()
        if self._transport is None:
            connecting.errback(ConnectionRefusedError())
        else:
            self._transport.protocol = protocolFactory.buildProtocol(None)
            self._transport.protocol.makeConnection(self._transport)
            connecting.callback(self._transport.protocol)
        return connecting


class GuardTests(SynchronousTestCase):
    """By TLS a connection is made when its handshake is over."""

    def connect(self, transport: Transport | None) -> Deferred[Any]:
        return GuardedEndpoint(Endpoint(transport), MAX_HEAD_BYTES).connect(Factory.forProtocol(Protocol))

    def test_made(self) -> None:
        """With TLS a connection is made when its handshake is over; what breaks before had nothing of ours."""
        self.assertTrue(self.successResultOf(self.connect(Transport())).connected)
        transport = Transport(tls=True)
        connecting = self.connect(transport)
        self.assertNoResult(connecting)
        transport.protocol.handshakeCompleted()
        self.assertTrue(self.successResultOf(connecting).connected)
        transport = Transport(tls=True)
        broken, refused = self.connect(transport), self.connect(None)
        transport.end(ConnectionDone("why"))
        for connecting, reason in ((broken, ConnectionDone), (refused, ConnectionRefusedError)):
            self.assertIsInstance(self.failureResultOf(connecting, NotConnected).value.reason, reason)

    def test_refused_within(self) -> None:
        """A connection that is being closed while the handshake ends is none, nor one for which nobody waits."""
        transport = Transport(tls=True)
        connecting = self.connect(transport)
        transport.loseConnection()
        transport.protocol.handshakeCompleted()
        self.assertNoResult(connecting)
        transport.end(ConnectionDone())
        self.failureResultOf(connecting, NotConnected)
        transport = Transport(tls=True)
        connecting = self.connect(transport)
        connecting.cancel()
        self.failureResultOf(connecting, CancelledError)
        self.assertTrue(transport.disconnecting)
        transport.end(ConnectionLost())


class StreamTransport(StringTransport):
    """One that tells its protocol when it is cut."""

    stream: EventStream

    def stopProducing(self) -> None:
        """Cut it."""
        super().stopProducing()  # type: ignore[no-untyped-call]
        self.stream.connectionLost(Failure(ResponseDone()))


class EventStreamTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.clock, self.count, transport = Clock(), 0, StreamTransport()
        self.stream = transport.stream = EventStream(self.clock, self._count_event)
        self.stream.makeConnection(transport)  # type: ignore[no-untyped-call]

    def _count_event(self) -> None:
        self.count += 1

    def test_events(self) -> None:
        """Each whole event is heard once, however it is cut; a comment is none, and an endless one is not kept."""
        for piece in (b"id: 1\nev", b"ent: ready\n", b"\n: still here\n\n", b"event: a\n\nevent: b\n\nevent: c"):
            self.stream.dataReceived(piece)
        self.assertEqual(self.count, 3)
        self.assertNoResult(self.stream.ended)
        self.stream.dataReceived(b"x" * 70_000)
        self.assertIsNone(self.successResultOf(self.stream.ended))

    def test_silence(self) -> None:
        """Where the daemon is silent too long it is over; anything that comes puts that off."""
        self.clock.advance(SILENCE_SECONDS - 1)
        self.stream.dataReceived(b": still here\n\n")
        self.clock.advance(SILENCE_SECONDS - 1)
        self.assertNoResult(self.stream.ended)
        self.clock.advance(1)
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


class Error(Exception):
    """What breaks TLS, as Twisted hands it on."""

    __module__ = "OpenSSL.SSL"


class VerificationError(Exception):
    """The same, where a certificate is another's."""

    __module__ = "service_identity.exceptions"


UNVERIFIED = Error([("SSL routines", "", "certificate verify failed")])
BROKEN = Error([("SSL routines", "", "wrong version number")])


class WhyTests(SynchronousTestCase):
    """Why somebody was not let in."""

    def test_certificate(self) -> None:
        """What is wrong with a certificate is told apart; broken TLS was never spoken, or says nothing of whom."""
        for error in (UNVERIFIED, NotConnected(UNVERIFIED)):
            self.assertIn("not from a trusted authority", str(why_untrusted(error)))
        for named in (VerificationError(), NotConnected(VerificationError())):
            self.assertIn("another name", str(why_untrusted(named)))
        self.assertIn("does not use TLS", str(why_untrusted(NotConnected(BROKEN))))
        self.assertIsNone(why_untrusted(BROKEN))
        self.assertIsNone(why_untrusted(NotConnected(ConnectionDone())))
        self.assertIsNone(why_untrusted(ConnectionDone()))
