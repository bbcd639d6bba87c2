"""A tunnel through an HTTP proxy (RFC 9110, section 9.3.6), transparent to the protocol above."""

from __future__ import annotations

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocol, ITCPTransport
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure

from aileron.base.http1 import Malformed, ResponseHead, read_response_prefix

from ._proxies import Proxy
from ._unreachable import Cause, UpstreamUnreachable

_MOST_HEAD_BYTES = 16384


class TunnelLayer(Protocol):
    """One connection to a proxy, and the tunnel through it.

    The protocol above gets the transport itself, and every byte after the proxy's response.

    :ivar opened: fires with the protocol above when the proxy has connected, or fails with L{UpstreamUnreachable}.
        Cancelling closes the connection at once.
    """

    transport: ITCPTransport

    def __init__(self, above: IProtocol, proxy: Proxy, target: str) -> None:
        """Create a tunnel.

        :param target: the host and port that the proxy connects to.
        """
        self.opened: Deferred[IProtocol] = Deferred(lambda _: self._give_up())
        self._above = above
        self._proxy = proxy
        self._target = target
        self._head = b""
        self._open = False

    def connectionMade(self) -> None:
        """Send CONNECT to the proxy."""
        target = self._target.encode("ascii")
        self.transport.write(b"CONNECT %b HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (target, target, self._proxy.credentials))

    def dataReceived(self, data: bytes) -> None:
        """Pass received data to the protocol above. Before the tunnel is open, parse it as the proxy's response."""
        if self._open:
            self._above.dataReceived(data)
        elif not self.opened.called:
            self._head += data
            self._look_at_head()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Report the loss to the protocol above. Before the tunnel is open, fail the attempt to connect."""
        if self._open:
            self._above.connectionLost(reason)
        elif not self.opened.called:
            self.opened.errback(self._because("hung up"))

    def _look_at_head(self) -> None:
        try:
            found = read_response_prefix(self._head)
        except Malformed:
            self._refuse("did not answer as an HTTP proxy does")
        else:
            self._head = found.rest
            if found.head is not None:
                self._take_answer(found.head, found.rest)
            elif len(self._head) > _MOST_HEAD_BYTES:
                self._refuse("did not answer as an HTTP proxy does")

    def _take_answer(self, head: ResponseHead, rest: bytes) -> None:
        if head.code == 407:
            self._refuse("wants a user and a password, or other ones (407)")
        elif not 200 <= head.code < 300:
            self._refuse(f"answered {head.code}")
        else:
            self._hand_over(rest)

    def _hand_over(self, rest: bytes) -> None:
        self._open, self._head = True, b""
        self._above.makeConnection(self.transport)
        self.opened.callback(self._above)
        if rest:
            self._above.dataReceived(rest)

    def _refuse(self, what: str) -> None:
        self.opened.errback(self._because(what))
        self._give_up()

    def _give_up(self) -> None:
        self._head = b""
        self.transport.abortConnection()

    def _because(self, what: str) -> UpstreamUnreachable:
        message = f"The proxy {self._proxy.authority} {what} when asked for {self._target}."
        return UpstreamUnreachable.because(Cause.PROXY, message)
