"""The body of a response, which is gathered until it is clear whether it is long, and then passed on in pieces."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IPushProducer, IReactorTime
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.base.outgoing import EndedBody

from ._answer import ServiceAnswer, ServiceUnreachable

MOST_GATHERED_BYTES = 256 * 1024
"""The longest body that is received as a whole before any of it is passed on."""


@implementer(IPushProducer)
class GatheredBody(EndedBody):
    """The body of one response. Its pieces are gathered until L{pass_on} is called, or until the body is long.

    :param is_whole: returns whether the body is complete, given the reason of its end.
    :param close: closes the connection, unless it is kept for other requests.
    """

    transport: Any

    def __init__(self, is_whole: Callable[[Failure], bool], close: Callable[[], object], clock: IReactorTime) -> None:
        self._is_whole, self._close, self._clock = is_whole, close, clock
        self._gathered: list[bytes] = []
        self._turn: IDelayedCall | None = None
        self._size = 0
        self._enough: Deferred[None] | None = None
        self._take: Callable[[bytes], object] | None = None
        self._passing: Deferred[None] | None = None
        self._has_ended = self._is_complete = self._is_paused = False

    async def gather(self, seconds: float) -> bytes | None:
        """Return the whole body, or None if it is longer than L{MOST_GATHERED_BYTES} or does not end in time.

        :raises ServiceUnreachable: if the connection broke.
        """
        if not self._has_ended and self._size <= MOST_GATHERED_BYTES:
            self._enough = Deferred()
            late = self._clock.callLater(seconds, self._note_enough)
            try:
                await self._enough
            finally:
                self._enough = None
                if late.active():
                    late.cancel()
        if not self._has_ended or self._size > MOST_GATHERED_BYTES:
            self._hold_back()
            return None
        if not self._is_complete:
            raise ServiceUnreachable
        return b"".join(self._gathered)

    def pass_on(self, take: Callable[[bytes], object]) -> Deferred[None]:
        """Call C{take} with each piece, beginning with what was gathered. What arrives in one turn is one piece.

        :return: a Deferred that fires at the end of the body. It fails with L{ServiceUnreachable} if the connection
            breaks, and with the exception of C{take}, after which nothing more is passed on. Cancelling closes the
            connection.
        """
        passing: Deferred[None] = Deferred(lambda _: self.close())
        self._passing = passing
        self._take = take
        self._pass()
        if self._has_ended:
            self._finish()
        elif not self._is_paused:
            self.transport.resumeProducing()
        return passing

    def close(self) -> None:
        """Stop receiving and passing on the body. Idempotent."""
        self._passing = None
        self._gathered.clear()
        self._close()
        self._stop_turn()

    def stopProducing(self) -> None:
        """Close the body, because its consumer has stopped."""
        self.close()

    def pauseProducing(self) -> None:
        """Pause receiving until L{resumeProducing} is called."""
        self._is_paused = True
        self._hold_back()

    def resumeProducing(self) -> None:
        """Resume receiving."""
        self._is_paused = False
        if not self._has_ended:
            self.transport.resumeProducing()

    def dataReceived(self, data: bytes) -> None:
        self._gathered.append(data)
        if self._take is not None:
            if self._turn is None:
                self._turn = self._clock.callLater(0, self._pass)
            return
        self._size += len(data)
        if self._size > MOST_GATHERED_BYTES:
            self._hold_back()
            self._note_enough()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self._has_ended, self._is_complete = True, self._is_whole(reason)
        self._close()
        self._note_enough()
        if self._take is not None:
            self._finish()

    def _hold_back(self) -> None:
        if not self._has_ended:
            self.transport.pauseProducing()

    def _note_enough(self) -> None:
        if self._enough is not None and not self._enough.called:
            self._enough.callback(None)

    def _pass(self) -> None:
        """Pass on what was gathered."""
        self._stop_turn()
        piece = b"".join(self._gathered)
        self._gathered.clear()
        if self._passing is None or self._take is None or not piece:
            return
        try:
            self._take(piece)
        except Exception:  # noqa: BLE001  (the consumer of the pieces gets it)
            passing, self._passing = self._passing, None
            self._close()
            passing.errback(Failure())

    def _stop_turn(self) -> None:
        if self._turn is not None and self._turn.active():
            self._turn.cancel()
        self._turn = None

    def _finish(self) -> None:
        self._pass()
        passing, self._passing = self._passing, None
        if passing is None:
            return
        if self._is_complete:
            passing.callback(None)
        else:
            passing.errback(ServiceUnreachable())


@frozen
class OpenedAnswer:
    """A response of which only the beginning has arrived.

    :ivar head: the response without its body.
    :ivar length: the number of bytes of the body, or None if it is not known.
    :ivar body: the body. It must be read to its end, or closed.
    """

    head: ServiceAnswer
    length: int | None
    body: GatheredBody

    @property
    def is_long(self) -> bool:
        """True if the head says that the body is long."""
        return self.length is not None and self.length > MOST_GATHERED_BYTES
