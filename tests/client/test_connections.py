"""Connections that are kept alive tell the truth about what was sent on them."""

from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionLost
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.client import Connections, DaemonUnreachable

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
