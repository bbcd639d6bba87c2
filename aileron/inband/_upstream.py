"""One request to the daemon's own gateway, made in this process, and the answer's content as it comes."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IReactorTime
from twisted.python.failure import Failure

from aileron.http1 import (
    Chunked,
    ChunkedContent,
    RelayedExchange,
    RelayHandler,
    ResponseHead,
    parse_request,
    read_response_prefix,
)
from aileron.values import derive_gateway_key

from ._turns import BrokenReply

_PIECE_BYTES = 64 * 1024
_CUT_OFF = "The provider's response was cut off before it was complete."

# Lines that say something of one connection, of the body that the client sent, or to in-band mode.
_NOT_ONWARD = re.compile(
    rb"\r\n(?:accept-encoding|connection|content-length|expect|prefer|transfer-encoding|x-aileron-gateway-key):[^\r]*",
    re.IGNORECASE,
)


def onward_lines(lines: bytes) -> bytes:
    """Return the lines of a client's head that go to the provider."""
    return _NOT_ONWARD.sub(b"", lines)


def onward_target(in_band_key: str, path: bytes) -> bytes:
    """Return the target at the gateway, in the name of the session that has this key.

    :param path: with the provider's prefix before it, and the query after it.
    """
    return b"/s/" + derive_gateway_key(in_band_key).encode("ascii") + path


class UpstreamCall:
    """A request to the gateway.  It is L{aileron.http1.RelayClient}, and its own transport.

    :ivar answered: fires when the head of the answer has come.
    :ivar head: that head.
    :ivar raw_head: the same, as it came.
    :ivar ended: fires when the answer's body is complete, or fails with L{BrokenReply}.
    """

    head: ResponseHead

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self.transport: Any = self
        self.answered: Deferred[None] = Deferred(lambda _: self.abort())
        self.ended: Deferred[None] = Deferred(lambda _: self.abort())
        self._exchange: RelayedExchange | None = None
        self._unsent, self._held = memoryview(b""), False
        self._start = self.raw_head = b""
        self._chunks: ChunkedContent | None = None
        self._waiting: list[bytes] = []
        self._hear: Callable[[bytes], object] | None = None
        self._abandoned = False

    def begin(self, gateway: RelayHandler, target: bytes, lines: bytes, body: bytes) -> None:
        """Send the request; called once.

        :param lines: as of L{onward_lines}.
        """
        length = b"\r\nAccept-Encoding: identity\r\nContent-Length: %d\r\n\r\n" % len(body)
        head = parse_request(b"".join((b"POST ", target, b" HTTP/1.1", lines, length)))
        route = gateway.route(head, self)
        if route is None:
            raise BrokenReply("The gateway has no route to this provider.")
        self._exchange = route.exchange(head.length)
        self._unsent = memoryview(body)
        self._feed()
        if self._exchange is not None:
            self._exchange.start()

    def hear(self, hear: Callable[[bytes], object], *, raw: bool = False) -> None:
        """Have the content of the body passed on as it comes, from its beginning.

        :param raw: the body as it is framed.
        """
        if raw:
            self._chunks = None
        self._hear = hear
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            self._pass(data)

    def throttle(self, slow: bool) -> None:
        """Read no more of the answer while the client is slow, and again once it is not."""
        if self._exchange is not None and slow:
            self._exchange.client_is_slow()
        elif self._exchange is not None:
            self._exchange.client_has_caught_up()

    def abort(self) -> None:
        """Let go of the provider's connection, unless it is over; nothing is told any more.  Twice is safe."""
        self._abandoned = True
        self._let_go()

    # the client's side of the exchange: see RelayClient ---------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Take a piece of the answer; what fails here is no failure of the gateway."""
        if self.ended.called or self._exchange is None:
            return
        try:
            self._take(data)
        except Exception:  # noqa: BLE001 - whatever the protocol raises is for the waiting caller
            self._clock.callLater(0, self._fail, Failure())
            self._hear = _ignore

    def keep(self, owner: str) -> None:
        """Nothing is kept: this is no connection."""

    def hold(self) -> None:
        self._held = True

    def release(self) -> None:
        self._held = False
        self._feed()

    def over(self, keep: bool) -> None:
        self._exchange = None
        self._end()

    def dismiss(self, answer: bytes) -> None:
        self.write(answer)
        self._exchange = None
        self._end()

    def cut(self, framed: bool) -> None:
        self._exchange = None
        self._fail(Failure(BrokenReply(_CUT_OFF)))

    # ------------------------------------------------------------------------------------------------------------------

    def _feed(self) -> None:
        while self._unsent and not self._held and self._exchange is not None:
            piece, self._unsent = bytes(self._unsent[:_PIECE_BYTES]), self._unsent[_PIECE_BYTES:]
            self._exchange.take(piece)

    def _take(self, data: bytes) -> None:
        if self.answered.called:
            self._pass(data)
            return
        found = read_response_prefix(self._start + data)
        if found.head is None:
            self._start = found.rest
            return
        self.head, self.raw_head = found.head, found.raw
        self._chunks = ChunkedContent() if isinstance(found.head.body(b"POST"), Chunked) else None
        if found.rest:
            self._waiting.append(found.rest)
        self.answered.callback(None)

    def _pass(self, data: bytes) -> None:
        if self._hear is None:
            self._waiting.append(data)
        elif content := data if self._chunks is None else self._chunks.take(data):
            self._hear(content)

    def _end(self) -> None:
        if self.answered.called and not self.ended.called:
            self.ended.callback(None)
        elif not self.answered.called:
            self._fail(Failure(BrokenReply(_CUT_OFF)))

    def _fail(self, failure: Failure) -> None:
        self._let_go()
        waiting = self.ended if self.answered.called else self.answered
        if not (waiting.called or self._abandoned):
            waiting.errback(failure)

    def _let_go(self) -> None:
        exchange, self._exchange = self._exchange, None
        if exchange is not None:
            exchange.client_left()


def _ignore(_data: bytes) -> None:
    """Do nothing: the reply is broken, and that is on its way."""
