"""The gateway speaks TLS to its upstreams, and only to those that prove who they are."""

from collections.abc import Mapping
from datetime import timedelta
from textwrap import indent
from typing import cast

from twisted.internet.address import IPv4Address
from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IAddress, IListeningPort
from twisted.internet.protocol import Protocol, ServerFactory

from tests.features.gateway.certificates import Authority, self_signed, serving
from tests.features.gateway.wires import Proxying, TlsPeer
from tests.functional.operated import OperatedTestCase
from tests.functional.reactor import until
from tests.functional.web import Reply

ANSWER = b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 18\r\n\r\n{"object": "list"}'
EXPIRED = {"begins": timedelta(days=-9), "ends": timedelta(days=-1)}


class Upstream(TlsPeer):
    """Answers each request on the connection, which it keeps."""

    answered = 0

    def dataReceived(self, data: bytes) -> None:
        """Answer, as soon as a request is there."""
        super().dataReceived(data)
        while self.answered < self.received.count(b"\r\n\r\n"):
            self.answered += 1
            self.transport.write(self.say(ANSWER))


class Upstreams(ServerFactory):
    """Upstreams with one certificate.

    :ivar met: one for each connection.
    """

    noisy = False

    def __init__(self, certificate: bytes, *, proxied: bool = False) -> None:
        self._context = serving(certificate)
        self._proxied = proxied
        self.met: list[Upstream] = []
        self.asked: list[Proxying] = []

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """One more, behind a proxy if that is wanted."""
        self.met.append(Upstream(self._context))
        if not self._proxied:
            return self.met[-1]
        self.asked.append(Proxying(self.met[-1]))
        return self.asked[-1]


class GatewayTlsTests(OperatedTestCase):
    """Real certificates, real sockets, the installed daemon."""

    def serve(self, upstreams: Upstreams) -> int:
        """Listen on loopback; the port."""
        port = self.reactor.listenTCP(0, upstreams, interface="127.0.0.1")
        self.finally_(lambda: self._stop(port, upstreams))
        return cast(IPv4Address, port.getHost()).port

    async def _stop(self, port: IListeningPort, upstreams: Upstreams) -> None:
        await maybeDeferred(port.stopListening)
        for each in upstreams.met:
            each.transport.loseConnection()
        await until(self.reactor, lambda: all(each.lost for each in upstreams.met), 30, "connections closed")

    async def configure(self, urls: Mapping[str, str], environment: Mapping[str, str]) -> None:
        """A daemon with these providers, by name and base URL, that trusts the test's authority."""
        await self.operator("vault", "init")
        lines = "".join(f'    {name}: {{base_url: "{base_url}"}}\n' for name, base_url in urls.items())
        authority = indent(Authority.made().pem, "    ")
        self.state.config.write_text(f"gateway:\n  ca_certificates: |\n{authority}  providers:\n{lines}")
        await self.operator("config", "trust", "--yes")
        await self.command("daemon", "stop")
        self._expect(await self.operator_within(environment, "vault", "unlock"), 0)

    async def ask(self, name: str) -> Reply:
        """One request to a provider."""
        return await self.web.ask("GET", f"{self.home.discovery()['url']}/{name}/v1/models")

    async def test_certificates(self) -> None:
        """Who proves to be the host is relayed to; nobody else gets a byte, and it is told why."""
        issue = Authority.made().issue
        good = Upstreams(issue("localhost"))
        refused = {
            "other": (Upstreams(issue("elsewhere.example")), "another host"),
            "expired": (Upstreams(issue("localhost", **EXPIRED)), "expired"),
            "alone": (Upstreams(self_signed("localhost")), "self-signed"),
            "nobody": (Upstreams(Authority.made("Nobody").issue("localhost")), "nobody that this machine trusts"),
        }
        ports = {"good": self.serve(good), **{name: self.serve(each) for name, (each, _) in refused.items()}}
        await self.configure({name: f"https://localhost:{port}" for name, port in ports.items()}, {})
        for _ in range(2):
            reply = await self.ask("good")
            self.assertEqual((reply.status, reply.body), (200, {"object": "list"}))
        self.assertEqual([(each.answered, each.tls.selected_alpn_protocol()) for each in good.met], [(2, "http/1.1")])
        for name, (upstreams, words) in refused.items():
            await self.assert_refused(name, f"localhost:{ports[name]}", words)
            self.assertEqual([each.received for each in upstreams.met], [b""], name)

    async def assert_refused(self, name: str, who: str, words: str) -> None:
        """A provider is told to be unreachable, and why."""
        reply = await self.ask(name)
        self.assertEqual(reply.status, 502, reply.text)
        self.assertEqual(reply.headers.getRawHeaders("X-Aileron-Error"), ["network_error"])
        message = reply.body["error"]["message"]
        self.assertIn(who, message)
        self.assertIn(words, message)

    async def test_proxy(self) -> None:
        """Through an HTTP proxy TLS is with the upstream, whose name only the proxy knows."""
        proxied = Upstreams(Authority.made().issue("llm.test"), proxied=True)
        proxy = f"http://me:secret@127.0.0.1:{self.serve(proxied)}"
        await self.configure({"far": "https://llm.test"}, {"HTTPS_PROXY": proxy})
        reply = await self.ask("far")
        self.assertEqual((reply.status, reply.body), (200, {"object": "list"}))
        self.assertTrue(proxied.asked[0].asked.startswith(b"CONNECT llm.test:443 HTTP/1.1\r\n"))
        self.assertIn(b"\r\nHost: llm.test\r\n", proxied.met[0].received)
        self.assertNotIn(b"Proxy-", proxied.met[0].received)
