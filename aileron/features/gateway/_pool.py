"""Connections to a provider. They are opened on demand and reused, and carry one exchange at a time."""

from __future__ import annotations

from collections import deque
from typing import Any

from twisted.internet.defer import CancelledError
from twisted.internet.error import ConnectionDone
from twisted.internet.interfaces import IAddress, IPushProducer, IReactorTime, IStreamClientEndpoint
from twisted.internet.protocol import Factory, Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.model.errors import AileronError, NetworkError

from ._eager import Write, heard_by, writer
from .exchange import UpstreamExchange
from .values import Ending

MOST_IDLE = 128
IDLE_SECONDS = 50.0
"""The seconds until an idle connection is closed: less than the minute after which many servers close them."""

STALE_SECONDS = 5.0
"""If a reused connection is lost within these seconds, it was closed before the request arrived, so the request is
retried. After a later loss the provider may have started the request, so it is not sent twice."""


@implementer(IPushProducer)
class Connection(Protocol):
    """A connection to a provider, which carries one exchange at a time.

    :ivar idle_since: when the connection became idle, or when it began its current exchange.
    """

    transport: Any
    write: Write
    idle_since = 0.0
    _exchange: UpstreamExchange | None = None
    _served = 0
    _held = False

    def __init__(self, pool: UpstreamPool) -> None:
        self._pool = pool

    def connectionMade(self) -> None:
        """Register as push producer to learn about back-pressure."""
        heard_by(self.transport, self)
        self.transport.setTcpNoDelay(True)
        self.transport.setTcpKeepAlive(True)
        self.transport.registerProducer(self, True)
        self.write = writer(self.transport)

    def carry(self, exchange: UpstreamExchange) -> None:
        """Send the exchange's request, and pass the response to the exchange."""
        self._served += 1
        self._exchange = exchange
        self.idle_since = self._pool.seconds()
        exchange.attach(self, fresh=self._served == 1)

    def dataReceived(self, data: bytes) -> None:
        """Pass received bytes to the exchange. Without an exchange, close the connection."""
        if self._exchange is not None:
            self._exchange.receive(data)
        else:
            self._pool.forget(self)  # not later: connectionLost is called in a later reactor turn
            self.abort()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Retry the exchange if the provider probably closed the connection while it was idle, else report the loss.

        A connection that was reused counts as closed while idle if it is lost within L{STALE_SECONDS} of the reuse.
        """
        exchange, self._exchange = self._exchange, None
        self._pool.forget(self)
        if exchange is None:
            return
        if self._served > 1 and exchange.replayable and self._pool.seconds() - self.idle_since <= STALE_SECONDS:
            exchange.upstream = None
            self._pool.open(exchange)
        else:
            exchange.upstream_left(cleanly=reason.check(ConnectionDone) is not None)

    # for the exchange ----------------------------------------------------------------------------------------------

    def hold(self) -> None:
        """Stop reading from the provider until L{release} is called."""
        self._held = True
        self.transport.pauseProducing()

    def release(self) -> None:
        """Read from the provider again, after L{hold}."""
        if self._held:
            self._held = False
            self.transport.resumeProducing()

    def done(self, keep: bool) -> None:
        """Detach the exchange, which has ended, from the connection.

        :param keep: whether the connection may carry another exchange.
        """
        self._exchange = None
        if keep:
            self._pool.keep(self)
        else:
            self.close()
        if self._held:
            self.release()

    def abort(self) -> None:
        """Close the connection at once. The exchange is not notified."""
        self._exchange = None
        self.transport.abortConnection()

    def close(self) -> None:
        """Close this connection, which carries no exchange."""
        self.transport.unregisterProducer()
        self.transport.loseConnection()

    # the transport's producer: what the client sends ----------------------------------------------------------------

    def pauseProducing(self) -> None:
        """Report to the exchange that bytes written to the provider wait to be sent."""
        if self._exchange is not None:
            self._exchange.upstream_is_slow()

    def resumeProducing(self) -> None:
        """Report to the exchange that all bytes written to the provider were sent."""
        if self._exchange is not None:
            self._exchange.upstream_has_caught_up()

    def stopProducing(self) -> None:
        """Do nothing: the connection is gone, and L{connectionLost} follows."""


class UpstreamPool(Factory):
    """All connections to one provider.

    :ivar seconds: returns the current time.
    """

    noisy = False

    def __init__(self, endpoint: IStreamClientEndpoint, clock: IReactorTime) -> None:
        self._endpoint = endpoint
        self.seconds = clock.seconds
        self._idle: deque[Connection] = deque()

    def buildProtocol(self, addr: IAddress | None) -> Connection:
        return Connection(self)

    def carry(self, exchange: UpstreamExchange) -> None:
        """Send an exchange over the idle connection used last, or over a new one if none is idle."""
        if self._idle:
            self._idle.pop().carry(exchange)
        else:
            self.open(exchange)

    def open(self, exchange: UpstreamExchange) -> None:
        """Send an exchange over a new connection. If there is none, fail the exchange."""
        connecting = self._endpoint.connect(self)
        exchange.give_up = connecting.cancel
        connecting.addCallbacks(self._carry, _fail, callbackArgs=(exchange,), errbackArgs=(exchange,))

    def _carry(self, connection: Any, exchange: UpstreamExchange) -> None:
        exchange.give_up = None
        hindrance = exchange.terms.hindrance()  # the vault may have been locked meanwhile
        if hindrance is not None:
            exchange.fail(hindrance, exchange.refusal)
        if exchange.over:
            connection.close()
        else:
            connection.carry(exchange)

    def keep(self, connection: Connection) -> None:
        """Add a connection to the idle connections, or close it if L{MOST_IDLE} are idle already."""
        if len(self._idle) >= MOST_IDLE:
            connection.close()
        else:
            connection.idle_since = self.seconds()
            self._idle.append(connection)

    def forget(self, connection: Connection) -> None:
        """Remove a closed connection from the idle connections. Idempotent."""
        if connection in self._idle:
            self._idle.remove(connection)

    def sweep(self) -> None:
        """Close the idle connections that have been idle for L{IDLE_SECONDS}."""
        oldest = self.seconds() - IDLE_SECONDS
        while self._idle and self._idle[0].idle_since <= oldest:
            self._idle.popleft().close()

    def close(self) -> None:
        """Close all idle connections."""
        while self._idle:
            self._idle.popleft().close()


def _fail(failure: Failure, exchange: UpstreamExchange) -> None:
    if failure.check(CancelledError):
        return  # the exchange ended and cancelled the attempt
    exchange.give_up = None
    error = failure.value
    if not isinstance(error, AileronError):
        error = NetworkError("The provider could not be connected to.")
    exchange.fail(error, 502, Ending.UNREACHABLE)
