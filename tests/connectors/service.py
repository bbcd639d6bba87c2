"""A service at the other end of memory transports: it records what arrives and answers as a test has written."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, fail, succeed
from twisted.internet.error import ConnectionLost, DNSLookupError
from twisted.internet.error import ConnectionRefusedError as ConnectionRefused
from twisted.internet.interfaces import IOpenSSLClientConnectionCreator, IProtocol
from twisted.internet.protocol import Factory, Protocol
from twisted.internet.testing import MemoryReactorClock
from twisted.python.failure import Failure
from twisted.test.iosim import FakeTransport, IOPump, connect
from zope.interface import implementer

from aileron.base.json import JSON, canonical
from aileron.connectors import ConnectionOpener, HttpConnector, HttpTransport, Spec, Workshop
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.http._spec import HttpSpec
from aileron.model.connectors import READ, Outcome
from aileron.model.interfaces.connectors import IConnector
from aileron.model.interfaces.services import IConnectingReactor
from aileron.testing import MemoryCredential
from tests.connectors.certificate import Certificate

NOW = datetime(2026, 5, 1, 12, 0, tzinfo=UTC)

Reply = bytes | None
"""Raw bytes of an answer, after which the service keeps the connection; L{None}: it never answers."""

PIECE_BYTES = 64 * 1024
"""That arrive at once, at most."""

_LENGTH = re.compile(rb"content-length: (\d+)", re.IGNORECASE)


def answer(body: bytes = b"{}", status: int = 200, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole answer as it goes over the wire."""
    fields = {"Content-Length": str(len(body)), **(headers or {})}
    lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
    return f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n".encode("ascii") + body


def json_answer(value: JSON, status: int = 200, headers: Mapping[str, str] | None = None) -> bytes:
    """A whole answer with a JSON body."""
    return answer(canonical(value), status, headers)


def spec_of(text: str) -> HttpSpec:
    """The specification in a connector file's text, which must be without fault."""
    reading = read_file(text.encode("utf-8"), "test.toml")
    if not isinstance(reading.spec, HttpSpec):
        raise AssertionError(reading.problems)
    return reading.spec


class _Peer(Protocol):
    """One connection as the service sees it."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._received = b""
        self.closed = False

    def dataReceived(self, data: bytes) -> None:
        self._received += data
        head, blank, body = self._received.partition(b"\r\n\r\n")
        length = _LENGTH.search(head)
        if blank and len(body) >= (int(length[1]) if length else 0):
            self._received = b""
            self._service.took(self, head + blank + body)

    def connectionLost(self, reason: object = None) -> None:
        self.closed = True


class _Socket(FakeTransport):
    """Reads in pieces, and nothing while it is paused."""

    def __init__(self, protocol: Any) -> None:
        super().__init__(protocol, isServer=False)  # type: ignore[no-untyped-call]
        self._paused, self._unread, self._ended, self._reading = False, b"", False, False

    def pauseProducing(self) -> None:
        self._paused = True

    def resumeProducing(self) -> None:
        self._paused = False
        self._read()

    def bufferReceived(self, buf: bytes) -> None:
        self._unread += buf
        self._read()

    def reportDisconnect(self) -> None:
        self._ended = True
        self._read()

    def _read(self) -> None:
        if self._reading:
            return
        self._reading = True
        while self._unread and not self._paused and not self.disconnecting:
            piece, self._unread = self._unread[:PIECE_BYTES], self._unread[PIECE_BYTES:]
            self.protocol.dataReceived(piece)
        self._reading = False
        if self._ended and (self.disconnecting or not (self._unread or self._paused)):
            self._ended = False
            super().reportDisconnect()  # type: ignore[no-untyped-call]


@implementer(IConnectingReactor)
class _Reactor(MemoryReactorClock):
    """The reactor's memory double, under the type that the room asks for."""


@frozen
class _Workshop(Workshop):
    """One where it is always the same time of day."""

    def now(self) -> datetime:
        """Return it."""
        return NOW


@define
class Service:
    """The service, the network and the clock.

    :ivar names: what host names resolve to; any other is not known.
    :ivar replies: spent in order, one a request.
    :ivar requests: the raw requests that arrived whole.
    :ivar connected: the addresses that were connected to.
    :ivar certificate: the service speaks TLS with it, if there is one.
    :ivar trusted: what the connector's side trusts.
    :ivar verify: how it trusts, instead.
    :ivar serve: from a port to what serves a connection there, instead of HTTP.
    """

    names: dict[str, Sequence[str]] = field(factory=dict)
    replies: list[Reply] = field(factory=list)
    requests: list[bytes] = field(factory=list)
    connected: list[tuple[str, int]] = field(factory=list)
    own_ports: set[int] = field(factory=set)
    certificate: Certificate | None = None
    trusted: Certificate | None = None
    verify: Callable[[str], IOpenSSLClientConnectionCreator] | None = None
    serve: Callable[[int], IProtocol] | None = None
    refusing: set[str] = field(factory=set)
    reactor: _Reactor = field(factory=_Reactor)
    peers: list[_Peer] = field(factory=list)
    _pumps: list[IOPump] = field(factory=list)
    _seen: int = 0

    @property
    def opener(self) -> ConnectionOpener:
        """What connects to this service."""
        tls = self.verify or (self.trusted or Certificate.made("nobody.invalid")).verifying
        return ConnectionOpener(self.reactor, self._resolve, tls, lambda: self.own_ports)

    @property
    def workshop(self) -> Workshop:
        """What makes connectors whose network is this service."""
        return _Workshop(self.reactor, HttpTransport(self.opener))

    def connector(self, spec: Spec) -> HttpConnector:
        """A connector whose network is this service."""
        assert isinstance(spec, HttpSpec)
        return HttpConnector(spec, HttpTransport(self.opener), self.reactor, lambda: NOW)

    def start(
        self,
        connector: IConnector,
        operation: str,
        inputs: Mapping[str, JSON] | None = None,
        *,
        base_url: str | None = None,
        key: str = "effect-1",
        secret: bytes | None = None,
        seconds: float = 20,
    ) -> Deferred[Outcome]:
        """Start one sending, and let every byte arrive.

        :param key: of the effect.
        :param secret: what the credential opens to; L{None}: there is none.
        """
        request = connector.prepare(operation, inputs or {}, base_url or connector.describe().base_url or "", key)
        send = connector.read if request.effect == READ else connector.invoke
        need = connector.describe().credential
        credential = None if secret is None else MemoryCredential(secret, need.format if need else "{key}")
        sending = Deferred.fromCoroutine(send(request, credential, seconds))
        self.advance(0)
        return sending

    def hang_up(self) -> None:
        """Close the newest connection in order."""
        transport = self.peers[-1].transport
        assert transport is not None
        transport.loseConnection()
        self.advance(0)

    def _resolve(self, host: str) -> Deferred[Sequence[str]]:
        if re.fullmatch(r"[0-9.]+|.*:.*", host):
            return succeed([host])
        if host not in self.names:
            return fail(DNSLookupError(host))
        return succeed(self.names[host])

    def took(self, peer: _Peer, request: bytes) -> None:
        """A request arrived whole."""
        self.requests.append(request)
        reply = self.replies.pop(0)
        if reply is not None and peer.transport is not None:
            peer.transport.write(reply)

    def advance(self, seconds: float = 0) -> None:
        """Let time pass and every byte arrive."""
        self._settle()
        self.reactor.advance(seconds)
        self._settle()

    def reset(self) -> None:
        """The newest connection breaks, as its client sees it."""
        self._pumps[-1].client.connectionLost(Failure(ConnectionLost()))

    def _settle(self) -> None:
        while self._connect() or any(pump.flush() for pump in self._pumps):
            self.reactor.advance(0)

    def _connect(self) -> bool:
        """Whether a connection was tried that is now there, or was refused."""
        if self._seen == len(self.reactor.tcpClients):
            return False
        host, port, factory, *_ = self.reactor.tcpClients[self._seen]
        connector = self.reactor.connectors[self._seen]
        self._seen += 1
        if getattr(connector, "stoppedConnecting", False):
            return True
        self.connected.append((host, port))
        if host in self.refusing:
            factory.clientConnectionFailed(connector, Failure(ConnectionRefused()))
        else:
            self._join(factory.buildProtocol(None), self._http() if self.serve is None else self.serve(port))
        return True

    def _http(self) -> IProtocol:
        peer = _Peer(self)
        self.peers.append(peer)
        factory = Factory.forProtocol(lambda: peer)
        wrapped: Any = factory if self.certificate is None else self.certificate.serving(factory, self.reactor)
        server: IProtocol = wrapped.buildProtocol(None)
        return server

    def _join(self, client: IProtocol | None, server: IProtocol) -> None:
        ends = FakeTransport(server, isServer=True), _Socket(client)
        self._pumps.append(connect(server, ends[0], client, ends[1]))
