"""The network of a proof: each declared host leads to a server of this process, and no connection leaves the machine."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from attrs import define, field
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID
from twisted.internet import ssl
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IProtocolFactory
from twisted.protocols.tls import TLSMemoryBIOFactory

from aileron.addresses import Origin, is_loopback, read_address
from aileron.connectors import ConnectionOpener, HttpTransport

STRANGER = "elsewhere.example"
"""A host that no connector declares; redirects lead there."""

_LOOPBACK = "127.0.0.1"
_NOBODY = 1  # a port on which nothing listens
_PUBLIC = "93.184.{}.{}"  # stands for a host of the internet, and is never connected to
_STRANGE = _PUBLIC.format(255, 1)
_DAY = timedelta(days=1)


@define(eq=False)
class ProofNetwork:
    """Stands between a connector's transport and the reactor.

    Hosts are judged as ever: each resolves to an address of the kind that its connector may connect to.  A connection to
    that address is made to one of two ports of this machine instead, one with TLS and one without.

    :ivar origins: where the connector may go, as it declares.
    :ivar strange: the other hosts that it tried to reach.
    :ivar refusing: whether no server answers, as where a service is down.
    """

    reactor: Any
    origins: Sequence[Origin]
    refusing: bool = False
    strange: list[str] = field(factory=list)
    _ports: dict[bool, Any] = field(factory=dict, init=False)
    _pem: bytes = field(default=b"", init=False)
    _connections: list[Any] = field(factory=list, init=False)

    def listen(self, service: IProtocolFactory) -> None:
        """Serve, from now on, with a certificate that is made for it."""
        self._pem = _certificate([*dict.fromkeys(each.host for each in self.origins), STRANGER])
        options = ssl.PrivateCertificate.loadPEM(self._pem).options()
        secured = TLSMemoryBIOFactory(options, False, service)
        for with_tls, factory in ((True, secured), (False, service)):
            self._ports[with_tls] = self.reactor.listenTCP(0, factory, interface=_LOOPBACK)

    def begin(self, *, refusing: bool) -> None:
        """Forget what was before, for another run."""
        self.refusing = refusing
        self.strange.clear()

    async def close(self) -> None:
        """Serve no more."""
        for port in self._ports.values():
            await port.stopListening()

    @property
    def transport(self) -> HttpTransport:
        """The transport of the daemon, on this network."""
        return HttpTransport(ConnectionOpener(self, self.resolve, self._verify, lambda: ()))

    @property
    def connections(self) -> int:
        """How many connections there are, those included that are being made."""
        self._connections = [each for each in self._connections if each.state != "disconnected"]
        return len(self._connections)

    def resolve(self, host: str) -> Deferred[Sequence[str]]:
        """Resolve a declared host, and note any other."""
        return succeed([self._address(host) if host in self._hosts else self._note(host)])

    @property
    def _hosts(self) -> list[str]:
        return list(dict.fromkeys(each.host for each in self.origins))

    def _address(self, host: str) -> str:
        """Return the address that stands for a declared host; an address stands for itself."""
        if read_address(host) is not None:
            return host
        return _LOOPBACK if is_loopback(host) else _PUBLIC.format(1, self._hosts.index(host) + 1)

    def _note(self, host: str) -> str:
        self.strange.append(host)
        return _STRANGE

    def connectTCP(
        self, host: str, port: int, factory: Any, timeout: float = 30, bindAddress: Any = None
    ) -> Any:
        """Connect to a port of this machine in the place of C{host}."""
        found = next((each for each in self.origins if (self._address(each.host), each.port) == (host, port)), None)
        if found is None and host != _STRANGE:
            self._note(f"{host}:{port}")
        with_tls = found is None or found.scheme == "https"
        target = _NOBODY if self.refusing else self._ports[with_tls].getHost().port
        connection = self.reactor.connectTCP(_LOOPBACK, target, factory, timeout)
        self._connections.append(connection)
        return connection

    def __getattr__(self, name: str) -> Any:
        """Let all but connections be the reactor's."""
        return getattr(self.reactor, name)

    def _verify(self, host: str) -> IOpenSSLClientConnectionCreator:
        made: IOpenSSLClientConnectionCreator = ssl.optionsForClientTLS(
            host, trustRoot=ssl.Certificate.loadPEM(self._pem)
        )
        return made


def _certificate(hosts: Sequence[str]) -> bytes:
    """Make a certificate for these hosts that only itself vouches for, and its key, as PEM."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.now(UTC)
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "aileron prove")])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _DAY)
        .not_valid_after(now + _DAY)
        .add_extension(x509.SubjectAlternativeName([_alternative(each) for each in hosts]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    return made.public_bytes(Encoding.PEM) + private


def _alternative(host: str) -> x509.GeneralName:
    address = read_address(host)
    return x509.DNSName(host) if address is None else x509.IPAddress(address)
