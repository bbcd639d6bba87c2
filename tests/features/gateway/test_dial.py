"""The way to an upstream, without sockets."""

from __future__ import annotations

import ssl
from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from typing import Any

from attrs import define, field
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectError, ConnectionRefusedError
from twisted.internet.interfaces import (
    IHostnameResolver,
    IHostResolution,
    IProtocol,
    IReactorPluggableNameResolver,
    IResolutionReceiver,
    IStreamClientEndpoint,
)
from twisted.internet.protocol import Factory
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.test.iosim import IOPump, connect, makeFakeClient, makeFakeServer
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from aileron.features.gateway._dialler import dialler, forwarding
from aileron.features.gateway._proxies import read_proxies
from aileron.features.gateway._unreachable import Cause, UpstreamUnreachable
from aileron.features.gateway.values import Provider
from tests.features.gateway.certificates import Authority, self_signed, serving
from tests.features.gateway.wires import Above, Proxying, TlsPeer

HOST = "llm.example"
PROXY = {"all_proxy": "http://canary:canary@proxy.corp:3128"}
ADDRESSES = {
    HOST: ["192.0.2.1"],
    "proxy.corp": ["192.0.2.9"],
    "both.example": ["2001:db8::1", "192.0.2.1"],
    "127.0.0.1": ["127.0.0.1"],
    "::1": ["::1"],
}


@implementer(IHostResolution)
@define
class Resolution:
    """One look-up."""

    name: str

    def cancel(self) -> None:
        """Nobody waits any more."""


@implementer(IHostnameResolver)
@define
class Names:
    """Knows some names.

    :ivar silent: whether look-ups go without an answer until L{answer}.
    """

    addresses: Mapping[str, Sequence[str]]
    silent: bool = False
    asked: list[str] = field(factory=list)
    _waiting: list[Callable[[], None]] = field(factory=list)

    def resolveHostName(
        self,
        resolutionReceiver: IResolutionReceiver,
        hostName: str,
        portNumber: int = 0,
        addressTypes: Sequence[type] | None = None,
        transportSemantics: str = "TCP",
    ) -> IHostResolution:
        """At once."""
        self.asked.append(hostName)
        resolution = Resolution(hostName)
        resolutionReceiver.resolutionBegan(resolution)
        self._waiting.append(partial(self._tell, resolutionReceiver, hostName, portNumber))
        if not self.silent:
            self.answer()
        return resolution

    def answer(self) -> None:
        """Answer all that wait."""
        while self._waiting:
            self._waiting.pop()()

    def _tell(self, receiver: IResolutionReceiver, name: str, port: int) -> None:
        for address in self.addresses.get(name, ()):
            kind = IPv6Address if ":" in address else IPv4Address
            receiver.addressResolved(kind("TCP", address, port))
        receiver.resolutionComplete()


@implementer(IReactorPluggableNameResolver)
class Reactor(MemoryReactorClock):
    """Connects in memory, to names that it knows."""

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.nameResolver = Names(ADDRESSES)

    def installNameResolver(self, resolver: Any) -> Any:
        """Take another one."""
        before, self.nameResolver = self.nameResolver, resolver
        return before


@cache
def sound() -> bytes:
    """The certificate of L{HOST}, with its key."""
    return Authority.made().issue(HOST)


def provider(base_url: str) -> Provider:
    """A provider there."""
    return Provider("test", base_url, "/test")


def _same(above: Above) -> Above:
    return above


class DialCase(SynchronousTestCase):
    """Dials in memory."""

    def setUp(self) -> None:
        self.reactor: Any = Reactor()
        self.above = Above()

    def dial(self, base_url: str, pem: str | None = None, **environment: str) -> Deferred[IProtocol]:
        """Connect to a provider there."""
        trusted = Authority.made().pem if pem is None else pem
        endpoint = dialler(self.reactor, provider(base_url), read_proxies(environment), trusted)
        return endpoint.connect(Factory.forProtocol(partial(_same, self.above)))

    def accept(self, server: Any, number: int = -1) -> IOPump:
        """Let an attempt to connect succeed."""
        client = self.reactor.tcpClients[number][2].buildProtocol(None)
        pump: IOPump = connect(server, makeFakeServer(server), client, makeFakeClient(client), clock=self.reactor)
        pump.flush()
        return pump

    def refuse(self, error: Exception, number: int = -1) -> None:
        """Let an attempt to connect fail."""
        connector = self.reactor.connectors[number]
        self.reactor.tcpClients[number][2].clientConnectionFailed(connector, Failure(error))

    def places(self) -> list[tuple[str, int]]:
        """Where was connected to."""
        return [client[:2] for client in self.reactor.tcpClients]

    def assert_unreachable(self, waiting: Deferred[IProtocol], cause: Cause, *words: str) -> None:
        """It failed for that reason, said with these words; nothing is left behind."""
        error = self.failureResultOf(waiting, UpstreamUnreachable).value
        self.assertEqual(error.cause, cause)
        self.assertEqual((error.kind, error.status), ("network_error", 502))
        self.assertEqual(error.details, {"cause": cause.value})
        for word in words:
            self.assertIn(word, str(error))
        self.assertNotIn("canary", f"{error} {error!r} {waiting}")
        self.assertEqual((self.above.made, self.reactor.getDelayedCalls()), (0, []))


class DirectTests(DialCase):
    """Without a proxy."""

    def test_plain(self) -> None:
        """With plain http the protocol gets the reactor's own transport; the host may be an address."""
        for base_url, place in (
            ("http://127.0.0.1:8000/base", ("127.0.0.1", 8000)),
            ("http://[::1]:8000", ("::1", 8000)),
        ):
            waiting = self.dial(base_url)
            self.assertEqual(self.places()[-1], place)
            pump = self.accept(Above())
            self.assertIs(self.successResultOf(waiting), self.above)
            self.assertIs(self.above.transport, pump.clientIO)
            self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_tls(self) -> None:
        """With https it speaks to whoever the certificate names, and to nobody before that."""
        waiting = self.dial("https://llm.example/v1")
        self.assertEqual(self.places(), [("192.0.2.1", 443)])
        self.assertNoResult(waiting)
        peer = TlsPeer(serving(sound()))
        pump = self.accept(peer)
        self.assertIs(self.successResultOf(waiting), self.above)
        self.above.transport.write(b"ping")
        peer.transport.write(peer.say(b"pong"))
        pump.flush()
        self.assertEqual((peer.received, self.above.received), (b"ping", b"pong"))
        self.assertEqual(self.reactor.getDelayedCalls(), [])

    def test_session(self) -> None:
        """The later connections of an endpoint, and of no other, resume its session, with TLS 1.3 and with 1.2."""
        for version in (ssl.TLSVersion.TLSv1_3, ssl.TLSVersion.TLSv1_2):
            context = serving(sound())
            context.maximum_version = version
            for _ in range(2):
                endpoint = dialler(
                    self.reactor, provider("https://llm.example"), read_proxies({}), Authority.made().pem
                )
                self.assertEqual([self.resumed(endpoint, context) for _ in range(3)], [False, True, True])

    def resumed(self, endpoint: IStreamClientEndpoint, context: ssl.SSLContext) -> bool:
        """Whether another connection resumes a session."""
        above, peer = Above(), TlsPeer(context)
        waiting = endpoint.connect(Factory.forProtocol(partial(_same, above)))
        pump = self.accept(peer)
        self.successResultOf(waiting)
        peer.transport.write(peer.say(b"hello"))
        pump.flush()
        return bool(peer.tls.session_reused)

    def test_both_families(self) -> None:
        """A family that leads nowhere costs a moment, no more."""
        waiting = self.dial("http://both.example:8000")
        self.assertEqual(self.places(), [("2001:db8::1", 8000)])
        self.reactor.advance(0.5)
        self.assertEqual(self.places(), [("2001:db8::1", 8000), ("192.0.2.1", 8000)])
        self.accept(Above())
        self.assertIs(self.successResultOf(waiting), self.above)
        self.assertTrue(self.reactor.connectors[0].stoppedConnecting)
        self.assertEqual(self.reactor.getDelayedCalls(), [])


class FailureTests(DialCase):
    """Failures are told apart, in words for whoever has to put it right."""

    def test_names(self) -> None:
        """A name that nobody knows, or that cannot be one, is named, that of a proxy as such."""
        proxy = {"https_proxy": "http://nowhere.corp:3128"}
        for base_url, environment, words in (
            ("https://nowhere.example", {}, ("nowhere.example:443", "DNS")),
            ("https://ab--c.example", {}, ("ab--c.example:443",)),
            ("https://llm.example", proxy, ("The proxy nowhere.corp:3128 has a name that leads to no address",)),
        ):
            self.assert_unreachable(self.dial(base_url, **environment), Cause.DNS, *words)

    def test_refused(self) -> None:
        """Where nothing listens host and port are named, or the proxy; of other faults the system's number is told."""
        for error, environment, cause, words in (
            (ConnectionRefusedError(), {}, Cause.REFUSED, ("llm.example:443 refused",)),
            (ConnectError(osError=113), {}, Cause.NETWORK, ("llm.example:443", "113")),
            (ConnectionRefusedError(), PROXY, Cause.REFUSED, ("The proxy proxy.corp:3128 refused",)),
        ):
            waiting = self.dial("https://llm.example", **environment)
            self.refuse(error)
            self.reactor.advance(0.5)
            self.assert_unreachable(waiting, cause, *words)

    def test_silent_host(self) -> None:
        """A connection that does not come about, or a look-up without an answer, ends after ten seconds."""
        self._silent(self.dial("https://llm.example"), "llm.example:443")
        self.assertTrue(self.reactor.connectors[0].stoppedConnecting)
        self.reactor.nameResolver = Names({}, silent=True)
        self._silent(self.dial("https://llm.example"), "llm.example:443")

    def test_silent_peer(self) -> None:
        """A handshake, or a proxy's answer, that does not come ends after ten seconds, and closes the connection."""
        for environment, who in (({}, "llm.example:443"), (PROXY, "The proxy proxy.corp:3128")):
            waiting = self.dial("https://llm.example", **environment)
            pump = self.accept(Above())
            self._silent(waiting, who)
            self.assertTrue(pump.clientIO.disconnecting)

    def _silent(self, waiting: Deferred[IProtocol], who: str) -> None:
        for _ in range(99):
            self.reactor.advance(0.1)
        self.assertNoResult(waiting)
        self.reactor.advance(0.2)
        self.assert_unreachable(waiting, Cause.TIMEOUT, who, "10 seconds")

    def test_certificate(self) -> None:
        """A certificate that is no good is a fault of TLS; the connection is closed."""
        waiting = self.dial("https://llm.example")
        pump = self.accept(TlsPeer(serving(self_signed(HOST))))
        self.assert_unreachable(waiting, Cause.TLS, "llm.example:443", "self-signed")
        self.assertTrue(pump.clientIO.disconnecting)

    def test_unreadable_authorities(self) -> None:
        """Authorities that cannot be read let nothing be connected to."""
        self.assert_unreachable(self.dial("https://llm.example", "nonsense"), Cause.TLS, "gateway.ca_certificates")
        self.assertEqual(self.places(), [])

    def test_proxy_refuses(self) -> None:
        """A proxy that will not connect is a fault of the proxy, with its status; the connection is closed."""
        waiting = self.dial("https://llm.example", **PROXY)
        server = Above()
        pump = self.accept(server)
        server.transport.write(b"HTTP/1.1 403 Forbidden\r\n\r\n")
        pump.flush()
        self.assert_unreachable(waiting, Cause.PROXY, "proxy.corp:3128", "llm.example:443", "403")
        self.assertTrue(pump.clientIO.disconnecting)

    def test_proxy_unusable(self) -> None:
        """Of a proxy of another kind nothing is asked, and nothing else in its place."""
        waiting = self.dial("https://llm.example", https_proxy="socks5://canary:canary@proxy.corp")
        self.assert_unreachable(waiting, Cause.PROXY, "socks5")
        self.assertEqual(self.places(), [])


class ProxyTests(DialCase):
    """Through a proxy."""

    def test_tls(self) -> None:
        """An https upstream is reached through a tunnel, in which TLS is with it; the proxy looks its name up."""
        waiting = self.dial("https://llm.example", **PROXY)
        self.assertEqual(self.places(), [("192.0.2.9", 3128)])
        peer = TlsPeer(serving(sound()))
        proxy = Proxying(peer)
        pump = self.accept(proxy)
        self.assertIs(self.successResultOf(waiting), self.above)
        self.assertTrue(proxy.asked.startswith(b"CONNECT llm.example:443 HTTP/1.1\r\nHost: llm.example:443\r\n"))
        self.assertIn(b"\r\nProxy-Authorization: Basic Y2FuYXJ5OmNhbmFyeQ==\r\n", proxy.asked)
        self.above.transport.write(b"ping")
        pump.flush()
        self.assertEqual(peer.received, b"ping")
        self.assertEqual(self.reactor.nameResolver.asked, ["proxy.corp"])

    def test_tls_with_another(self) -> None:
        """A proxy that answers in the upstream's place is found out."""
        waiting = self.dial("https://llm.example", **PROXY)
        self.accept(Proxying(TlsPeer(serving(Authority.made().issue("proxy.corp")))))
        self.assert_unreachable(waiting, Cause.TLS, "llm.example:443", "another host")

    def test_plain(self) -> None:
        """A plain upstream is reached by the proxy's own connection, and requests say where they go."""
        environment = {"http_proxy": "http://me@127.0.0.1:3128"}
        waiting = self.dial("http://127.0.0.1:8000", **environment)
        self.assertEqual(self.places(), [("127.0.0.1", 3128)])
        pump = self.accept(Above())
        self.successResultOf(waiting)
        self.assertIs(self.above.transport, pump.clientIO)
        told = forwarding(provider("http://127.0.0.1:8000/base"), read_proxies(environment))
        self.assertEqual(told.target_prefix, b"http://127.0.0.1:8000")
        self.assertEqual(told.lines, b"Proxy-Authorization: Basic bWU6\r\n")
        self.assertNotIn("bWU6", repr(told))

    def test_nothing_to_forward(self) -> None:
        """Requests that go through a tunnel, or directly, are as they were: no proxy's password reaches an upstream."""
        for base_url, environment in (
            ("https://llm.example", PROXY),
            ("https://llm.example", {}),
            ("http://127.0.0.1:8000", {}),
            ("http://127.0.0.1:8000", PROXY),
        ):
            told = forwarding(provider(base_url), read_proxies(environment))
            self.assertEqual((told.target_prefix, told.lines), (b"", b""))

    def test_exempt(self) -> None:
        """An exempt upstream is reached directly."""
        self.dial("https://llm.example", no_proxy="example", **PROXY).addErrback(lambda _: None)
        self.assertEqual(self.places(), [("192.0.2.1", 443)])


class CancelTests(DialCase):
    """Whoever gives up leaves nothing behind, whatever was under way."""

    def assert_given_up(self, waiting: Deferred[IProtocol]) -> None:
        """Cancelling it ends it, and every delayed call with it."""
        waiting.cancel()
        self.failureResultOf(waiting, CancelledError)
        self.assertEqual((self.above.made, self.reactor.getDelayedCalls()), (0, []))

    def test_while_names_are_looked_up(self) -> None:
        """An answer of the resolver that comes later is not acted on."""
        names = Names(ADDRESSES, silent=True)
        self.reactor.nameResolver = names
        self.assert_given_up(self.dial("https://llm.example"))
        names.answer()
        self.assertEqual(self.places(), [])

    def test_while_connecting(self) -> None:
        """Every attempt is stopped."""
        waiting = self.dial("https://both.example")
        self.reactor.advance(0.5)
        self.assert_given_up(waiting)
        self.assertEqual([each.stoppedConnecting for each in self.reactor.connectors], [True, True])

    def test_while_the_peer_thinks(self) -> None:
        """A connection whose proxy has not answered, or that shakes hands, through a proxy too, is closed."""
        for environment, answers in (({}, False), (PROXY, False), (PROXY, True)):
            waiting = self.dial("https://llm.example", **environment)
            server = Above()
            pump = self.accept(server)
            if answers:
                server.transport.write(b"HTTP/1.1 200 OK\r\n\r\n")
                pump.flush()
                self.assertIn(b"\x16\x03\x01", server.received, "no handshake began")
            self.assert_given_up(waiting)
            self.assertTrue(pump.clientIO.disconnecting)
