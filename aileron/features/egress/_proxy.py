"""One connection through the proxy: admits the session, connects to the host, checks the TLS hello, counts bytes."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum, auto
from typing import Any, cast

from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IDelayedCall, IProtocol, IReactorTime, ITransport
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.logger import Logger
from twisted.python.failure import Failure

from aileron.base.outgoing import send_at_once
from aileron.model.tool_claims import NO_CALLER

from ._counted import CountedTransport
from ._dialer import Dialer, Unreachable
from ._head import ConnectRequest, HeadRefused, read_head, write_refusal
from ._sessions import MOST_TUNNELS, Access, EgressRefused, EgressSessions
from .hello import SERVER_HELLO_BYTES, HelloRefused, asks_again, read_hello
from .values import TunnelOpener

HEAD_SECONDS = 15
LEAVE_SECONDS = 15
"""The time for a host to read the bytes that were sent before the program closed its connection."""

IDLE_SECONDS = 300
MOST_SECONDS = 4 * 3600

_HANDSHAKE = 22
_ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
_ALERT = bytes.fromhex("15030300020270")
"""A fatal alert of TLS: the server does not know this name."""

_GIVEN_UP = "it was given up before it was connected"

_log = Logger()


class _TunnelStage(Enum):
    """The progress of a connection through the proxy.

    C{RECORDING}: the host is connected, and the connection is being recorded; no byte is sent before. C{ANSWER}: the
    client's first TLS message was sent. Nothing more is sent until the server's answer shows if it requests another.
    C{SERVED}: this daemon answers the connection in place of the host. C{REFUSED}: the connection was refused, blocked
    or closed, and nothing more is sent.
    """

    HEAD = auto()
    ASKING = auto()
    CONNECTING = auto()
    RECORDING = auto()
    HELLO = auto()
    ANSWER = auto()
    OPEN = auto()
    SERVED = auto()
    REFUSED = auto()


class _HostConnection(Protocol):
    """The connection from the proxy to the host."""

    transport: Any

    def __init__(self, client: ProxyConnection) -> None:
        self._client = client

    def connectionMade(self) -> None:
        send_at_once(self.transport)

    def dataReceived(self, data: bytes) -> None:
        self._client.answered(data)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._client.host_left()


class ProxyConnection(Protocol):
    """One connection to the proxy, of one session, to one host.

    :ivar host: the host with its port; empty before the request is read.
    """

    transport: Any

    def __init__(
        self,
        sessions: EgressSessions,
        dialer: Dialer,
        clock: IReactorTime,
        lost: Callable[[ProxyConnection], object] = lambda _: None,
    ) -> None:
        """Create the protocol of a new connection.

        :param lost: called when the program's connection is closed.
        """
        self.host = ""
        self._sessions, self._dialer, self._clock, self._lost = sessions, dialer, clock, lost
        self._stage = _TunnelStage.HEAD
        self._buffer = self._first = b""
        self._asked_again = False
        self._access: Access | None = None
        self._caller = NO_CALLER
        self._upstream: _HostConnection | None = None
        self._opener: TunnelOpener | None = None
        self._served: IProtocol | None = None
        self._connecting: Deferred[None] | None = None
        self._end: IDelayedCall | None = None
        self._patience: IDelayedCall | None = None
        self._gone = False

    def connectionMade(self) -> None:
        """Start the timer of the request, and the timer of the whole connection."""
        send_at_once(self.transport)
        self._wait_for(HEAD_SECONDS)
        self._end = self._clock.callLater(MOST_SECONDS, self.cut)

    def dataReceived(self, data: bytes) -> None:
        """Process bytes from the sandbox. After a refusal, they are dropped."""
        if self._stage is _TunnelStage.OPEN:
            self._send(data)
            return
        if self._stage is _TunnelStage.SERVED:
            self._serve(data)
            return
        if self._stage is not _TunnelStage.REFUSED:
            self._buffer += data
        if self._stage is _TunnelStage.HEAD:
            self._read_head()
        elif self._stage is _TunnelStage.HELLO:
            self._read_hello()

    def answered(self, data: bytes) -> None:
        """Process bytes from the host.

        If it speaks before the client's first TLS message, record this and close both sides.
        """
        waits = self._stage in (_TunnelStage.RECORDING, _TunnelStage.HELLO)  # a TLS server never speaks first
        if self._access is None or (waits and not self._asked_again):
            self._report("egress.blocked", "the host speaks first, so it is not TLS")
            self.cut()
            return
        self._moved()
        self._access.count(self.host, received=len(data))
        self.transport.write(data)
        if self._stage is _TunnelStage.ANSWER:
            self._first += data
            if self._first[0] != _HANDSHAKE:
                self._open()
            elif len(self._first) >= SERVER_HELLO_BYTES:
                self._open_or_ask_again()

    def cut(self) -> None:
        """Close both connections at once, and drop bytes that were not sent yet. Idempotent."""
        self._give_up()
        self._stage = _TunnelStage.REFUSED
        self.transport.abortConnection()
        if self._upstream is not None:
            self._upstream.transport.abortConnection()

    def host_left(self) -> None:
        """Handle the close of the host's connection: close the program's once the program has read all bytes."""
        self._upstream = None
        if self._gone:
            self._be_done()
        elif self._stage is not _TunnelStage.RECORDING:
            self.transport.unregisterProducer()  # a paused producer would keep the connection open
            self.transport.loseConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Close the connection to the host, which gets L{LEAVE_SECONDS} to read the program's last bytes.

        C{lost} is called at once.
        """
        self._gone = True
        self._lost(self)
        self._give_up()
        if self._served is not None:
            self._served.connectionLost(reason)
        if self._upstream is None:
            self._be_done()
        elif reason.check(ConnectionDone) is None:
            self._upstream.transport.abortConnection()
        else:
            self._wait_for(LEAVE_SECONDS)
            self._upstream.transport.unregisterProducer()  # a paused producer would keep the connection open
            self._upstream.transport.loseConnection()

    def _give_up(self) -> None:
        """Cancel the attempt to connect to the host. In any other stage, do nothing."""
        if self._connecting is not None and self._stage is _TunnelStage.CONNECTING:
            self._connecting.cancel()

    def _is_over(self) -> bool:
        """Return True if the program's connection is closed or being closed."""
        return self._gone or self._stage is _TunnelStage.REFUSED

    def _be_done(self) -> None:
        self._wait_for(None)
        if self._end is not None and self._end.active():
            self._end.cancel()
        if self._access is not None:
            self._access.tunnels.discard(self)

    def _wait_for(self, seconds: float | None) -> None:
        """Restart the timer that closes the connection, or cancel the timer if C{seconds} is None."""
        if self._patience is not None and self._patience.active():
            self._patience.cancel()
        self._patience = None if seconds is None else self._clock.callLater(seconds, self.cut)

    def _moved(self) -> None:
        if self._patience is not None and self._patience.active():
            self._patience.reset(IDLE_SECONDS)

    def _read_head(self) -> None:
        try:
            request = read_head(self._buffer)
        except HeadRefused as refused:
            self._refuse(refused.status, refused.why)
            return
        if request is None:
            return
        self._stage, self._buffer, self.host = _TunnelStage.ASKING, request.rest, request.host
        self._wait_for(None)  # the next steps have timeouts of their own
        self.transport.pauseProducing()
        self._connecting = Deferred.fromCoroutine(self._connect(request))
        self._connecting.addErrback(self._failed)

    async def _connect(self, request: ConnectRequest) -> None:
        redeemed = self._sessions.redeem(request.ticket)
        if redeemed is None:
            self._refuse(403, "Aileron: the session has ended")
            return
        access, self._caller = redeemed.access, redeemed.caller
        if len(access.tunnels) >= MOST_TUNNELS:
            self._refuse(429, f"This session has {MOST_TUNNELS} connections open already")
            return
        self._access = access
        access.tunnels.add(self)
        private = await self._sessions.admit(access, self.host)
        if self._is_over():
            self._report("egress.failed", _GIVEN_UP)
            return
        self._opener = self._sessions.find_opener(access, self.host)
        if self._opener is not None:
            self._connecting = None
            self._await_hello()
            return
        factory = Factory.forProtocol(lambda: _HostConnection(self))
        factory.noisy = False
        self._stage = _TunnelStage.CONNECTING
        upstream: Any = await self._dialer.connect(self.host, factory, private_network=private)
        self._upstream, self._stage = upstream, _TunnelStage.RECORDING
        await self._sessions.confirm(access, self.host)
        self._connecting = None
        if self._is_over():
            return
        if self._upstream is None:  # the host closed the connection meanwhile
            raise Unreachable
        self.transport.registerProducer(upstream.transport, True)
        self._await_hello()

    def _await_hello(self) -> None:
        self._stage = _TunnelStage.HELLO
        self._wait_for(HEAD_SECONDS)
        self.transport.write(_ESTABLISHED)
        self.transport.resumeProducing()
        self._read_hello()

    def _failed(self, failure: Failure) -> None:
        self._connecting = None
        error = failure.value
        if self._stage in (_TunnelStage.CONNECTING, _TunnelStage.RECORDING):
            self._report("egress.failed", _explain(error))
        if self._is_over():
            return
        if isinstance(error, EgressRefused):
            self._refuse(403, f"Aileron: {self.host} is not allowed: {error.why}")
        elif isinstance(error, Unreachable):
            self._refuse(502, f"Aileron: {self.host} cannot be reached")
        elif not isinstance(error, CancelledError):
            _log.failure("connecting a sandbox", failure)
            self._refuse(500, "Aileron: the connection failed; see aileron log")

    def _report(self, type_: str, why: str) -> None:
        if self._access is not None:
            self._sessions.report(type_, self._access, self.host, why)

    def _refuse(self, status: int, why: str) -> None:
        self._stage = _TunnelStage.REFUSED
        self._wait_for(HEAD_SECONDS)
        self.transport.write(write_refusal(status, why))
        self.transport.loseConnection()
        if self._upstream is not None:
            self._upstream.transport.abortConnection()

    def _read_hello(self) -> None:
        try:
            hello = read_hello(self._buffer)
        except HelloRefused as refused:
            self._block(refused.why)
            return
        if hello is None:
            return
        if hello.name != self.host.rpartition(":")[0]:
            self._block(f"names {hello.name}")
            return
        if self._opener is not None:
            self._open_here(self._opener)
            return
        checked, self._buffer = self._buffer[: hello.length], self._buffer[hello.length :]
        self._wait_for(IDLE_SECONDS)
        self._send(checked)
        if self._asked_again:
            self._open()
        else:
            self._stage = _TunnelStage.ANSWER
            self.transport.pauseProducing()

    def _open_here(self, opener: TunnelOpener) -> None:
        """Give the connection to the opener, which answers it in place of the host, with the bytes received so far."""
        if self._access is None:
            return
        counted = CountedTransport(self.transport, self._count_written)
        served = opener.serve(self._access.session_id, self.host, cast(ITransport, counted), self._caller)
        if served is None:
            self.cut()
            return
        self._served, self._stage = served, _TunnelStage.SERVED
        self._wait_for(None)  # the opener closes it if nothing passes
        held, self._buffer = self._buffer, b""
        self._serve(held)

    def _serve(self, data: bytes) -> None:
        if self._access is not None and self._served is not None:
            self._moved()
            self._access.count(self.host, sent=len(data))
            self._served.dataReceived(data)

    def _count_written(self, number: int) -> None:
        if self._access is not None:
            self._moved()
            self._access.count(self.host, received=number)

    def _block(self, why: str) -> None:
        self._stage = _TunnelStage.REFUSED
        self._report("egress.blocked", why)
        self.transport.unregisterProducer()
        self._wait_for(HEAD_SECONDS)
        self.transport.write(_ALERT)
        self.transport.loseConnection()
        if self._upstream is not None:
            self._upstream.transport.abortConnection()

    def _open_or_ask_again(self) -> None:
        if not asks_again(self._first):
            self._open()
            return
        self._asked_again, self._stage = True, _TunnelStage.HELLO
        self.transport.resumeProducing()
        self._read_hello()

    def _open(self) -> None:
        self._stage = _TunnelStage.OPEN
        held, self._buffer = self._buffer, b""
        if held:
            self._send(held)
        if self._upstream is not None:
            self._upstream.transport.registerProducer(self.transport, True)
        self.transport.resumeProducing()

    def _send(self, data: bytes) -> None:
        if self._access is None or self._upstream is None:
            return
        self._moved()
        self._access.count(self.host, sent=len(data))
        self._upstream.transport.write(data)


def _explain(error: BaseException | None) -> str:
    """Return why no connection was made, as a clause for the program's error response."""
    if isinstance(error, EgressRefused | Unreachable):
        return error.why
    return _GIVEN_UP if isinstance(error, CancelledError) else "it failed; see aileron log"
