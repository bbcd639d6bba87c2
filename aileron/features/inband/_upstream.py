"""One request to the daemon's own gateway, made within this process, and its answer."""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from attrs import field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.python.failure import Failure

from aileron.base.http1 import (
    Chunked,
    ChunkedContent,
    RelayedExchange,
    RelayHandler,
    ResponseHead,
    parse_request,
    read_response_prefix,
)

from ._turns import BrokenReply
from .protocols import Piece

_PIECE_BYTES = 64 * 1024
_TURN_BYTES = 512 * 1024
_CUT_OFF = "The provider's response was cut off before it was complete."

# Header lines about one connection, the client's body, or in-band mode.
_NOT_ONWARD = re.compile(
    rb"\r\n(?:accept-encoding|connection|content-length|expect|prefer|transfer-encoding|x-aileron-gateway-key):[^\r]*",
    re.IGNORECASE,
)


def _leave_out(lines: bytes) -> bytes:
    return _NOT_ONWARD.sub(b"", lines)


@frozen
class ProviderRequest:
    """The parts of a client's request that are the same in each request sent to the provider on its behalf.

    :ivar target: the target at the gateway.
    :ivar lines: the forwarded lines of the client's head.
    """

    gateway: RelayHandler
    target: bytes = field(repr=False)
    lines: bytes = field(repr=False, converter=_leave_out)


class UpstreamCall:
    """A request to the gateway. It implements L{aileron.base.http1.RelayClient}, and is its own transport.

    :ivar answered: fires when the head of the answer has arrived.
    :ivar head: the parsed head of the answer.
    :ivar raw_head: the head as received.
    :ivar completion: the id of the gateway's record, set with the head, or empty if there is none.
    :ivar ended: fires when the answer's body is complete, or fails with L{BrokenReply}.
    """

    head: ResponseHead
    completion = ""

    def __init__(self, clock: IReactorTime) -> None:
        self._clock = clock
        self.transport: Any = self
        self.answered: Deferred[None] = Deferred(lambda _: self.abort())
        self.ended: Deferred[None] = Deferred(lambda _: self.abort())
        self._exchange: RelayedExchange | None = None
        self._unsent: deque[Piece] = deque()
        self._held = False
        self._later: IDelayedCall | None = None
        self._start = self.raw_head = b""
        self._chunks: ChunkedContent | None = None
        self._waiting: list[bytes] = []
        self._hear: Callable[[bytes], object] | None = None
        self._abandoned = False

    def begin(self, provider: ProviderRequest, body: Sequence[Piece]) -> None:
        """Send the request. Call this once.

        :raises BrokenReply: if the gateway does not serve the provider's target.
        """
        size = sum(map(len, body))
        length = b"\r\nAccept-Encoding: identity\r\nContent-Length: %d\r\n\r\n" % size
        head = parse_request(b"".join((b"POST ", provider.target, b" HTTP/1.1", provider.lines, length)))
        route = provider.gateway.route(head, self)
        if route is None:
            raise BrokenReply("The gateway has no route to this provider.")
        self._exchange = route.exchange(head.length)
        self._unsent.extend(filter(None, body))
        self._feed()
        if self._exchange is not None:
            self._exchange.start()

    def hear(self, hear: Callable[[bytes], object], *, raw: bool = False) -> None:
        """Set the function that is called with each piece of the answer's body, from its beginning.

        :param raw: True to pass the body with its framing, False to pass decoded content.
        """
        if raw:
            self._chunks = None
        self._hear = hear
        waiting, self._waiting = self._waiting, []
        for data in waiting:
            self._pass(data)

    def throttle(self, slow: bool) -> None:
        """Pause reading the answer if C{slow}, else resume."""
        if self._exchange is not None and slow:
            self._exchange.client_is_slow()
        elif self._exchange is not None:
            self._exchange.client_has_caught_up()

    def abort(self) -> None:
        """Close the provider's connection unless the exchange is over. No Deferred is fired afterwards. Idempotent."""
        self._abandoned = True
        self._let_go()

    # the client's side of the exchange: see RelayClient ---------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Process a piece of the answer. An exception makes L{ended} or L{answered} fail, and is not raised here."""
        if self.ended.called or self._exchange is None:
            return
        try:
            self._take(data)
        except Exception:  # noqa: BLE001 - the waiting caller gets each exception
            self._clock.callLater(0, self._fail, Failure())
            self._hear = _ignore

    def keep(self, owner: str) -> None:
        """Do nothing, because there is no connection to protect from being closed."""

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
        """Send the request. A long request is sent in parts, with a reactor turn between them."""
        sent = 0
        while self._unsent and not self._held and self._exchange is not None:
            if sent >= _TURN_BYTES:
                if self._later is None:
                    self._later = self._clock.callLater(0, self._feed_on)
                return
            piece = memoryview(self._unsent.popleft())
            if len(piece) > _PIECE_BYTES:
                self._unsent.appendleft(piece[_PIECE_BYTES:])
            sent += min(len(piece), _PIECE_BYTES)
            self._exchange.take(bytes(piece[:_PIECE_BYTES]))

    def _feed_on(self) -> None:
        self._later = None
        self._feed()

    def _take(self, data: bytes) -> None:
        if self.answered.called:
            self._pass(data)
            return
        found = read_response_prefix(self._start + data)
        if found.head is None:
            self._start = found.rest
            return
        self.head, self.raw_head = found.head, found.raw
        if self._exchange is not None:
            self.completion = self._exchange.completion
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
        later, self._later = self._later, None
        self._unsent.clear()
        if later is not None:
            later.cancel()
        if exchange is not None:
            exchange.client_left()


def _ignore(_data: bytes) -> None:
    """Ignore data that arrives after a failure was reported."""
