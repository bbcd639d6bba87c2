"""TLS as a client, between any stream transport below and a protocol above, whose transport it is.

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
    """The parts of the transport below that are asked for: a type only."""


@implementer(ITransport, IConsumer, IPushProducer)
class TlsLayer(Protocol):
    """One connection.

    What a consumer above may rely on: nothing is delivered while it has paused, nor from within C{resumeProducing}; a
    producer above is paused by the transport below; and only a peer that said C{close_notify} ends with
    L{ConnectionDone}, so that what was cut never looks complete.

    :ivar opened: fires with the protocol above once the peer has proved who it is; L{UpstreamUnreachable} if it does
        not.  Cancelling aborts.
    """

    transport: _Below
    _send: Write

    def __init__(self, above: IProtocol, identity: Identity, clock: IReactorTime) -> None:
        self.opened: Deferred[IProtocol] = Deferred(lambda _: self.abortConnection())
        self._above: IProtocol | None = above  # until it was told of the end
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
        """Say hello."""
        heard_by(self.transport, self)
        self._send = writer(self.transport)
        self._shake_hands()

    def dataReceived(self, data: bytes) -> None:
        """Decrypt, and pass on at once."""
        self._incoming.write(data)
        if self._shaking_hands:
            self._shake_hands()
        self._deliver()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Pass that on, as what it means here."""
        if reason.check(ConnectionDone):
            self._deliver()  # what a consumer that has only just resumed did not get yet
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
        while sent < len(data):  # it promises no more than to have taken some
            sent += self._tls.write(memoryview(data)[sent:])
        self._send(self._outgoing.read())

    def writeSequence(self, data: Iterable[bytes]) -> None:
        self.write(b"".join(data))

    def loseConnection(self) -> None:
        """Send what was written and C{close_notify}, then close.  Nothing is delivered any more.  Twice is safe."""
        if self._open:
            self._open = False
            self._say_goodbye()
            self.transport.loseConnection()

    def abortConnection(self) -> None:
        """Close at once.  Nothing is delivered any more.  Twice is safe."""
        if self._shaking_hands:
            self._above = None  # it was never told of a beginning
        self._shaking_hands = self._open = False
        self.transport.abortConnection()

    def pauseProducing(self) -> None:
        """Deliver nothing, and read nothing below."""
        self._paused = True
        self.transport.pauseProducing()

    def resumeProducing(self) -> None:
        """Deliver again, from the reactor's next turn on."""
        self._paused = False
        if not self._open:
            return
        self.transport.resumeProducing()
        if self._incoming.pending and not self._delivering:
            self._clock.callLater(0, self._deliver_held_back)

    def stopProducing(self) -> None:
        """Nobody wants any more."""
        self.loseConnection()

    def registerProducer(self, producer: IProducer, streaming: bool) -> None:
        """Pause it while the transport below is full."""
        self.transport.registerProducer(producer, streaming)

    def unregisterProducer(self) -> None:
        self.transport.unregisterProducer()

    def getPeer(self) -> IAddress:
        return self.transport.getPeer()

    def getHost(self) -> IAddress:
        return self.transport.getHost()

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Set it on the transport below."""
        self.transport.setTcpNoDelay(enabled)

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """Set it on the transport below."""
        self.transport.setTcpKeepAlive(enabled)

    # Inside.

    def _shake_hands(self) -> None:
        try:
            self._tls.do_handshake()
        except ssl.SSLWantReadError:
            self._flush()
        except ssl.SSLError as error:
            self._flush()  # the alert that tells the peer
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
        """Deliver, and drop the connection of a consumer that breaks, as the reactor does when it delivers."""
        try:
            self._deliver()
        except Exception:
            self.transport.abortConnection()
            raise

    def _deliver(self) -> None:
        if self._delivering or self._above is None:  # the one that is at it goes on
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
            if not self._incoming.pending:  # no need to be told so by an exception
                return

    def _remember(self) -> None:
        """Keep the session: with TLS 1.3 tickets come after the handshake, as a rule before the first data.

        It takes a third of a millisecond, for which no first byte should wait.
        """
        self._remembered = True
        self._identity.remember(self._tls.session)

    def _break(self, error: ssl.SSLError) -> None:
        self._flush()
        self.transport.abortConnection()
        self._end(Failure(ConnectionLost(f"The TLS connection broke ({error.reason}).")))

    def _close_after_peer(self) -> None:
        """Close once the peer closed in order: that is the end, also of what it would not read any more."""
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
        with suppress(ssl.SSLError):  # it does not wait for the peer's
            self._tls.unwrap()
        self._flush()

    def _flush(self) -> None:
        data = self._outgoing.read()
        if data:
            self._send(data)
