"""Connections from inside, on their way to the daemon's proxy."""

from __future__ import annotations

from typing import Any

from attrs import evolve
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone, ConnectionRefusedError
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.unthreaded import UnthreadedPool, UnthreadedReactor
from aileron.features.sandbox._socket_forwarder import forward_to
from aileron.features.sandbox.callers import Address
from aileron.features.sandbox.way_out import WayOut, proxy_variables
from aileron.model.tool_claims import NO_CALLER, ToolCaller
from tests.features.gateway.net import End, Net


class ForwardTests(SynchronousTestCase):
    """L{forward_to}."""

    def test_address(self) -> None:
        """What comes from inside reaches the daemon from an address by which it knows sandboxes, as it is."""
        reactor, program, daemon = MemoryReactorClock(), StringTransport(), StringTransport()
        inside: Any = forward_to(reactor, "127.0.0.1", 7001).buildProtocol(None)
        inside.makeConnection(program)
        self.assertEqual(program.producerState, "paused")
        host, port, factory, _, own = reactor.tcpClients[0]
        self.assertEqual((host, port, own), ("127.0.0.1", 7001, ("127.65.76.1", 0)))
        outside: Any = factory.buildProtocol(None)
        outside.makeConnection(daemon)
        inside.dataReceived(b"in")
        outside.dataReceived(b"out")
        self.assertEqual((daemon.value(), program.value()), (b"in", b"out"))

    def test_at_once(self) -> None:
        """Small pieces are sent at once in both directions, such as the events of a model's answer."""
        reactor, ends = MemoryReactorClock(), [End(Net()), End(Net())]
        inside: Any = forward_to(reactor, "127.0.0.1", 7001).buildProtocol(None)
        inside.makeConnection(ends[0])
        outside: Any = reactor.tcpClients[0][2].buildProtocol(None)
        outside.makeConnection(ends[1])
        self.assertEqual([True, True], [each.sends_at_once for each in ends])


class WayOutTests(SynchronousTestCase):
    """L{WayOut}."""

    def setUp(self) -> None:
        """A program inside that has connected, while the daemon is asked for a ticket."""
        self.reactor = MemoryReactorClock()
        self.asked: Deferred[tuple[int, bytes]] = Deferred()

        self.callers: list[ToolCaller] = []
        self.way_out = WayOut(("npm",), self.dial)
        way_out: Any = self.way_out
        self.factory = way_out.factory(self.reactor, self.find_caller)
        self.program, self.proxy = StringTransport(), StringTransport()
        self.inside: Any = self.factory.buildProtocol(None)
        self.inside.makeConnection(self.program)

    async def dial(self, caller: ToolCaller) -> tuple[int, bytes]:
        """Remember the caller, and wait for the daemon."""
        self.callers.append(caller)
        return await self.asked

    def find_caller(self, client: Address, server: Address) -> ToolCaller:
        """Return a process that is named after the connection."""
        return ToolCaller(7, 123, f"{client[1]} to {server[1]}")

    def test_callers(self) -> None:
        """The daemon is told which process has connected, if it wants to know; the others are not looked for."""
        self.assertEqual(self.callers, [NO_CALLER])
        reactor: Any = UnthreadedReactor()
        pool = UnthreadedPool()
        reactor.getThreadPool = lambda: pool
        factory: Any = evolve(self.way_out, names_callers=True).factory(reactor, self.find_caller)
        for left, callers in ((False, [ToolCaller(7, 123, "4000 to 3128")]), (True, [])):
            del self.callers[:]
            pool.hold()
            inside: Any = factory.buildProtocol(None)
            peer, host = (IPv4Address("TCP", "127.0.0.1", port) for port in (4000, 3128))
            inside.makeConnection(StringTransport(hostAddress=host, peerAddress=peer))
            self.assertEqual(self.callers, [])
            if left:
                inside.connectionLost(Failure(ConnectionDone()))
            pool.release()
            self.assertEqual(self.callers, callers)

    def reach(self) -> None:
        """Have the proxy answer at the port that the daemon said."""
        self.asked.callback((4711, b"AILERON-EGRESS a-ticket\r\n"))
        client: Any = self.reactor.tcpClients[0]
        self.assertEqual(client[:2], ("127.0.0.1", 4711))
        self.outside = client[2].buildProtocol(None)
        self.outside.makeConnection(self.proxy)

    def test_ticket_first(self) -> None:
        """The proxy gets the ticket first, then what the program says; the program sees nothing of the ticket."""
        self.assertEqual(self.program.producerState, "paused")
        self.reach()
        self.assertEqual(self.program.producerState, "producing")
        self.inside.dataReceived(b"CONNECT a.example:443 HTTP/1.1\r\n\r\n")
        self.outside.dataReceived(b"HTTP/1.1 403 No\r\n\r\n")
        self.assertEqual(self.proxy.value(), b"AILERON-EGRESS a-ticket\r\nCONNECT a.example:443 HTTP/1.1\r\n\r\n")
        self.assertEqual(self.program.value(), b"HTTP/1.1 403 No\r\n\r\n")

    def test_at_once(self) -> None:
        """Small pieces are sent at once in both directions, as those of a TLS handshake are."""
        self.asked.callback((4711, b"ticket"))
        ends = [End(Net()), End(Net())]
        inside: Any = self.factory.buildProtocol(None)
        inside.makeConnection(ends[0])
        outside: Any = self.reactor.tcpClients[-1][2].buildProtocol(None)
        outside.makeConnection(ends[1])
        self.assertEqual([True, True], [each.sends_at_once for each in ends])

    def failed(self) -> None:
        """The program is told, and the connection ends."""
        self.assertTrue(self.program.value().startswith(b"HTTP/1.1 502 Aileron: the daemon does not answer\r\n"))
        self.assertTrue(self.program.disconnecting)

    def test_no_daemon(self) -> None:
        """Where the daemon gives no ticket, the program is told."""
        self.asked.errback(ZeroDivisionError())
        self.failed()

    def test_no_proxy(self) -> None:
        """Where the proxy does not answer, the program is told."""
        self.asked.callback((4711, b"AILERON-EGRESS a-ticket\r\n"))
        outside: Any = self.reactor.tcpClients[0][2]
        outside.clientConnectionFailed(None, Failure(ConnectionRefusedError()))
        self.failed()

    def test_left(self) -> None:
        """A program that has left is connected to nobody, however far it was."""
        self.inside.connectionLost(Failure(ConnectionDone()))
        self.assertEqual((self.reactor.tcpClients, self.program.value()), ([], b""))

    def test_left_late(self) -> None:
        """A ticket that is not needed any more is not handed in."""
        self.asked.callback((4711, b"AILERON-EGRESS a-ticket\r\n"))
        self.inside.connectionLost(Failure(ConnectionDone()))
        factory: Any = self.reactor.tcpClients[0][2]
        outside = factory.buildProtocol(None)
        outside.makeConnection(self.proxy)
        self.assertEqual((self.proxy.value(), self.proxy.disconnecting), (b"", True))

    def test_many(self) -> None:
        """A sandbox has so many connections at most, so that it does not keep the daemon busy with tickets."""
        made = [self.inside]
        while (inside := self.factory.buildProtocol(None)) is not None:
            inside.makeConnection(StringTransport())
            made.append(inside)
        self.assertEqual(len(made), 128)
        made[5].connectionLost(Failure(ConnectionDone()))
        self.assertIsNotNone(self.factory.buildProtocol(None))

    def test_variables(self) -> None:
        """Programs find the proxy by the variables that they know, Aileron without it, and npm a cache it can write."""
        found = proxy_variables(3128)
        for name in ("http_proxy", "HTTPS_PROXY", "npm_config_https_proxy", "PIP_PROXY", "CARGO_HTTP_PROXY"):
            self.assertEqual(found[name], "http://127.0.0.1:3128")
        self.assertIn("127.0.0.1", found["NO_PROXY"].split(","))
        self.assertEqual(found["npm_config_cache"], "/tmp/npm-cache")
