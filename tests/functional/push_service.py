"""A push service on loopback that decrypts what it is sent (RFC 8291), and what leads a daemon there.

For the daemon it has a public name, a public address and port 443: its checks of an endpoint are the real ones.
"""

import json
from collections.abc import Mapping
from typing import Any, cast

import attrs
from twisted.internet import ssl
from twisted.internet.address import IPv4Address
from twisted.internet.defer import maybeDeferred
from twisted.internet.interfaces import IListeningPort
from twisted.web.resource import Resource
from twisted.web.server import Request, Site

from tests.connectors.certificate import Certificate
from tests.features.push.case import BrowserDouble, ServiceDouble
from tests.functional.reactor import IKitReactor, until

HOST, ADDRESS = "push.example.org", "203.0.114.7"
_LOOPBACK = "127.0.0.1"
# The first thing that a daemon runs: its transport for Web Push resolves and connects otherwise, and trusts another
# certificate. The address that the name leads to is the one that is checked.
_DIVERTED = """
import aileron.features.push.running as running
from aileron.connectors import ConnectionOpener, HttpTransport
from twisted.internet import ssl
from twisted.internet.defer import succeed

HOST, ADDRESS, LOOPBACK, PORT, PEM = {given!r}

class Diverted:
    def __init__(self, reactor):
        self._reactor = reactor

    def __getattr__(self, name):
        return getattr(self._reactor, name)

    def connectTCP(self, host, port, *args, **named):
        there = (LOOPBACK, PORT) if (host, port) == (ADDRESS, 443) else (host, port)
        return self._reactor.connectTCP(*there, *args, **named)

def verify(host):
    return ssl.optionsForClientTLS(host, trustRoot=ssl.Certificate.loadPEM(PEM))

def resolve(host):
    return succeed([ADDRESS] if host == HOST else [host])

running.system_transport = lambda reactor, own_ports: HttpTransport(
    ConnectionOpener(Diverted(reactor), resolve, verify, own_ports)
)
"""


class _Endpoint(Resource):
    isLeaf = True

    def __init__(self, service: "PushService") -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._service = service

    def render_POST(self, request: Request) -> bytes:
        """Take a message."""
        request.setResponseCode(self._service.take(request))
        return b""


@attrs.define(eq=False)
class PushService:
    """It listens from `listen` until `stop`.

    :ivar double: verifies who sends, and decrypts.
    :ivar gone: the endpoints that it knows no longer.
    :ivar problems: what was wrong with messages.
    """

    _reactor: IKitReactor
    _certificate: Certificate
    double: ServiceDouble = attrs.field(factory=lambda: ServiceDouble({}))
    gone: set[str] = attrs.Factory(set)
    problems: list[str] = attrs.Factory(list)
    _port: IListeningPort | None = None

    @classmethod
    def listen(cls, reactor: IKitReactor) -> "PushService":
        """Serve by TLS."""
        service = cls(reactor, Certificate.made(HOST))
        options = ssl.PrivateCertificate.loadPEM(service._certificate.pem).options()
        listening: Any = reactor
        service._port = listening.listenSSL(0, Site(_Endpoint(service)), options, interface=_LOOPBACK)
        return service

    async def stop(self) -> None:
        """Close the port."""
        assert self._port is not None
        await maybeDeferred(self._port.stopListening)

    def divert(self) -> str:
        """Return the program that a daemon runs first, so that it finds this service."""
        assert self._port is not None
        port = cast("IPv4Address", self._port.getHost()).port
        return _DIVERTED.format(given=(HOST, ADDRESS, _LOOPBACK, port, self._certificate.pem))

    def subscribe(self, name: str) -> BrowserDouble:
        """Return a new browser's keys and endpoint."""
        browser = BrowserDouble(f"https://{HOST}/send/{name}")
        self.double.browsers = {**self.double.browsers, browser.endpoint: browser}
        return browser

    def take(self, request: Request) -> int:
        """Verify, decrypt and keep a message; return the status."""
        url = f"https://{HOST}{request.uri.decode('ascii')}"
        if url in self.gone:
            return 410
        headers = [
            (name.decode().title(), value[0].decode()) for name, value in request.requestHeaders.getAllRawHeaders()
        ]
        try:
            assert request.content is not None
            self.double.take(
                url, [("TTL", dict(headers)["Ttl"]), *headers], request.content.read(), self._reactor.seconds()
            )
        except Exception as error:  # noqa: BLE001 - the test tells of it
            self.problems.append(repr(error))
            return 400
        return 201

    async def arrives(self, count: int, seconds: float = 60) -> tuple[Mapping[str, str], Mapping[str, Any]]:
        """Return the headers and the text of message number ``count``, once it is there."""
        received = self.double.received
        await until(self._reactor, lambda: len(received) >= count, seconds, f"message {count}; {self.problems}")
        return received[count - 1][1:]

    def texts(self) -> str:
        """All that it could read."""
        return json.dumps([[url, dict(headers), text] for url, headers, text in self.double.received])
