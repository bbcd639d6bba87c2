"""TLS to an upstream, without sockets: both ends in memory."""

from __future__ import annotations

import ssl
from collections.abc import Callable
from datetime import timedelta
from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IConsumer, IPushProducer, ITransport
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.features.gateway._certificates import Identity, verifying
from aileron.features.gateway._tls import TlsLayer
from aileron.features.gateway._unreachable import Cause, UpstreamUnreachable
from tests.features.gateway.certificates import Authority, only_common_name, self_signed, serving
from tests.features.gateway.wires import Above, TlsPeer, Wire, carry

HOST = "llm.example"
DONE = Failure(ConnectionDone())


def identity(host: str = HOST) -> Identity:
    """Who the peer must be; vouched for by the test's authority."""
    return Identity(verifying(Authority.made().pem), host, f"{host}:443")


@cache
def sound() -> bytes:
    """The certificate of L{HOST}, with its key."""
    return Authority.made().issue(HOST)


class Connection:
    """A layer between L{Above} and L{Wire}, and its peer."""

    def __init__(self, who: Identity | None = None, context: ssl.SSLContext | None = None) -> None:
        self.clock = Clock()
        self.wire = Wire()
        self.above = Above()
        self.peer = TlsPeer(context or serving(sound()))
        self.layer = TlsLayer(self.above, who or identity(), self.clock)
        carry(self.layer, self.wire)

    def shake_hands(self) -> Connection:
        """Carry bytes to and fro until there are no more."""
        while sent := self.wire.take():
            answer = self.peer.hear(sent)
            if answer:
                self.layer.dataReceived(answer)
        return self

    def pass_on(self) -> None:
        """Let the peer hear what was written."""
        self.peer.hear(self.wire.take())


def on_data(connection: Connection, *deeds: Callable[[], object]) -> None:
    """Have the protocol above keep each piece that it is given, and do something then."""

    def deliver(data: bytes) -> None:
        connection.above.pieces.append(data)
        for deed in deeds:
            deed()

    connection.above.dataReceived = deliver  # type: ignore[method-assign]


class TlsCase(SynchronousTestCase):
    """Connections of one test."""

    def open(self, who: Identity | None = None, context: ssl.SSLContext | None = None) -> Connection:
        """A connection whose handshake is done."""
        connection = Connection(who, context).shake_hands()
        self.assertIs(self.successResultOf(connection.layer.opened), connection.above)
        return connection

    def refused(self, certificate: bytes, host: str = HOST) -> str:
        """The message of the refusal of a certificate."""
        connection = Connection(identity(host), serving(certificate)).shake_hands()
        error = self.failureResultOf(connection.layer.opened, UpstreamUnreachable).value
        self.assertEqual(error.cause, Cause.TLS)
        self.assertEqual(connection.above.made, 0)
        self.assertTrue(connection.wire.disconnecting)
        self.assertIsNotNone(connection.peer.broken, "the peer was not told")
        return str(error)


class HandshakeTests(TlsCase):
    """A connection is open when the peer has proved who it is, and not before."""

    def test_opens_after_the_handshake(self) -> None:
        """The protocol above is told of the connection only once the handshake is done."""
        connection = Connection()
        self.assertEqual(connection.above.made, 0)
        self.assertNoResult(connection.layer.opened)
        connection.shake_hands()
        self.assertEqual(connection.above.made, 1)
        self.assertIs(connection.above.transport, connection.layer)
        self.assertIs(self.successResultOf(connection.layer.opened), connection.above)

    def test_says(self) -> None:
        """The server is told which host is meant, and offered HTTP/1.1 alone though it would rather speak h2."""
        names: list[str | None] = []
        context = serving(sound())

        def note(_: ssl.SSLObject, name: str | None, __: ssl.SSLContext) -> None:
            names.append(name)

        context.sni_callback = note
        peer = self.open(context=context).peer
        self.assertEqual((names, peer.tls.selected_alpn_protocol()), ([HOST], "http/1.1"))
        self.assertEqual(identity().context.minimum_version, ssl.TLSVersion.TLSv1_2)

    def test_address(self) -> None:
        """A host that is an address is verified as one."""
        for address in ("127.0.0.1", "::1"):
            self.open(identity(address), serving(Authority.made().issue(address)))
            self.assertIn("another address", self.refused(Authority.made().issue("127.0.0.2"), address))

    def test_no_handshake(self) -> None:
        """A peer that hangs up, answers in the clear, or knows no newer TLS than 1.1 is unreachable, told apart."""
        context = serving(sound())
        context.set_ciphers("DEFAULT@SECLEVEL=0")
        context.minimum_version = context.maximum_version = ssl.TLSVersion.TLSv1_1
        gone, clear, old = Connection(), Connection(), Connection(context=context).shake_hands()
        gone.layer.connectionLost(DONE)
        clear.layer.dataReceived(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        for connection, words in (
            (gone, "llm.example:443 hung up during the TLS handshake."),
            (clear, "llm.example:443 does not speak TLS."),
            (old, "failed (TLSV1_ALERT_PROTOCOL_VERSION)"),
        ):
            error = self.failureResultOf(connection.layer.opened, UpstreamUnreachable).value
            self.assertEqual(error.cause, Cause.TLS)
            self.assertIn(words, str(error))
            self.assertEqual((connection.above.made, connection.above.lost), (0, []))

    def test_cancel(self) -> None:
        """Whoever gives up waiting closes the connection at once, and the protocol above never hears of it."""
        connection = Connection()
        connection.layer.opened.cancel()
        self.failureResultOf(connection.layer.opened, CancelledError)
        self.assertTrue(connection.wire.disconnected)
        connection.shake_hands()
        connection.layer.connectionLost(Failure(ConnectionAborted()))
        self.assertEqual((connection.above.made, connection.above.lost), (0, []))


class CertificateTests(TlsCase):
    """What is wrong with a certificate is said so that somebody can put it right."""

    def test_refused(self) -> None:
        """Each fault is called by its name, and the setting that would change it is named where there is one."""
        day, trusted = timedelta(days=1), Authority.made()
        for certificate, parts in (
            (trusted.issue(HOST, begins=-9 * day, ends=-day), ["of llm.example:443 is refused: it has expired"]),
            (trusted.issue(HOST, begins=day, ends=9 * day), ["not valid yet"]),
            (trusted.issue("elsewhere.example"), ["another host"]),
            (only_common_name(trusted, HOST), ["another host"]),
            (self_signed(HOST), ["self-signed", "gateway.ca_certificates"]),
            (Authority.made("Nobody's").issue(HOST), ["nobody that this machine trusts", "gateway.ca_certificates"]),
        ):
            message = self.refused(certificate)
            for part in parts:
                self.assertIn(part, message)

    def test_environment_vouches_for_nobody(self) -> None:
        """Without the system's bundles and without own authorities, no certificate is good."""
        who = Identity(verifying("", ()), HOST, HOST)
        self.assertEqual(who.context.get_ca_certs(), [])
        connection = Connection(who).shake_hands()
        self.failureResultOf(connection.layer.opened, UpstreamUnreachable)


class StreamTests(TlsCase):
    """What one end writes the other end reads."""

    def test_transport(self) -> None:
        """It is what protocols expect of a transport; addresses, options and producers are those of the one below."""
        connection = self.open()
        layer, wire, producer = connection.layer, connection.wire, Wire()
        for interface in (ITransport, IConsumer, IPushProducer):
            self.assertTrue(verifyObject(interface, layer))
        self.assertEqual((layer.getPeer(), layer.getHost()), (wire.getPeer(), wire.getHost()))
        layer.setTcpNoDelay(True)
        layer.registerProducer(producer, True)
        self.assertEqual((wire.no_delay, wire.producer, wire.streaming), (True, producer, True))
        layer.unregisterProducer()
        self.assertIsNone(wire.producer)

    def test_to_and_fro(self) -> None:
        """Bytes arrive in both directions, also more than fit into one record, and empty writes are no records."""
        connection = self.open()
        sent = bytes(range(256)) * 400
        connection.layer.write(sent)
        connection.layer.write(b"")
        connection.layer.writeSequence([b"the", b"end"])
        connection.pass_on()
        self.assertEqual(connection.peer.received, sent + b"theend")
        connection.layer.dataReceived(connection.peer.say(sent))
        self.assertEqual(connection.above.received, sent)

    def test_each_write_leaves_at_once(self) -> None:
        """Nothing is kept back, in either direction."""
        connection = self.open()
        for _ in range(3):
            connection.layer.write(b"x")
            self.assertNotEqual(connection.wire.take(), b"")
            connection.layer.dataReceived(connection.peer.say(b"y"))
        self.assertEqual(connection.above.pieces, [b"y"] * 3)

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.integers(1, 40000), max_size=4), st.lists(st.integers(1, 5000), min_size=1, max_size=40))
    def test_chunkings(self, messages: list[int], cuts: list[int]) -> None:
        """However the network cuts the bytes, handshake and farewell among them, the same text arrives."""
        connection = Connection()
        arriving = connection.peer.hear(connection.wire.take())
        arriving = self._in_pieces(connection, arriving, cuts)
        sent = [bytes([65 + number]) * size for number, size in enumerate(messages)]
        arriving += connection.peer.hear(connection.wire.take())
        arriving += b"".join(connection.peer.say(each) for each in sent) + connection.peer.say_goodbye()
        self._in_pieces(connection, arriving, cuts)
        self.assertEqual(connection.above.received, b"".join(sent))
        self.assertEqual([reason.type for reason in connection.above.lost], [ConnectionDone])

    def _in_pieces(self, connection: Connection, data: bytes, sizes: list[int]) -> bytes:
        """Deliver it piece by piece, the sizes over and over."""
        turn = 0
        while data:
            size = sizes[turn % len(sizes)]
            connection.layer.dataReceived(data[:size])
            data, turn = data[size:], turn + 1
        return data

    def test_data_behind_the_handshake(self) -> None:
        """What comes in one piece with the handshake's end is not lost."""
        context = serving(sound())
        context.maximum_version = ssl.TLSVersion.TLSv1_2  # there the server's part ends the handshake
        connection = Connection(context=context)
        connection.layer.dataReceived(connection.peer.hear(connection.wire.take()))
        end = connection.peer.hear(connection.wire.take())
        connection.layer.dataReceived(end + connection.peer.say(b"early"))
        self.assertEqual(connection.above.received, b"early")


class FlowTests(TlsCase):
    """Whoever cannot take any more makes the other end wait."""

    def test_paused(self) -> None:
        """A consumer that has paused gets nothing, not even what has arrived; then all of it, in the next turn."""
        connection = self.open()
        connection.layer.pauseProducing()
        self.assertEqual(connection.wire.producerState, "paused")
        connection.layer.dataReceived(connection.peer.say(b"one") + connection.peer.say(b"two"))
        self.assertEqual(connection.above.received, b"")
        connection.layer.resumeProducing()
        self.assertEqual(connection.wire.producerState, "producing")
        self.assertEqual(connection.above.received, b"", "delivered from within resumeProducing")
        connection.clock.advance(0)
        self.assertEqual(connection.above.received, b"onetwo")

    def test_between_records(self) -> None:
        """Whoever pauses or closes on a record does not get the next one of the same piece; who resumes there does."""
        for deeds, at_once, later in (
            (["pauseProducing"], [b"one"], [b"one", b"two"]),
            (["pauseProducing", "resumeProducing"], [b"one", b"two"], [b"one", b"two"]),
            (["loseConnection"], [b"one"], [b"one"]),
        ):
            connection = self.open()
            on_data(connection, *(getattr(connection.layer, deed) for deed in deeds))
            connection.layer.dataReceived(connection.peer.say(b"one") + connection.peer.say(b"two"))
            self.assertEqual(connection.above.pieces, at_once, deeds)
            connection.layer.resumeProducing()
            connection.clock.advance(0)
            self.assertEqual(connection.above.pieces, later, deeds)

    def test_paused_again(self) -> None:
        """A consumer that changes its mind before the next turn gets nothing in it."""
        connection = self.open()
        connection.layer.pauseProducing()
        connection.layer.dataReceived(connection.peer.say(b"one"))
        connection.layer.resumeProducing()
        connection.layer.pauseProducing()
        connection.clock.advance(0)
        self.assertEqual(connection.above.received, b"")

    def test_farewell_waits(self) -> None:
        """An end that came while a consumer had paused is told after what came before it."""
        connection = self.open()
        on_data(connection, connection.layer.pauseProducing)
        connection.layer.dataReceived(connection.peer.say(b"one") + connection.peer.say_goodbye())
        self.assertEqual(connection.above.lost, [])
        connection.layer.resumeProducing()
        connection.clock.advance(0)
        self.assertEqual([reason.type for reason in connection.above.lost], [ConnectionDone])

    def test_broken_consumer(self) -> None:
        """A consumer that breaks loses its connection, and gets nothing more, whoever delivers."""
        for paused in (False, True):
            connection = self.open()
            on_data(connection, lambda: 1 // 0)
            records = connection.peer.say(b"one") + connection.peer.say(b"two")
            if paused:
                connection.layer.pauseProducing()
                connection.layer.dataReceived(records)
                connection.layer.resumeProducing()
                self.assertRaises(ZeroDivisionError, connection.clock.advance, 0)
                self.assertTrue(connection.wire.disconnected)
            else:
                self.assertRaises(ZeroDivisionError, connection.layer.dataReceived, records)
            connection.layer.connectionLost(Failure(ZeroDivisionError()))
            self.assertEqual(connection.above.pieces, [b"one"])
            self.assertEqual([reason.type for reason in connection.above.lost], [ZeroDivisionError])


class EndTests(TlsCase):
    """Every end is told once, and one that was cut never looks complete."""

    def assert_lost(self, connection: Connection, reason: type[Exception]) -> None:
        """The protocol above was told once, of that."""
        self.assertEqual([each.type for each in connection.above.lost], [reason])

    def test_close(self) -> None:
        """Closing sends what was written and a farewell; nothing is delivered after it."""
        connection = self.open()
        connection.layer.write(b"last words")
        connection.layer.loseConnection()
        connection.layer.loseConnection()
        connection.layer.write(b"too late")
        self.assertTrue(connection.wire.disconnecting)
        self.assertFalse(connection.wire.disconnected)
        connection.layer.dataReceived(connection.peer.say(b"unheard"))
        connection.pass_on()
        self.assertEqual(connection.peer.received, b"last words")
        self.assertTrue(connection.peer.closed)
        self.assertEqual(connection.above.lost, [])
        connection.layer.connectionLost(DONE)
        self.assert_lost(connection, ConnectionDone)
        self.assertEqual(connection.above.received, b"")

    def test_close_with_unread_data(self) -> None:
        """What has not been delivered does not keep the farewell from being sent, however the consumer closes."""
        for close in ("loseConnection", "stopProducing"):
            connection = self.open()
            connection.layer.pauseProducing()
            connection.layer.dataReceived(connection.peer.say(b"unread"))
            getattr(connection.layer, close)()
            connection.pass_on()
            self.assertTrue(connection.peer.closed, close)

    def test_peer_closes(self) -> None:
        """A peer's farewell is a clean end, told at once and answered."""
        connection = self.open()
        connection.layer.registerProducer(Wire(), True)
        connection.layer.dataReceived(connection.peer.say(b"all") + connection.peer.say_goodbye())
        self.assertEqual(connection.above.received, b"all")
        self.assert_lost(connection, ConnectionDone)
        self.assertTrue(connection.wire.disconnecting)
        self.assertIsNone(connection.wire.producer)
        connection.layer.connectionLost(DONE)
        self.assert_lost(connection, ConnectionDone)
        self.assertEqual(connection.clock.getDelayedCalls(), [])

    def test_peer_closes_and_stays(self) -> None:
        """A peer that has said farewell and never goes is dropped after five seconds."""
        connection = self.open()
        connection.layer.dataReceived(connection.peer.say_goodbye())
        connection.clock.advance(4.9)
        self.assertFalse(connection.wire.disconnected)
        connection.clock.advance(0.2)
        self.assertTrue(connection.wire.disconnected)

    def test_cut(self) -> None:
        """An end without a farewell, within a record, or that leaves something undelivered is no clean one."""
        cases: tuple[tuple[bool, Callable[[TlsPeer], bytes], bytes], ...] = (
            (False, lambda peer: peer.say(b"half"), b"half"),
            (False, lambda peer: peer.say(b"half")[:-1], b""),
            (True, lambda peer: peer.say(b"unread") + peer.say_goodbye(), b""),
        )
        for paused, bytes_of, received in cases:
            connection = self.open()
            if paused:
                connection.layer.pauseProducing()
            connection.layer.dataReceived(bytes_of(connection.peer))
            connection.layer.connectionLost(DONE)
            self.assertEqual(connection.above.received, received)
            self.assert_lost(connection, ConnectionLost)

    def test_lost_before_the_next_turn(self) -> None:
        """What a consumer that has just resumed did not get yet, it gets before the end."""
        connection = self.open()
        connection.layer.pauseProducing()
        connection.layer.dataReceived(connection.peer.say(b"all") + connection.peer.say_goodbye())
        connection.layer.resumeProducing()
        connection.layer.connectionLost(DONE)
        self.assertEqual(connection.above.received, b"all")
        self.assert_lost(connection, ConnectionDone)
        connection.clock.advance(0)
        self.assertEqual(connection.clock.getDelayedCalls(), [])

    def test_forged(self) -> None:
        """A byte that was changed on the way breaks the connection; nothing of its record is delivered."""
        connection = self.open()
        record = connection.peer.say(b"truth")
        connection.layer.dataReceived(record[:-1] + bytes([record[-1] ^ 1]))
        self.assertEqual(connection.above.received, b"")
        self.assert_lost(connection, ConnectionLost)
        self.assertTrue(connection.wire.disconnected)

    def test_abort(self) -> None:
        """Aborting drops the transport, and nothing is delivered or sent any more."""
        connection = self.open()
        connection.layer.abortConnection()
        self.assertTrue(connection.wire.disconnected)
        connection.layer.dataReceived(connection.peer.say(b"unheard"))
        connection.layer.write(b"unsaid")
        self.assertEqual(connection.wire.take(), b"")
        connection.layer.connectionLost(Failure(ConnectionAborted()))
        self.assertEqual(connection.above.received, b"")
        self.assert_lost(connection, ConnectionAborted)
