"""An agent for what we ask: whole requests to a known site, whole answers, connections that are kept."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from typing import Any, cast

from attrs import define, field, frozen
from twisted.internet.defer import Deferred, DeferredList
from twisted.internet.interfaces import IAddress, IProtocol, IStreamClientEndpoint
from twisted.internet.protocol import Factory
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.http_headers import Headers
from twisted.web.iweb import IAgent, IBodyProducer, IResponse
from zope.interface import implementer

from aileron.http1 import ResponseHead

from ._body import Whole
from ._line import Line

MOST_KEPT = 8

Site = tuple[bytes, bytes]
"""Scheme and authority."""

_DONE = Failure(ResponseDone())
_NOTHING = Headers()


@implementer(IAgent)
@define(eq=False)
class Courier:
    """Asks over connections that it keeps; what was cut off is never sent again.

    :param endpoint: how to reach a site; asked once for each.
    :param max_bytes: an answer's body beyond this is cut there.
    """

    _endpoint: Callable[[Site], IStreamClientEndpoint]
    _max_bytes: int
    _endpoints: dict[Site, IStreamClientEndpoint] = field(factory=dict, init=False)
    _idle: defaultdict[Site, list[Line]] = field(factory=lambda: defaultdict(list), init=False)

    def request(
        self, method: bytes, uri: bytes, headers: Headers | None = None, bodyProducer: IBodyProducer | None = None
    ) -> Deferred[IResponse]:
        """See L{IAgent.request}.

        :param bodyProducer: a L{Whole}, or L{None}.
        """
        scheme, _, place = uri.partition(b"://")
        authority, slash, path = place.partition(b"/")
        site = (scheme, authority)
        message = _message(method, slash + path, headers or Headers(), bodyProducer)
        answered = self._asked(site, method, message)
        return cast("Deferred[IResponse]", answered.addCallback(_arrived))

    def close(self) -> Deferred[Any]:
        """Close what is kept; fires when all of it is closed."""
        return DeferredList([line.close() for kept in list(self._idle.values()) for line in list(kept)])

    def _asked(self, site: Site, method: bytes, message: bytes) -> Deferred[tuple[ResponseHead, bytes]]:
        idle = self._idle[site]
        if idle:
            return idle.pop().ask(method, message)
        if site not in self._endpoints:
            self._endpoints[site] = self._endpoint(site)
        connecting = self._endpoints[site].connect(_Lines(_Shelf(idle), self._max_bytes))
        return connecting.addCallback(lambda line: cast("Line", line).ask(method, message))


@frozen
class _Shelf:
    """The idle connections of one site."""

    _idle: list[Line]

    def keep(self, line: Line) -> None:
        """See L{Keeper}; where there are enough it is closed."""
        if len(self._idle) < MOST_KEPT:
            self._idle.append(line)
        else:
            line.close()

    def forget(self, line: Line) -> None:
        """See L{Keeper}."""
        if line in self._idle:
            self._idle.remove(line)


class _Lines(Factory):
    """Makes the connections of one site."""

    noisy = False

    def __init__(self, shelf: _Shelf, max_bytes: int) -> None:
        self._made = shelf, max_bytes

    def buildProtocol(self, addr: IAddress | None) -> Line:
        """One more."""
        return Line(*self._made)


@implementer(IResponse)
@frozen
class Arrived:
    """An answer of which all has come.  Of its head only the code is told: nobody here asks for more."""

    code: int
    _content: bytes
    version: tuple[bytes, int, int] = (b"HTTP", 1, 1)
    phrase: bytes = b""
    headers: Headers = _NOTHING
    request: Any = None
    previousResponse: Any = None

    @property
    def length(self) -> int:
        """Of the body."""
        return len(self._content)

    def deliverBody(self, protocol: IProtocol) -> None:
        """Hand over all of it at once."""
        protocol.dataReceived(self._content)
        protocol.connectionLost(_DONE)

    def setPreviousResponse(self, response: IResponse) -> None:
        """None is ever followed."""


def _arrived(answer: tuple[ResponseHead, bytes]) -> Arrived:
    head, body = answer
    return Arrived(head.code, body)


def _message(method: bytes, target: bytes, headers: Headers, body: object) -> bytes:
    """The whole request, to be sent in one piece."""
    lines = [b"%b %b HTTP/1.1" % (method, target)]
    lines += [b"%b: %b" % (name, value) for name, values in headers.getAllRawHeaders() for value in values]
    if isinstance(body, Whole):
        return b"\r\n".join([*lines, b"Content-Length: %d\r\n\r\n%b" % (body.length, body.content)])
    return b"\r\n".join([*lines, b"\r\n"])
