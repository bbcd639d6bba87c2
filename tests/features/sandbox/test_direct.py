"""Programs in a sandbox that ignore the proxy: which host their TLS hello means, and what the proxy is asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IReactorTime
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.launch._services import find_direct
from aileron.features.own_tools.client import OpenedServices
from aileron.features.sandbox.direct import HELLO_SECONDS, DirectFactory, lead_here
from aileron.features.sandbox.way_out import WayOut
from aileron.model.tool_claims import NO_CALLER, ToolCaller
from tests.features.egress.hellos import ech, message, real_hello, record, records, server_name

HOST = "api.github.com"
OTHER = "other.example"
TICKET = b"AILERON-EGRESS a-ticket\r\n"
CONNECT = f"CONNECT {HOST}:443 HTTP/1.1\r\n\r\n".encode()
GOOD = b"HTTP/1.1 200 Connection established\r\n\r\n"
ALERT = bytes.fromhex("15030300020270")


class ConnectionTests(SynchronousTestCase):
    """L{DirectFactory}."""

    def setUp(self) -> None:
        self.reactor = MemoryReactorClock()
        self.asked = 0
        opened = OpenedServices(("github",), "", (HOST, "alone.example:8443", "*.many.example"))
        self.hosts = find_direct(opened)
        assert self.hosts is not None
        proxied = WayOut(("npm",), self.dial).factory(self.reactor, lambda _client, _server: NO_CALLER)
        self.factory: Any = DirectFactory(proxied, self.hosts, cast("IReactorTime", self.reactor))
        self.program, self.proxy = StringTransport(), StringTransport()
        inside: Any = self.factory.buildProtocol(None)
        inside.makeConnection(self.program)
        self.inside = inside

    async def dial(self, _caller: ToolCaller) -> tuple[int, bytes]:
        """Return the proxy's port and a ticket."""
        self.asked += 1
        return 4711, TICKET

    def reach(self) -> None:
        """Have the proxy accept the connection."""
        outside: Any = self.reactor.tcpClients[-1][2].buildProtocol(None)
        outside.makeConnection(self.proxy)
        self.outside = outside

    def assert_refused(self) -> None:
        """The program got an alert, its connection ends, and the daemon was asked for nothing."""
        self.assertEqual((self.program.value(), self.program.disconnecting, self.asked), (ALERT, True, 0))

    def test_open(self) -> None:
        """The proxy is asked for the host, gets the hello as it was, and its own answer is not passed on."""
        hello = real_hello(HOST)
        self.inside.dataReceived(hello)
        self.assertEqual(self.program.producerState, "paused")
        self.reach()
        self.assertEqual(self.proxy.value(), TICKET + CONNECT + hello)
        self.assertEqual(self.program.producerState, "producing")
        for piece in (GOOD[:9], GOOD[9:] + b"server ", b"hello"):
            self.outside.dataReceived(piece)
        self.inside.dataReceived(b"more")
        self.assertEqual(self.program.value(), b"server hello")
        self.assertTrue(self.proxy.value().endswith(hello + b"more"))
        self.inside.connectionLost(Failure(ConnectionDone()))
        self.assertTrue(self.proxy.disconnecting)
        self.assertEqual((len(self.factory.protocols), self.reactor.getDelayedCalls()), (0, []))

    def test_pieces(self) -> None:
        """A hello may come byte by byte and in several records."""
        hello = records(message(server_name(HOST.encode())), [5, 7])
        for number in hello:
            self.assertEqual(self.asked, 0)
            self.inside.dataReceived(bytes((number,)))
        self.reach()
        self.assertEqual(self.proxy.value(), TICKET + CONNECT + hello)

    def test_other_name(self) -> None:
        """A name that is not one of the session's services is refused at once, also that of one with another port."""
        for name in (OTHER, "alone.example", f"x.{HOST}", "one.many.example"):
            self.setUp()
            self.inside.dataReceived(real_hello(name))
            self.assert_refused()

    def test_no_name(self) -> None:
        """A hello without a name, with two, with a hidden one, and anything but TLS is refused."""
        for data in (
            real_hello(None),
            record(message(server_name(HOST.encode(), OTHER.encode()))),
            record(message(server_name(HOST.encode()), ech())),
            b"GET / HTTP/1.1\r\nHost: api.github.com\r\n\r\n",
            b"\x80\x2e\x01\x03\x01",
        ):
            self.setUp()
            self.inside.dataReceived(data)
            self.assert_refused()

    def test_large(self) -> None:
        """A hello that does not end is refused after 16 KiB."""
        hello = b"\1" + (1 << 20).to_bytes(3, "big") + bytes(1 << 20)
        self.inside.dataReceived(record(hello[: 1 << 14]))
        self.assert_refused()
        self.inside.dataReceived(bytes(1 << 20))
        self.assertEqual(self.program.value(), ALERT)

    def test_silent(self) -> None:
        """A program that does not end its hello is let go after some seconds."""
        self.inside.dataReceived(real_hello(HOST)[:-1])
        self.reactor.advance(HELLO_SECONDS)
        self.assertTrue(self.program.disconnected)

    def test_refused(self) -> None:
        """Where the proxy refuses, or the daemon is gone, the program reads an alert."""
        self.inside.dataReceived(real_hello(HOST))
        self.reach()
        self.outside.dataReceived(b"HTTP/1.1 403 No\r\nContent-Length: 3\r\n\r\nNo.")
        self.assertEqual((self.program.value(), self.program.disconnecting), (ALERT, True))
        self.setUp()
        self.inside.dataReceived(real_hello(HOST))
        cast("Any", self.reactor.tcpClients[-1][2]).clientConnectionFailed(None, Failure(ConnectionDone()))
        self.assertEqual((self.program.value(), self.program.disconnecting), (ALERT, True))

    def test_endless_answer(self) -> None:
        """An answer of the proxy that does not end is not kept."""
        self.inside.dataReceived(real_hello(HOST))
        self.reach()
        self.outside.dataReceived(b"x" * (16 * 1024))
        self.assertEqual(self.program.value(), ALERT)

    def test_many(self) -> None:
        """No more than 128 connections are open."""
        for _ in range(127):
            self.factory.buildProtocol(None).makeConnection(StringTransport())
        self.assertIsNone(self.factory.buildProtocol(None))


class HostsTests(SynchronousTestCase):
    """L{lead_here}."""

    def test_lines(self) -> None:
        """The names lead to the sandbox, also if the system's list had them; other lines stay."""
        path = Path(self.mktemp()).absolute()
        path.write_text(f"127.0.0.1 localhost\n10.0.0.1 {HOST.upper()} x # {OTHER}\n10.0.0.2 {OTHER}\n")
        with lead_here({HOST}, str(path)) as files:
            ((place, ours),) = files.items()
            self.assertEqual(place, str(path.resolve()))
            self.assertEqual(Path(ours).read_text(), f"127.0.0.1 {HOST}\n127.0.0.1 localhost\n10.0.0.2 {OTHER}\n")
        self.assertFalse(Path(ours).exists())

    def test_none(self) -> None:
        """Without services nothing is led."""
        self.assertIsNone(find_direct(None))
        self.assertIsNone(find_direct(OpenedServices(("x",), "", ("alone.example:8443",))))
