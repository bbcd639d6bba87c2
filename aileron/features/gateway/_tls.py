"""TLS as a client, between a stream transport below and a protocol above.

The standard library's L{ssl.SSLObject} over two memory buffers costs less than Twisted's wrapper of pyOpenSSL.
"""

from __future__ import annotations

import ssl
from collections.abc import Iterable
from contextlib import suppress

from twisted.internet.defer import Deferred
from twisted.internet.error import ConnectionDone, ConnectionLost
from twisted.internet.interfaces import (
    IAddress,
    IConsumer,
    IDelayedCall,
    IProducer,
    IProtocol,
    IPushProducer,
    IReactorTime,
    ITCPTransport,
    ITransport,
)
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ._certificates import Identity, handshake_failed
from ._eager import Write, heard_by, writer
from ._unreachable import Cause, UpstreamUnreachable

_MOST_RECORD_BYTES = 16384
_LINGER_SECONDS = 5.0


class _Below(ITCPTransport, IConsumer, IPushProducer):
    """The methods that L{TlsLayer} uses of the transport below it. It is only a type."""


@implementer(ITransport, IConsumer, IPushProducer)
class TlsLayer(Protocol):
    """One TLS connection.

    A consumer above may rely on the following. No data is delivered while the consumer is paused, nor from within
    C{resumeProducing}. A producer above is paused by the transport below. Only a peer that sent C{close_notify} ends
    with L{ConnectionDone}, so that a truncated response never looks complete.

    :ivar opened: fires with the protocol above when the handshake succeeds, or fails with L{UpstreamUnreachable}.
        Cancelling closes the connection at once.
    """

    transport: _Below
    _send: Write

    def __init__(self, above: IProtocol, identity: Identity, clock: IReactorTime) -> None:
        self.opened: Deferred[IProtocol] = Deferred(lambda _: self.abortConnection())
        self._above: IProtocol | None = above  # None after connectionLost
        self._identity = identity
        self._clock = clock
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._tls = identity.secure(self._incoming, self._outgoing)
        self._shaking_hands = True
        self._open = False  # to the protocol above
        self._paused = False
        self._delivering = False
        self._remembered = False
        self._linger: IDelayedCall | None = None

    # From the transport below.

    def connectionMade(self) -> None:
        """Start the TLS handshake."""
        heard_by(self.transport, self)
        self._send = writer(self.transport)
        self._shake_hands()

    def dataReceived(self, data: bytes) -> None:
        """Decrypt received data, and deliver it to the protocol above unless this is paused."""
        self._incoming.write(data)
        if self._shaking_hands:
            self._shake_hands()
        self._deliver()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Fail the handshake, or report the end above: as L{ConnectionLost} if the peer sent no C{close_notify}."""
        if reason.check(ConnectionDone):
            self._deliver()  # data held back from a consumer that has just resumed
        if self._shaking_hands:
            self._refuse(
                UpstreamUnreachable.because(Cause.TLS, f"{self._identity.who} hung up during the TLS handshake.")
            )
        elif self._open and reason.check(ConnectionDone):
            reason = Failure(ConnectionLost("The peer ended the connection without a TLS close_notify."))
        self._end(reason)
        if self._linger is not None and self._linger.active():
            self._linger.cancel()

    # For the protocol above.

    def write(self, data: bytes) -> None:
        if not self._open or not data:
            return
        sent = self._tls.write(data)
        while sent < len(data):  # a write may be partial
            sent += self._tls.write(memoryview(data)[sent:])
        self._send(self._outgoing.read())

    def writeSequence(self, data: Iterable[bytes]) -> None:
        self.write(b"".join(data))

    def loseConnection(self) -> None:
        """Send buffered data and C{close_notify}, then close. Nothing is delivered after that. Idempotent."""
        if self._open:
            self._open = False
            self._say_goodbye()
            self.transport.loseConnection()

    def abortConnection(self) -> None:
        """Close at once. Nothing is delivered after that. Idempotent."""
        if self._shaking_hands:
            self._above = None  # connectionMade was never called, so connectionLost must not be
        self._shaking_hands = self._open = False
        self.transport.abortConnection()

    def pauseProducing(self) -> None:
        """Stop delivering data, and stop reading from the transport below."""
        self._paused = True
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Resume delivering, from the reactor's next turn on."""
        self._paused = False
        if not self._open:
            return
        self.transport.resumeProducing()
        if self._incoming.pending and not self._delivering:
            self._clock.callLater(0, self._deliver_held_back)

    def stopProducing(self) -> None:
        """Close the connection."""
        self.loseConnection()

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """Register a producer, which is paused while the transport below is full."""
        self.transport.registerProducer(producer, streaming)

    def unregisterProducer(self) -> None:
        self.transport.unregisterProducer()

    def getPeer(self) -> IAddress:
        return self.transport.getPeer()

    def getHost(self) -> IAddress:
        return self.transport.getHost()

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Set TCP_NODELAY on the transport below."""
        self.transport.setTcpNoDelay(enabled)

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """Set SO_KEEPALIVE on the transport below."""
        self.transport.setTcpKeepAlive(enabled)

    # Inside.

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # sends the TLS alert
            self._refuse(handshake_failed(error, self._identity.who))
            self.transport.loseConnection()
        else:
            self._flush()
            self._hand_over()

    def _hand_over(self) -> None:
        above = self._above
        if above is not None:
            self._shaking_hands, self._open = False, True
            above.makeConnection(self)
            self.opened.callback(above)

    def _refuse(self, error: UpstreamUnreachable) -> None:
        self._shaking_hands, self._above = False, None
        self.opened.errback(error)

    def _deliver_held_back(self) -> None:
        """Deliver buffered data.

        If the consumer raises an error, close the connection, as the reactor does, and raise the error.
        """
        try:
            self._deliver()
        except Exception:
            self.transport.abortConnection()
            raise

    def _deliver(self) -> None:
        if self._delivering or self._above is None:  # if delivering, the outer call continues
            return
        self._delivering = True
        try:
            self._deliver_records(self._above)
        finally:
            self._delivering = False
        if self._outgoing.pending:  # the answer to a key update
            self._flush()

    def _deliver_records(self, above: IProtocol) -> None:
        while self._open and not self._paused:
            try:
                data = self._tls.read(_MOST_RECORD_BYTES)
            except ssl.SSLWantReadError:
                return
            except ssl.SSLError as error:
                self._break(error)
                return
            if not data:
                self._close_after_peer()
                return
            above.dataReceived(data)
            if not self._remembered:
                self._remember()
            if not self._incoming.pending:  # cheaper than an exception
                return

    def _remember(self) -> None:
        """Store the TLS session for resumption. TLS 1.3 tickets usually arrive shortly before the first data.

        Storing takes a third of a millisecond, so it is done after the first data was delivered.
        """
        self._remembered = True
        self._identity.remember(self._tls.session)

    def _break(self, error: ssl.SSLError) -> None:
        self._flush()
        self.transport.abortConnection()
        self._end(Failure(ConnectionLost(f"The TLS connection broke ({error.reason}).")))

    def _close_after_peer(self) -> None:
        """Close the connection after the peer sent C{close_notify}. Data that the peer has not read yet is dropped."""
        self._say_goodbye()
        self.transport.unregisterProducer()
        self.transport.loseConnection()
        self._linger = self._clock.callLater(_LINGER_SECONDS, self.transport.abortConnection)
        self._end(Failure(ConnectionDone()))

    def _end(self, reason: Failure) -> None:
        self._open = False
        above, self._above = self._above, None
        if above is not None:
            above.connectionLost(reason)

    def _say_goodbye(self) -> None:
        with suppress(ssl.SSLError):  # the peer's close_notify is not awaited
            self._tls.unwrap()
        self._flush()

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            self._send(data)
