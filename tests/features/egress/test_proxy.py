"""Connections through the proxy, byte by byte."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import cycle
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ConnectionRefusedError
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock, StringTransport
from twisted.python.failure import Failure

from aileron.features.egress._dialer import Dialer, Unreachable
from aileron.features.egress._listener import ProxyListener
from aileron.features.egress._proxy import HEAD_SECONDS, IDLE_SECONDS, LEAVE_SECONDS, MOST_SECONDS, ProxyConnection
from aileron.features.egress._sessions import MOST_TUNNELS, EgressRefused, Tunnel
from aileron.model.audit import Event
from aileron.model.errors import StoreUnavailable
from aileron.model.interfaces.store import IAudit
from aileron.testing import AuditProxy
from tests.features.egress.case import HOST, PROJECT, EgressCase
from tests.features.egress.hellos import (
    APPLICATION,
    CHANGE_CIPHER_SPEC,
    RETRY,
    message,
    record,
    server_hello,
    server_name,
)
from tests.features.egress.opener import FakeOpener, ServedConnection
from tests.features.gateway.net import BUFFER_BYTES, End, Net

_HELLO = record(message(server_name(b"registry.example")))
_OTHER = record(message(server_name(b"other.example")))
_RAW = record(b"secret", APPLICATION)
_OPENED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_ALERT = bytes.fromhex("15030300020270")


class Peer(Protocol):
    """Either end; it remembers what came."""

    transport: Any

    def __init__(self) -> None:
        self.got = b""
        self.lost = False

    def dataReceived(self, data: bytes) -> None:
        """Remember it."""
        self.got += data

    def connectionLost(self, reason: object = None) -> None:
        """Remember that."""
        self.lost = True


class FakeDialer:
    """Connects to one host in memory."""

    def __init__(self, net: Net) -> None:
        self.net, self.dialled, self.host = net, list[tuple[str, bool]](), Peer()
        self.waiting: Deferred[None] = succeed(None)

    async def connect(self, host: str, factory: Any, *, private_network: bool) -> Any:
        """Connect, when C{waiting} fires."""
        self.dialled.append((host, private_network))
        await self.waiting
        protocol = factory.buildProtocol(None)
        self.net.connect(protocol, self.host)
        return protocol


class ProxyCase(EgressCase):
    """A session that may reach one host, and what connects for it."""

    def setUp(self) -> None:
        """Let it out."""
        super().setUp()
        self.net = Net()
        self.dialer = FakeDialer(self.net)
        self.access = self.opened("registry.example")

    def connected(self, host: str = HOST, ticket: str | None = None, early: bytes = b"") -> tuple[Peer, End]:
        """A program in the sandbox, which has asked for a host.

        :param early: what it sends with that.
        """
        if ticket is None:
            _, ticket = self.sync(self.sessions.open(self.session_in(PROJECT), ("registry.example",)))
        program = Peer()
        dialer: Any = self.dialer
        end, _ = self.net.connect(program, ProxyConnection(self.sessions, dialer, self.clock))
        end.write(f"AILERON-EGRESS {ticket}\r\nCONNECT {host} HTTP/1.1\r\n\r\n".encode() + early)
        self.net.run()
        return program, end

    @property
    def host(self) -> Peer:
        """The other end."""
        return self.dialer.host

    def say(self, end: Any, data: bytes) -> None:
        """Send something."""
        end.write(data)
        self.net.run()


class TunnelTests(ProxyCase):
    """An admitted connection."""

    def test_carried(self) -> None:
        """After a hello by the host's name everything is carried both ways, and counted."""
        program, end = self.connected()
        self.assertEqual((program.got, self.dialer.dialled), (_OPENED, [(HOST, False)]))
        self.say(end, _HELLO)
        self.say(self.host.transport, server_hello())
        self.say(end, _RAW)
        self.assertEqual((self.host.got, program.got), (_HELLO + _RAW, _OPENED + server_hello()))
        (host,) = self.sessions.hosts()
        self.assertEqual((host.sent, host.received), (len(_HELLO + _RAW), len(server_hello())))
        end.loseConnection()
        self.net.run()
        self.assertEqual((self.host.lost, len(self.access.tunnels)), (True, 0))

    def test_at_once(self) -> None:
        """Small pieces are sent at once, to the program and to the host."""
        _, end = self.connected()
        dialled: Any = self.host.transport
        self.assertEqual([each.sends_at_once for each in (end.other, dialled.other)], [True, True])

    def test_host_leaves(self) -> None:
        """The program gets what the host said last, and then the end."""
        program, end = self.connected()
        self.say(end, _HELLO)
        self.host.transport.write(server_hello() + b"bye")
        self.host.transport.loseConnection()
        self.net.run()
        self.assertEqual((program.got, program.lost), (_OPENED + server_hello() + b"bye", True))

    def test_nothing_before_the_hello(self) -> None:
        """Nothing reaches the host before the hello is whole and names it."""
        program, end = self.connected()
        for at in range(len(_HELLO)):
            self.assertEqual(self.host.got, b"")
            self.say(end, _HELLO[at : at + 1])
        self.assertEqual(self.host.got, _HELLO)
        self.assertFalse(program.lost)

    def blocked(self, data: bytes, why: str) -> None:
        """Nothing of this reaches the host; it is on record, and the connection ends."""
        program, end = self.connected()
        self.say(end, data)
        self.assertEqual((program.got, program.lost), (_OPENED + _ALERT, True))
        self.assertEqual((self.host.got, self.host.lost), (b"", True))
        self.assertEqual(
            self.records_of_egress()[-1], ("egress.blocked", {"host": HOST, "project": PROJECT, "why": why})
        )
        self.dialer.host = Peer()

    def test_blocked(self) -> None:
        """Another name, no name and no TLS are blocked."""
        self.blocked(_OTHER, "names other.example")
        self.blocked(record(message()), "has no server name (SNI)")
        self.blocked(b"GET / HTTP/1.1\r\n\r\n", "is not TLS")

    def test_hello_of_no_reply(self) -> None:
        """What stands behind the hello waits until the host has answered."""
        _, end = self.connected()
        self.say(end, _HELLO + _RAW)
        self.assertEqual(self.host.got, _HELLO)
        self.say(self.host.transport, b"\x15\x03\x03\x00\x02\x02\x28")
        self.assertEqual(self.host.got, _HELLO + _RAW)

    @given(st.lists(st.integers(1, 30), min_size=1, max_size=8))
    def test_second_hello(self, sizes: list[int]) -> None:
        """A host that asks for another hello gets one by its own name only, in whatever pieces it comes."""
        pieces = cycle(sizes)
        for second, passes in ((_HELLO, True), (_OTHER, False)):
            self.dialer.host, self.net.most = Peer(), lambda: BUFFER_BYTES
            program, end = self.connected()
            self.net.most = lambda: next(pieces)
            compatible = record(b"\1", CHANGE_CIPHER_SPEC) + second
            self.say(end, _HELLO + compatible)
            self.assertEqual(self.host.got, _HELLO, "the second hello left before it was looked at")
            self.say(self.host.transport, server_hello(RETRY))
            self.assertEqual(self.host.got, _HELLO + (compatible if passes else b""))
            self.assertEqual(program.lost, not passes)
            end.loseConnection()
            self.net.run()

    def test_host_speaks_first(self) -> None:
        """A host that speaks before it is asked is no TLS server: the connection ends."""
        program, _ = self.connected()
        self.say(self.host.transport, b"220 smtp.example")
        self.assertEqual((program.got, program.lost), (_OPENED, True))
        blocked = {"host": HOST, "project": PROJECT, "why": "the host speaks first, so it is not TLS"}
        self.assertEqual(self.records_of_egress()[-1], ("egress.blocked", blocked))

    def test_pressure(self) -> None:
        """Who sends faster than the other end reads is told to wait."""
        _, end = self.connected()
        self.say(end, _HELLO)
        self.say(self.host.transport, server_hello())
        self.host.transport.pauseProducing()
        for _ in range(40):
            self.say(end, bytes(BUFFER_BYTES))
        self.assertLess(max(each.peak for each in self.net.ends if each is not end), 4 * BUFFER_BYTES)
        self.host.transport.resumeProducing()
        self.net.run()
        self.assertEqual(len(self.host.got), len(_HELLO) + 40 * BUFFER_BYTES)

    def test_pressure_before_second_hello(self) -> None:
        """A host that sends while another hello is awaited is told to wait for a program that does not read."""
        _, end = self.connected()
        self.say(end, _HELLO)
        self.say(self.host.transport, server_hello(RETRY))
        end.pauseProducing()
        for _ in range(40):
            self.say(self.host.transport, bytes(BUFFER_BYTES))
        self.assertLess(max(each.peak for each in self.net.ends if each is not self.host.transport), 4 * BUFFER_BYTES)

    def stuck(self) -> tuple[End, int]:
        """A program that sent more than its host reads: its end, and what the host has read."""
        _, end = self.connected()
        self.say(end, _HELLO)
        self.say(self.host.transport, server_hello())
        self.host.transport.pauseProducing()
        self.say(end, bytes(BUFFER_BYTES))
        return end, len(self.host.got)

    def test_cut_for_good(self) -> None:
        """What has not reached a host when its connection is cut never does, and nothing is left open to it."""
        _, read = self.stuck()
        self.sessions.end("session-1")
        self.net.run()
        self.host.transport.resumeProducing()
        self.net.run()
        self.assertEqual((len(self.host.got), self.host.lost, self.net.ends), (read, True, []))

    def test_leaves_a_stuck_host(self) -> None:
        """A host has some time to read what a program sent before it left; until then it counts as a connection."""
        end, read = self.stuck()
        end.loseConnection()
        self.net.run()
        self.clock.advance(LEAVE_SECONDS - 1)
        self.net.run()
        self.assertEqual((self.host.lost, len(self.access.tunnels)), (False, 1))
        self.clock.advance(1)
        self.net.run()
        self.host.transport.resumeProducing()
        self.net.run()
        self.assertEqual((len(self.host.got), self.host.lost, len(self.access.tunnels)), (read, True, 0))
        self.assertEqual(self.clock.getDelayedCalls(), [])

    def test_leaves_a_slow_host(self) -> None:
        """A host that reads in that time gets all that a program sent before it left."""
        end, read = self.stuck()
        end.loseConnection()
        self.net.run()
        self.host.transport.resumeProducing()
        self.net.run()
        self.assertEqual((len(self.host.got), self.host.lost), (read + BUFFER_BYTES, True))

    def test_blocked_host(self) -> None:
        """A host that asked for another hello is left at once where that names another, whatever it still sends."""
        program, end = self.connected()
        self.say(end, _HELLO)
        self.say(self.host.transport, server_hello(RETRY))
        end.pauseProducing()
        self.host.transport.write(bytes(2 * BUFFER_BYTES))
        self.say(end, _OTHER)
        self.assertTrue(self.host.lost)
        end.resumeProducing()
        self.net.run()
        self.assertTrue(program.lost)

    def test_cut(self) -> None:
        """A session that ends takes its connections with it."""
        program, end = self.connected()
        self.say(end, _HELLO)
        self.sessions.end("session-1")
        self.net.run()
        self.assertEqual((program.lost, self.host.lost), (True, True))


class ServedTests(ProxyCase):
    """Connections that the daemon answers itself."""

    def setUp(self) -> None:
        """Open the host here."""
        super().setUp()
        self.opener = FakeOpener(HOST)
        self.sessions.register_opener(self.opener)

    @property
    def served(self) -> ServedConnection:
        """The last connection."""
        return self.opener.served[-1]

    def test_served(self) -> None:
        """Everything from the hello on goes to the opener and back, is counted, and the host is never connected to."""
        program, end = self.connected(early=_HELLO[:9])
        self.assertEqual(([], _OPENED), (self.opener.served, program.got))
        self.say(end, _HELLO[9:] + b"more")
        self.say(end, _RAW)
        self.served.transport.write(b"ab")
        self.served.transport.writeSequence([b"c", b"d"])
        self.net.run()
        self.assertEqual(_HELLO + b"more" + _RAW, self.served.got)
        self.assertEqual((_OPENED + b"abcd", []), (program.got, self.dialer.dialled))
        (host,) = self.sessions.hosts()
        self.assertEqual((len(self.served.got), 4, "opened here"), (host.sent, host.received, host.basis))
        self.served.transport.loseConnection()
        self.net.run()
        self.assertEqual((True, 1, 0), (program.lost, self.served.lost, len(self.access.tunnels)))
        self.assertEqual([], self.clock.getDelayedCalls())

    def test_other_name(self) -> None:
        """A hello that names another host, and what is not TLS, is blocked before the opener sees anything."""
        for data in (_OTHER, record(message()), b"GET / HTTP/1.1\r\n\r\n"):
            program, end = self.connected()
            self.say(end, data)
            self.assertEqual((_OPENED + _ALERT, True, []), (program.got, program.lost, self.opener.served))

    def test_other_host(self) -> None:
        """A host that is not opened here is connected to as ever."""
        self.opener.opened = "other.example:443"
        _, end = self.connected()
        self.say(end, _HELLO)
        self.assertEqual((_HELLO, []), (self.host.got, self.opener.served))

    def test_session_ended(self) -> None:
        """If the session has ended by the hello, the connection ends; a session that ends later cuts it."""
        self.opener.ended = True
        program, end = self.connected()
        self.say(end, _HELLO)
        self.assertTrue(program.lost)
        self.opener.ended = False
        program, end = self.connected()
        self.say(end, _HELLO)
        self.sessions.end("session-1")
        self.net.run()
        self.assertEqual((True, 1), (program.lost, self.served.lost))

    def test_program_leaves(self) -> None:
        """A program that leaves is told to the opener, once."""
        _, end = self.connected()
        self.say(end, _HELLO)
        end.loseConnection()
        self.net.run()
        self.assertEqual((1, 0), (self.served.lost, len(self.access.tunnels)))

    def test_times(self) -> None:
        """The opener says when a quiet connection ends; every connection ends some time."""
        program, end = self.connected()
        self.say(end, _HELLO)
        self.clock.advance(IDLE_SECONDS * 10)
        self.net.run()
        self.assertFalse(program.lost)
        self.clock.advance(MOST_SECONDS)
        self.net.run()
        self.assertTrue(program.lost)

    def test_no_hello(self) -> None:
        """A program that sends no hello is not waited for."""
        program, _ = self.connected()
        self.clock.advance(HEAD_SECONDS)
        self.net.run()
        self.assertEqual((True, []), (program.lost, self.opener.served))

    def test_refused(self) -> None:
        """A host that the opener refuses is refused with its reason."""
        self.opener.problem = "launch the agent again"
        program, _ = self.connected()
        self.assertIn(f"403 Aileron: {HOST} is not allowed: launch the agent again".encode(), program.got)
        self.assertEqual([], self.dialer.dialled)


class GatedAudit(AuditProxy):
    """A record on which that of a connection waits.

    :ivar waits: the type of what waits.
    """

    def __init__(self, audit: IAudit) -> None:
        super().__init__(audit)
        self.gate: Deferred[None] = Deferred()
        self.waits = "egress.connected"

    async def append(self, *events: Event) -> None:
        """Wait, if it is that."""
        if events[0].type == self.waits:
            await self.gate
        await super().append(*events)


class RecordTests(ProxyCase):
    """The record of a connection."""

    def setUp(self) -> None:
        """Have it wait."""
        super().setUp()
        self.audit = GatedAudit(self.store.audit)
        self.sessions._audit = self.audit

    def types(self) -> list[str]:
        """What is on record since the session was let out."""
        return [each for each, _ in self.records_of_egress("egress.opened")]

    def test_connected(self) -> None:
        """A connection is on record once there is one, and before a byte is sent by it."""
        waiting: Deferred[None] = Deferred()
        self.dialer.waiting = waiting
        program, end = self.connected()
        self.say(end, _HELLO)
        self.assertEqual(self.types(), ["egress.admitted"])
        waiting.callback(None)
        self.net.run()
        self.assertEqual((self.types(), self.host.got, program.got), (["egress.admitted"], b"", b""))
        self.audit.gate.callback(None)
        self.net.run()
        self.assertEqual(self.types(), ["egress.admitted", "egress.connected"])
        self.assertEqual((self.host.got, program.got), (_HELLO, _OPENED))

    def test_host_meanwhile(self) -> None:
        """A host that hangs up meanwhile cannot be reached, and one that speaks is no TLS server."""
        program, _ = self.connected()
        self.host.transport.loseConnection()
        self.net.run()
        self.audit.gate.callback(None)
        self.net.run()
        self.assertIn(b"502 Aileron: registry.example:443 cannot be reached", program.got)
        self.assertEqual(self.types(), ["egress.admitted", "egress.connected", "egress.failed"])

    def test_cut_meanwhile(self) -> None:
        """What is cut meanwhile was connected, and nothing more is on record of that."""
        for hangs_up in (False, True):
            self.access.reported.clear()
            self.audit.gate = Deferred()
            self.connected()
            before = self.types()
            if hangs_up:
                self.host.transport.loseConnection()
                self.net.run()
            for tunnel in tuple(self.access.tunnels):
                tunnel.cut()
            self.net.run()
            self.assertEqual(self.types(), before)
            self.audit.gate.callback(None)
            self.net.run()
            self.assertEqual(self.types()[len(before) :], ["egress.connected"])
            self.assertEqual((self.host.lost, len(self.access.tunnels)), (True, 0))
            self.dialer.host = Peer()

    def test_cut_while_admitted(self) -> None:
        """What is cut as its admission goes on record has its end there too, and is never connected."""
        self.audit.waits = "egress.admitted"
        ends: Sequence[tuple[Callable[[Tunnel], None], str]] = (
            (lambda tunnel: tunnel.cut(), "it was given up before it was connected"),
            (lambda _: self.sessions.end(self.access.session_id), "the session has ended"),
        )
        for end, why in ends:
            self.audit.gate = Deferred()
            before = len(self.records_of_egress())
            self.connected()
            (tunnel,) = self.access.tunnels
            end(tunnel)
            self.audit.gate.callback(None)
            self.net.run()
            found = [(type_, payload.get("why")) for type_, payload in self.records_of_egress()[before:]]
            found = [each for each in found if each[0] != "egress.ended"]
            self.assertEqual(found, [("egress.admitted", None), ("egress.failed", why)])
            self.assertEqual((self.dialer.dialled, len(self.access.tunnels)), ([], 0))
            self.access.hosts.clear()

    def test_ended_while_another_is_admitted(self) -> None:
        """What waits until another is admitted is not admitted any more, nor asked about, once the session is over."""
        self.audit.waits = "egress.admitted"
        hosts = (HOST, "nobody-named.example:443")
        asked = [Deferred.fromCoroutine(self.sessions.admit(self.access, host)) for host in hosts]
        self.sessions.end(self.access.session_id)
        self.audit.gate.callback(None)
        for each in asked:
            self.assertEqual(self.failureResultOf(each, EgressRefused).value.why, "the session has ended")
        self.assertEqual(self.types(), ["egress.ended", "egress.admitted", "egress.failed"])

    def test_stop(self) -> None:
        """The daemon's end waits until all is on record, also what is told meanwhile."""
        self.audit.waits, ended = "egress.ended", self.audit.gate
        stopped = Deferred.fromCoroutine(self.sessions.stop())
        self.audit.waits, self.audit.gate = "egress.failed", Deferred()
        self.sessions.report("egress.failed", self.access, HOST, "it was given up")
        ended.callback(None)
        self.assertNoResult(stopped)
        self.audit.gate.callback(None)
        self.successResultOf(stopped)
        self.assertEqual(self.types(), ["egress.ended", "egress.failed"])

    def test_host_speaks_meanwhile(self) -> None:
        """A host that speaks meanwhile is no TLS server: the connection ends, and nothing of it arrives."""
        program, _ = self.connected()
        self.say(self.host.transport, b"220 smtp.example")
        self.assertEqual((program.got, program.lost, self.host.lost), (b"", True, True))
        self.audit.gate.callback(None)
        self.net.run()
        self.assertEqual(self.types(), ["egress.admitted", "egress.blocked", "egress.connected"])

    def test_nothing_after_the_end(self) -> None:
        """Of a connection that ends as it goes on record, nothing counts as sent, though its hello was there."""
        ends: Sequence[Callable[[ProxyConnection], None]] = (
            lambda tunnel: tunnel.answered(b"220 smtp.example"),
            lambda tunnel: tunnel.cut(),
        )
        for end in ends:
            self.access.reported.clear()
            self.audit.gate = Deferred()
            self.connected(early=_HELLO)
            (tunnel,) = self.access.tunnels
            assert isinstance(tunnel, ProxyConnection)
            end(tunnel)
            self.audit.gate.callback(None)
            self.net.run()
            self.assertEqual((self.host.got, self.sessions.hosts()[0].sent, len(self.access.tunnels)), (b"", 0, 0))
            self.dialer.host = Peer()

    def test_not_on_record(self) -> None:
        """A connection that cannot be put on record is let go before anything was sent."""
        program, end = self.connected()
        self.say(end, _HELLO)
        self.audit.gate.errback(StoreUnavailable("The disk is full."))
        self.net.run()
        self.assertIn(b"403 Aileron: registry.example:443 is not allowed: the audit log cannot be written", program.got)
        self.assertEqual((self.host.got, self.host.lost, program.lost), (b"", True, True))


class RefusalTests(ProxyCase):
    """Connections that are not admitted."""

    def answered(self, host: str = HOST, ticket: str | None = None) -> str:
        """The first line of the answer, behind which the connection ends."""
        program, _ = self.connected(host, ticket)
        self.assertTrue(program.lost)
        return program.got.split(b"\r\n")[0].decode()

    def test_refused(self) -> None:
        """A host that is not allowed gets 403 with what to do, and nothing is dialled."""
        said = "HTTP/1.1 403 Aileron: other.example:443 is not allowed: it waits for approval; see aileron network list"
        self.assertEqual(self.answered("other.example:443"), said)
        self.assertEqual((self.dialer.dialled, self.sessions.pending()), ([], 1))

    def test_ticket(self) -> None:
        """A ticket that opens nothing gets 403, and nothing is put on record."""
        before = self.records_of_egress()
        self.assertEqual(self.answered(ticket="guessed"), "HTTP/1.1 403 Aileron: the session has ended")
        self.assertEqual((self.records_of_egress(), self.dialer.dialled), (before, []))

    def test_failures(self) -> None:
        """A host that cannot be reached gets 502; one that leads to a forbidden address 403."""
        self.dialer.waiting = fail(Unreachable())
        self.assertEqual(self.answered(), f"HTTP/1.1 502 Aileron: {HOST} cannot be reached")
        self.dialer.waiting = fail(EgressRefused("it leads astray"))
        self.assertEqual(self.answered(), f"HTTP/1.1 403 Aileron: {HOST} is not allowed: it leads astray")
        about = {"host": HOST, "project": PROJECT}
        failed = [("egress.failed", {**about, "why": why}) for why in ("it cannot be reached", "it leads astray")]
        self.assertEqual(self.records_of_egress("egress.opened", "egress.admitted"), failed)

    def test_unforeseen(self) -> None:
        """Any other failure is logged, and gets 500."""
        self.dialer.waiting = fail(ZeroDivisionError())
        self.assertIn("HTTP/1.1 500 ", self.answered())
        self.assertEqual(self.ends(), ["it failed; see aileron log"])
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)

    def ends(self) -> list[object]:
        """Why connections were not made, as is on record."""
        return [payload["why"] for type_, payload in self.records_of_egress() if type_ == "egress.failed"]

    def test_many(self) -> None:
        """A session with too many connections gets 429."""
        self.dialer.waiting = Deferred()
        for _ in range(MOST_TUNNELS):
            self.connected()
        self.assertIn("HTTP/1.1 429 ", self.answered())

    def test_left_early(self) -> None:
        """Who leaves while it is connected takes the connection with it."""
        self.dialer.waiting = Deferred()
        _, end = self.connected()
        self.assertEqual(len(self.access.tunnels), 1)
        end.abortConnection()
        for tunnel in tuple(self.access.tunnels):
            tunnel.cut()
        self.net.run()
        self.assertEqual((len(self.access.tunnels), self.host.transport), (0, None))
        self.assertEqual(self.ends(), ["it was given up before it was connected"])

    def test_cut_early(self) -> None:
        """A session that ends while it is connected has that on record before its own end."""
        self.dialer.waiting = Deferred()
        program, _ = self.connected()
        self.sessions.end(self.access.session_id)
        self.assertEqual([type_ for type_, _ in self.records_of_egress()][-2:], ["egress.failed", "egress.ended"])
        self.net.run()
        self.assertTrue(program.lost)
        self.assertEqual((self.ends(), len(self.access.tunnels)), (["it was given up before it was connected"], 0))


class TimeTests(ProxyCase):
    """How long anything may take."""

    def lasts(self, seconds: float, step: Callable[[], object] = lambda: None) -> Peer:
        """A connection that is over after so many seconds, and not a second before."""
        program = Peer()
        dialer: Any = self.dialer
        self.end, _ = self.net.connect(program, ProxyConnection(self.sessions, dialer, self.clock))
        step()
        self.clock.advance(seconds - 1)
        self.net.run()
        self.assertFalse(program.lost)
        self.clock.advance(1)
        self.net.run()
        self.assertTrue(program.lost)
        self.assertEqual(self.clock.getDelayedCalls(), [])
        return program

    def ask(self, *more: bytes) -> None:
        """Ask for the host, and say more."""
        _, ticket = self.sync(self.sessions.open(self.session_in(PROJECT), ("registry.example",)))
        self.say(self.end, f"AILERON-EGRESS {ticket}\r\nCONNECT {HOST} HTTP/1.1\r\n\r\n".encode())
        for each in more:
            self.say(self.end, each)

    def test_head(self) -> None:
        """Who says nothing is not waited for."""
        self.lasts(HEAD_SECONDS)

    def test_hello(self) -> None:
        """Who is connected and sends no hello is not waited for."""
        self.lasts(HEAD_SECONDS, self.ask)

    def test_idle(self) -> None:
        """A connection on which nothing passes ends; each byte counts, in either direction."""

        def used() -> None:
            self.ask(_HELLO)
            self.clock.advance(IDLE_SECONDS - 1)
            self.say(self.host.transport, server_hello())
            self.clock.advance(IDLE_SECONDS - 1)
            self.say(self.end, _RAW)

        self.lasts(IDLE_SECONDS, used)

    def test_total(self) -> None:
        """Even one that is used ends some time."""

        def used() -> None:
            self.ask(_HELLO)
            self.say(self.host.transport, server_hello())
            for _ in range(MOST_SECONDS // 100 - 1):
                self.clock.advance(100)
                self.say(self.end, _RAW)

        self.lasts(100, used)


class DialerTests(EgressCase):
    """L{Dialer}."""

    def setUp(self) -> None:
        """A reactor that connects nobody by itself."""
        super().setUp()
        self.reactor = MemoryReactorClock()
        self.found: Deferred[Sequence[str]] = Deferred()
        self.dialer = Dialer(self.reactor, lambda _: self.found, lambda: {7001})

    def dial(self, *addresses: str, host: str = HOST, private: bool = False) -> Deferred[Any]:
        """Dial a host that has these addresses."""
        dialling = Deferred.fromCoroutine(self.dialer.connect(host, Factory.forProtocol(Peer), private_network=private))
        self.found.callback(addresses)
        return dialling

    def test_checked_addresses(self) -> None:
        """The very addresses that were judged are connected to; private ones among them are left out."""
        dialling = self.dial("10.0.0.1", "127.0.0.1", "169.254.169.254", "93.184.215.14", "2606:2800:21f::1")
        self.assertNoResult(dialling)
        self.assertEqual([each[:2] for each in self.reactor.tcpClients], [("93.184.215.14", 443)])
        factory = self.reactor.tcpClients[0][2]
        factory.clientConnectionFailed(self.reactor.connectors[0], Failure(ConnectionRefusedError()))
        self.assertEqual([each[:2] for each in self.reactor.tcpClients][1:], [("2606:2800:21f::1", 443)])
        transport = StringTransport()
        other: Any = self.reactor.tcpClients[1][2]
        other.buildProtocol(None).makeConnection(transport)
        self.assertIsInstance(self.successResultOf(dialling), Peer)

    def test_private(self) -> None:
        """A host with private addresses only is refused, unless private ones are meant."""
        for addresses in (
            ("10.0.0.1",),
            ("127.0.0.1", "::1"),
            ("::ffff:10.0.0.1",),
            ("169.254.169.254",),
            ("0.0.0.0",),
        ):
            self.found = Deferred()
            self.failureResultOf(self.dial(*addresses), EgressRefused)
        self.found = Deferred()
        self.dial("169.254.169.254", "10.0.0.1", private=True)
        self.assertEqual([each[0] for each in self.reactor.tcpClients], ["10.0.0.1"])

    def test_itself(self) -> None:
        """The daemon's own ports are never connected to, whatever is meant."""
        self.failureResultOf(self.dial("127.0.0.1", "::1", host="local.example:7001", private=True), EgressRefused)

    def test_few_lookups(self) -> None:
        """Few names are resolved at once, since each may take a thread for long, also when nobody waits any more."""
        asked: list[Deferred[Sequence[str]]] = []

        def resolve(_: str) -> Deferred[Sequence[str]]:
            asked.append(Deferred(lambda _: None))
            return asked[-1]

        dialer = Dialer(self.reactor, resolve, lambda: ())
        factory = Factory.forProtocol(Peer)
        dials = [Deferred.fromCoroutine(dialer.connect(HOST, factory, private_network=False)) for _ in range(9)]
        self.reactor.advance(10)
        for each in dials:
            self.failureResultOf(each, Unreachable)
        self.assertEqual(len(asked), 4)
        dialling = Deferred.fromCoroutine(dialer.connect(HOST, factory, private_network=False))
        asked[0].callback(())
        self.assertEqual(len(asked), 5)
        asked[4].callback(("93.184.215.14",))
        self.assertNoResult(dialling)
        self.assertEqual([each[:2] for each in self.reactor.tcpClients], [("93.184.215.14", 443)])

    def test_unknown(self) -> None:
        """A name without addresses, or that is not found in time, cannot be reached."""
        self.failureResultOf(self.dial(), Unreachable)
        self.found = Deferred()
        dialling = Deferred.fromCoroutine(self.dialer.connect(HOST, Factory.forProtocol(Peer), private_network=False))
        self.reactor.advance(10)
        self.failureResultOf(dialling, Unreachable)


class ListenerTests(EgressCase):
    """L{ProxyListener}."""

    def test_listen(self) -> None:
        """It listens on loopback from the first session on, at a port that no sandbox is connected to."""
        reactor, own = MemoryReactorClock(), set[int]()
        dialer: Any = None
        listener = ProxyListener(reactor, dialer, own)
        listener.sessions = self.sessions
        self.assertEqual(reactor.tcpServers, [])
        for _ in range(2):
            self.assertIn(listener.listen(), own)
        self.assertEqual([each[3] for each in reactor.tcpServers], ["127.0.0.1"])

    def test_full(self) -> None:
        """Where there are too many connections, the oldest that has not asked for anything gives way to a new one."""
        dialer: Any = None
        listener = ProxyListener(MemoryReactorClock(), dialer, set())
        listener.sessions = self.sessions
        transports: list[StringTransport] = []

        def connect() -> None:
            connection: Any = listener.buildProtocol(None)
            if connection is not None:
                transports.append(StringTransport())
                connection.makeConnection(transports[-1])

        for _ in range(1025):
            connect()
        aborted = [number for number, each in enumerate(transports) if each.disconnected]
        self.assertEqual((len(transports), aborted), (1025, [0]))
        for connection in tuple(listener._alive):
            connection.host = HOST
        connect()
        self.assertEqual(len(transports), 1025)
