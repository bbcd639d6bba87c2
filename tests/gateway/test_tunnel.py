"""A tunnel through an HTTP proxy, without sockets."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectionAborted, ConnectionDone
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.addresses import Origin
from aileron.gateway._proxies import Proxy
from aileron.gateway._tunnel import TunnelLayer
from aileron.gateway._unreachable import Cause, UpstreamUnreachable
from tests.gateway.wires import Above, Wire, carry

LINE = b"Proxy-Authorization: Basic canary\r\n"
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"


class Tunnel:
    """A tunnel that has asked, between L{Above} and L{Wire}."""

    def __init__(self, credentials: bytes = b"") -> None:
        self.above = Above()
        self.wire = Wire()
        self.layer = TunnelLayer(self.above, Proxy(Origin("http", "proxy.corp", 3128), credentials), "llm.example:443")
        carry(self.layer, self.wire)


class TunnelTests(SynchronousTestCase):
    """The proxy is asked, and then it is as if it were not there."""

    def refused(self, answer: bytes, credentials: bytes = b"") -> str:
        """The message, after that answer."""
        tunnel = Tunnel(credentials)
        tunnel.layer.dataReceived(answer)
        error = self.failureResultOf(tunnel.layer.opened, UpstreamUnreachable).value
        self.assertEqual(error.cause, Cause.PROXY)
        self.assertTrue(tunnel.wire.disconnected)
        tunnel.layer.dataReceived(ESTABLISHED)
        tunnel.layer.connectionLost(Failure(ConnectionAborted()))
        self.assertEqual((tunnel.above.made, tunnel.above.lost), (0, []))
        return str(error)

    def test_asks(self) -> None:
        """It asks for host and port, with the credentials where there are any."""
        asked = b"CONNECT llm.example:443 HTTP/1.1\r\nHost: llm.example:443\r\n"
        self.assertEqual(Tunnel().wire.value(), asked + b"\r\n")
        self.assertEqual(Tunnel(LINE).wire.value(), asked + LINE + b"\r\n")

    def test_opens(self) -> None:
        """After the proxy's consent the protocol above has the transport itself."""
        tunnel = Tunnel()
        self.assertNoResult(tunnel.layer.opened)
        self.assertEqual(tunnel.above.made, 0)
        tunnel.layer.dataReceived(ESTABLISHED)
        self.assertIs(self.successResultOf(tunnel.layer.opened), tunnel.above)
        self.assertIs(tunnel.above.transport, tunnel.wire)
        self.assertEqual(tunnel.above.pieces, [])

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.integers(1, 60), min_size=1))
    def test_chunkings(self, cuts: list[int]) -> None:
        """However the answer is cut, every byte behind it, and none of it, goes above."""
        tunnel = Tunnel()
        data = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n" + ESTABLISHED.replace(b"\r\n\r\n", b"\r\nVia: x\r\n\r\n")
        data += b"behind\r\n\r\nit"
        turn = 0
        while data:
            cut = cuts[turn % len(cuts)]
            tunnel.layer.dataReceived(data[:cut])
            data, turn = data[cut:], turn + 1
        self.assertEqual(tunnel.above.received, b"behind\r\n\r\nit")

    def test_end(self) -> None:
        """The end of an open tunnel is the connection's."""
        tunnel = Tunnel()
        tunnel.layer.dataReceived(ESTABLISHED)
        reason = Failure(ConnectionDone())
        tunnel.layer.connectionLost(reason)
        self.assertEqual(tunnel.above.lost, [reason])

    def test_length_of_consent(self) -> None:
        """A consent has no body, whatever its head says."""
        tunnel = Tunnel()
        tunnel.layer.dataReceived(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc")
        self.assertEqual(tunnel.above.received, b"abc")

    def test_refusals(self) -> None:
        """Any other answer is an error that names proxy, target and status, and no credentials."""
        for status in (b"301 x", b"403 Forbidden", b"502 Bad Gateway", b"503 canary"):
            message = self.refused(b"HTTP/1.1 " + status + b"\r\n\r\n", LINE)
            self.assertIn("proxy.corp:3128", message)
            self.assertIn("llm.example:443", message)
            self.assertIn(status[:3].decode(), message)
            self.assertNotIn("canary", message)

    def test_credentials_wanted(self) -> None:
        """A proxy that asks who we are is told apart."""
        message = self.refused(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
        self.assertIn("user and a password", message)

    def test_no_proxy(self) -> None:
        """What does not answer as a proxy does is refused at its first head, and so is a head without an end."""
        for answer in (b"SSH-2.0-x\r\n\r\n", b"HTTP/1.1 200 OK\n\n\r\n\r\n", b"HTTP/2 200\r\n\r\n", b"x" * 16385):
            self.assertIn("did not answer as an HTTP proxy does", self.refused(answer))

    def test_interim(self) -> None:
        """However many interim answers come first, it is the final one that counts."""
        tunnel = Tunnel()
        tunnel.layer.dataReceived(b"HTTP/1.1 100 Continue\r\n\r\n" * 3000 + ESTABLISHED)
        self.assertIs(self.successResultOf(tunnel.layer.opened), tunnel.above)

    def test_hung_up(self) -> None:
        """A proxy that goes without an answer is an error."""
        tunnel = Tunnel()
        tunnel.layer.dataReceived(b"HTTP/1.1 200")
        tunnel.layer.connectionLost(Failure(ConnectionDone()))
        error = self.failureResultOf(tunnel.layer.opened, UpstreamUnreachable).value
        self.assertEqual(str(error), "The proxy proxy.corp:3128 hung up when asked for llm.example:443.")

    def test_cancel(self) -> None:
        """Whoever gives up waiting closes the connection at once, and the protocol above never hears of it."""
        tunnel = Tunnel()
        tunnel.layer.opened.cancel()
        self.failureResultOf(tunnel.layer.opened, CancelledError)
        self.assertTrue(tunnel.wire.disconnected)
        tunnel.layer.dataReceived(ESTABLISHED)
        tunnel.layer.connectionLost(Failure(ConnectionAborted()))
        self.assertEqual((tunnel.above.made, tunnel.above.lost), (0, []))
