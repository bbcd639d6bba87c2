"""A tunnel through an HTTP proxy, without sockets."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.error import ConnectionAborted, ConnectionDone
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.addresses import Origin
from aileron.features.gateway._proxies import Proxy
from aileron.features.gateway._tunnel import TunnelLayer
from aileron.features.gateway._unreachable import Cause, UpstreamUnreachable
from tests.features.gateway.wires import Above, Wire, carry

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

    def test_asks(self) -> None:
        """It asks for host and port, with the credentials where there are any; nothing is open before the answer."""
        asked = b"CONNECT llm.example:443 HTTP/1.1\r\nHost: llm.example:443\r\n"
        for credentials in (b"", LINE):
            tunnel = Tunnel(credentials)
            self.assertEqual(tunnel.wire.value(), asked + credentials + b"\r\n")
            self.assertNoResult(tunnel.layer.opened)

    @settings(deadline=None, max_examples=60)
    @given(st.lists(st.integers(1, 60), min_size=1))
    def test_chunkings(self, cuts: list[int]) -> None:
        """However the answer is cut, every byte behind its head, whatever that says, and none of it, goes above."""
        tunnel = Tunnel()
        data = (
            b"HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nbehind\r\n\r\nit"
        )
        turn = 0
        while data:
            cut = cuts[turn % len(cuts)]
            tunnel.layer.dataReceived(data[:cut])
            data, turn = data[cut:], turn + 1
        self.assertEqual(tunnel.above.received, b"behind\r\n\r\nit")
        self.assertIs(self.successResultOf(tunnel.layer.opened), tunnel.above)
        self.assertIs(tunnel.above.transport, tunnel.wire)

    def test_end(self) -> None:
        """However many interim answers came before the consent, the end of the tunnel is the connection's."""
        tunnel = Tunnel()
        tunnel.layer.dataReceived(b"HTTP/1.1 100 Continue\r\n\r\n" * 3000 + ESTABLISHED)
        reason = Failure(ConnectionDone())
        tunnel.layer.connectionLost(reason)
        self.assertEqual((tunnel.above.pieces, tunnel.above.lost), ([], [reason]))

    def test_refusals(self) -> None:
        """Any other answer is an error that names proxy, target and what is wrong, and no credentials."""
        strange = "did not answer as an HTTP proxy does"
        for answer, words in (
            (b"HTTP/1.1 301 x\r\n\r\n", "301"),
            (b"HTTP/1.1 403 Forbidden\r\n\r\n", "403"),
            (b"HTTP/1.1 503 canary\r\n\r\n", "503"),
            (b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n", "user and a password"),
            (b"SSH-2.0-x\r\n\r\n", strange),
            (b"HTTP/1.1 200 OK\n\n\r\n\r\n", strange),
            (b"HTTP/2 200\r\n\r\n", strange),
            (b"x" * 16385, strange),
        ):
            tunnel = Tunnel(LINE)
            tunnel.layer.dataReceived(answer)
            error = self.failureResultOf(tunnel.layer.opened, UpstreamUnreachable).value
            self.assertEqual((error.cause, tunnel.wire.disconnected), (Cause.PROXY, True))
            tunnel.layer.dataReceived(ESTABLISHED)
            tunnel.layer.connectionLost(Failure(ConnectionAborted()))
            self.assertEqual((tunnel.above.made, tunnel.above.lost), (0, []))
            for word in ("proxy.corp:3128", "llm.example:443", words):
                self.assertIn(word, str(error))
            self.assertNotIn("canary", str(error))

    def test_hung_up(self) -> None:
        """A proxy that goes without an answer is an error."""
        tunnel = Tunnel()
        tunnel.layer.dataReceived(b"HTTP/1.1 200")
        tunnel.layer.connectionLost(Failure(ConnectionDone()))
        error = self.failureResultOf(tunnel.layer.opened, UpstreamUnreachable).value
        self.assertEqual(str(error), "The proxy proxy.corp:3128 hung up when asked for llm.example:443.")
