"""Sends a request's body at once, and reads an answer's up to a cap."""

from __future__ import annotations

from attrs import define, field
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IConsumer
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from twisted.web.client import ResponseDone
from twisted.web.iweb import IBodyProducer, IResponse
from zope.interface import implementer


@implementer(IBodyProducer)
@define
class Whole:
    """A body that is written at once and in one piece, so that it leaves together with the head."""

    content: bytes
    length: int = field(init=False)

    @length.default
    def _measure(self) -> int:
        return len(self.content)

    def startProducing(self, consumer: IConsumer) -> Deferred[None]:
        consumer.write(self.content)
        return succeed(None)

    def stopProducing(self) -> None:
        """Nothing is left to stop."""

    def pauseProducing(self) -> None:
        """Nothing is left to pause."""

    def resumeProducing(self) -> None:
        """Nothing is left to resume."""


class TooLong(Exception):
    """The body went past its cap."""


def read_body(response: IResponse, max_bytes: int) -> Deferred[bytes]:
    """The whole body; cancelling ends the connection.

    :raises TooLong: it has more than C{max_bytes}.
    :raises Exception: whatever cut it off, a missing end included.
    """
    reader = _Reader(max_bytes)
    response.deliverBody(reader)
    return reader.done


class _Reader(Protocol):
    """Gathers the body; C{done} fires once, with all of it or with why not."""

    def __init__(self, max_bytes: int) -> None:
        self._left = max_bytes
        self._parts: list[bytes] = []
        self.done: Deferred[bytes] = Deferred(lambda _: self._hang_up())

    def dataReceived(self, data: bytes) -> None:
        self._left -= len(data)
        if self._left >= 0:
            self._parts.append(data)
        elif not self.done.called:
            self.done.errback(TooLong())
            self._hang_up()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        if self.done.called:
            return
        if reason.check(ResponseDone):
            self.done.callback(b"".join(self._parts))
        else:
            self.done.errback(reason)

    def _hang_up(self) -> None:
        # What is left of a body in memory has a transport that can only stop.
        transport = self.transport
        abort = getattr(transport, "abortConnection", None) or getattr(transport, "stopProducing", None)
        if abort is not None:
            abort()
