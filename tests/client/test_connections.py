"""Connections that are kept alive tell the truth about what was sent on them."""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import Connections, DaemonUnreachable
from aileron.client._courier import MOST_KEPT

HEALTHY = b'{"status": "ok"}'


class KeptConnectionTests(SynchronousTestCase):
    """One connection, used twice."""

    def setUp(self) -> None:
        """A client that has connected once."""
        self.reactor = MemoryReactorClock()
        self.daemon = Connections(self.reactor).daemon("http://127.0.0.1:9", "ail_a_test")
        first = Deferred.fromCoroutine(self.daemon.health())
        factory: Any = self.reactor.tcpClients[0][2]
        self.protocol: Any = factory.buildProtocol(None)
        self.transport = StringTransport()
        self.protocol.makeConnection(self.transport)
        self.protocol.dataReceived(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(HEALTHY), HEALTHY))
        self.assertEqual(self.successResultOf(first), {"status": "ok"})
        self.transport.clear()

    def test_cut_off_counts_as_sent(self) -> None:
        """A request that is cut off on a kept connection may have arrived, and is not sent again behind one's back."""
        second = Deferred.fromCoroutine(self.daemon.health())
        self.assertIn(b"GET /v1/health", self.transport.value())
        self.assertNoResult(second)
        self.protocol.connectionLost(Failure(ConnectionLost()))
        self.assertTrue(self.failureResultOf(second, DaemonUnreachable).value.sent)
        self.assertEqual(len(self.reactor.tcpClients), 1)


class ManyTests(SynchronousTestCase):
    """Connections at once."""

    def test_few_are_kept(self) -> None:
        """Each request under way has a connection of its own; only so many are kept, and closing closes those."""
        reactor, transports, asking = MemoryReactorClock(), [], []
        connections = Connections(reactor)
        daemon = connections.daemon("http://127.0.0.1:9", None)
        for _ in range(MOST_KEPT + 1):
            asking.append(Deferred.fromCoroutine(daemon.health()))
            factory: Any = reactor.tcpClients[-1][2]
            transports.append((factory.buildProtocol(None), StringTransport()))
            transports[-1][0].makeConnection(transports[-1][1])
        for (protocol, _transport), asked in zip(transports, asking, strict=True):
            protocol.dataReceived(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(HEALTHY), HEALTHY))
            self.assertEqual(self.successResultOf(asked), {"status": "ok"})
        self.assertEqual([transport.disconnecting for _, transport in transports], [False] * MOST_KEPT + [True])
        closing = connections.close()
        self.assertTrue(all(transport.disconnecting for _, transport in transports))
        self.assertNoResult(closing)
        for protocol, _transport in transports:
            protocol.connectionLost(Failure(ConnectionLost()))
        self.successResultOf(closing)


class SiteTests(SynchronousTestCase):
    """Where a connection leads."""

    def test_each_its_own(self) -> None:
        """Each site is asked at its own address."""
        reactor = MemoryReactorClock()
        connections = Connections(reactor)
        for port in (9, 10):
            self.assertNoResult(Deferred.fromCoroutine(connections.daemon(f"http://127.0.0.1:{port}", None).health()))
        self.assertEqual([client[:2] for client in reactor.tcpClients], [("127.0.0.1", 9), ("127.0.0.1", 10)])

    def test_https(self) -> None:
        """Where the address says https, nothing leaves in the clear."""
        reactor, transport = MemoryReactorClock(), _TCPTransport()
        self.assertNoResult(Deferred.fromCoroutine(Connections(reactor).daemon("https://127.0.0.1:9", "t").health()))
        factory: Any = reactor.tcpClients[0][2]
        factory.buildProtocol(None).makeConnection(transport)
        self.assertEqual(transport.value()[:1], b"\x16", "not the handshake of TLS")


class _TCPTransport(StringTransport):
    def setTcpNoDelay(self, enabled: bool) -> None: ...
