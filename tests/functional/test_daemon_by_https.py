"""``aileron-mcp`` reaches the daemon by HTTPS, behind what ends TLS for it, and nobody else in its name."""

from collections.abc import Mapping
from typing import Any, cast

from twisted.internet.address import IPv4Address
from twisted.internet.defer import maybeDeferred
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.interfaces import IAddress, IListeningPort, ITransport
from twisted.internet.protocol import Protocol, ServerFactory, connectionDone
from twisted.internet.ssl import PrivateCertificate
from twisted.protocols.tls import TLSMemoryBIOFactory
from twisted.python.failure import Failure

from tests.functional.case import FunctionalTestCase
from tests.functional.home import installed
from tests.functional.mcp_client import CLIENT, Server
from tests.functional.test_mcp_process import ServerCase
from tests.gateway.certificates import Authority

DIAGNOSTICS = {"name": "aileron_diagnostics", "arguments": {}}


class _Back(Protocol):
    """The daemon's end of one connection."""

    def __init__(self, client: Protocol) -> None:
        self._client = client

    def dataReceived(self, data: bytes) -> None:
        """To the client."""
        cast(ITransport, self._client.transport).write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """So is the client's."""
        cast(ITransport, self._client.transport).loseConnection()


class _Front(Protocol):
    """The client's end, after TLS."""

    def __init__(self, terminator: "Terminator") -> None:
        self._terminator = terminator
        self._held: list[bytes] = []
        self._back: Protocol | None = None

    def connectionMade(self) -> None:
        """Reach the daemon."""
        endpoint = TCP4ClientEndpoint(self._terminator.reactor, "127.0.0.1", self._terminator.to)
        connectProtocol(endpoint, _Back(self)).addCallback(self._reached)

    def _reached(self, back: Protocol) -> None:
        self._back = back
        for data in self._held:
            cast(ITransport, back.transport).write(data)

    def dataReceived(self, data: bytes) -> None:
        """To the daemon; what came is noted, in the clear."""
        self._terminator.seen += data
        if self._back is None:
            self._held.append(data)
        else:
            cast(ITransport, self._back.transport).write(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """So is the daemon's."""
        if self._back is not None:
            cast(ITransport, self._back.transport).loseConnection()


class Terminator(ServerFactory):
    """What ends TLS before a daemon.

    :ivar seen: all that came, in the clear.
    """

    noisy = False

    def __init__(self, reactor: Any, to: int) -> None:
        self.reactor, self.to = reactor, to
        self.seen = b""

    def buildProtocol(self, addr: IAddress | None) -> Protocol:
        """One more connection."""
        return _Front(self)


class HttpsTests(ServerCase, FunctionalTestCase):
    """A daemon in another place than the agent."""

    def setUp(self) -> None:
        """Make an authority, whose certificate lies in a file."""
        super().setUp()
        self.authority = Authority.made()
        self.ca = self.home.project / "ca.pem"
        self.ca.write_text(self.authority.pem)

    def terminate(self, *names: str, by: Authority | None = None) -> tuple[Terminator, int]:
        """End TLS with a certificate for these names, on a port."""
        terminator = Terminator(self.reactor, self.site.port)
        options = PrivateCertificate.loadPEM((by or self.authority).issue(*names)).options()
        port: IListeningPort = self.reactor.listenTCP(
            0, cast(ServerFactory, TLSMemoryBIOFactory(options, False, terminator)), interface="127.0.0.1"
        )
        self.finally_(lambda: self.close(port))
        return terminator, cast(IPv4Address, port.getHost()).port

    async def close(self, port: IListeningPort) -> None:
        """Listen no more."""
        await maybeDeferred(port.stopListening)

    async def told(self, **variables: str) -> str:
        """What the agent is told of the daemon."""
        server = Server()
        environment: Mapping[str, str] = self.home.environment(AILERON_TOKEN="ail_a_test", **variables)
        command = installed("aileron-mcp")
        self.reactor.spawnProcess(server, command, (command,), environment, str(self.home.project))
        self.finally_(lambda: self.end_server(server))
        await self.asked(server, 1, "initialize", CLIENT)
        server.send("notifications/initialized")
        answer = await self.asked(server, 2, "tools/call", DIAGNOSTICS)
        return str(answer["result"]["content"][0]["text"])

    async def test_vouched_for(self) -> None:
        """A daemon whose name its certificate has, by an authority of the file, is asked; by its address likewise."""
        terminator, port = self.terminate("localhost", "127.0.0.1")
        for host in ("localhost", "127.0.0.1"):
            told = await self.told(AILERON_URL=f"https://{host}:{port}", AILERON_CA=str(self.ca))
            self.assertIn("the daemon answers (version stub", told)
        self.assertIn(b"Bearer ail_a_test", terminator.seen)

    async def test_nobody_else(self) -> None:
        """Another name, another's authority, and without a file one that the system does not know: nothing is sent."""
        other = Authority.made("Somebody Else")
        for names, by, variables in (
            (("elsewhere.test",), self.authority, {"AILERON_CA": str(self.ca)}),
            (("localhost",), other, {"AILERON_CA": str(self.ca)}),
            (("localhost",), self.authority, {}),
        ):
            terminator, port = self.terminate(*names, by=by)
            told = await self.told(AILERON_URL=f"https://localhost:{port}", **variables)
            self.assertIn(f"https://localhost:{port} could not prove", told)
            self.assertEqual(terminator.seen, b"")

    async def test_not_in_the_clear(self) -> None:
        """With an authority nothing is sent by plain HTTP, nor where its file is missing or no certificate."""
        _, port = self.terminate("localhost")
        self.assertIn("no https", await self.told(AILERON_URL=self.site.url, AILERON_CA=str(self.ca)))
        broken = self.home.project / "broken.pem"
        broken.write_text("-----BEGIN CERTIFICATE-----\ncanary\n-----END CERTIFICATE-----\n")
        for path in (broken, self.home.project / "nowhere.pem", self.home.project):
            told = await self.told(AILERON_URL=f"https://localhost:{port}", AILERON_CA=str(path))
            self.assertIn("AILERON_CA names is no good", told)
            self.assertNotIn("canary", told)
