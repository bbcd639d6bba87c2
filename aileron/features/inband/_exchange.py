"""One request of a client, received within limits, and processed until the reply ends."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from aileron.base.http1 import CHUNKED, Body, ChunkedContent, Malformed, RelayClient, announced
from aileron.model.errors import LimitExceeded

from ._reply import ClientReply
from .protocols import MOST_VALUES, ValueCounter

MOST_BODY_BYTES = 32 * 1024 * 1024
"""The largest body of one request. Providers accept no more."""

MOST_BODIES_BYTES = 128 * 1024 * 1024
"""The most bytes held for all requests and replies in progress. One session may hold half of them."""

SILENT_SECONDS = 60.0
"""The seconds after which an incomplete request is abandoned."""

_TOO_MUCH = "Too many requests are under way. Try again later."
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"

_log = Logger()


@define
class BodyBudget:
    """The count of the bytes held in memory for all requests and their replies, with limits.

    :ivar held: the bytes held now.
    """

    most: int = MOST_BODIES_BYTES
    held: int = 0
    _shares: Counter[str] = field(factory=Counter, init=False)

    def count(self, owner: str, by: int) -> bool:
        """Add C{by} bytes to a session's count. Return whether this count and the total are within their limits."""
        self.held += by
        self._shares[owner] += by
        share = self._shares[owner]
        if not share:
            del self._shares[owner]
        return self.held <= self.most and share <= self.most // 2


Converse = Callable[["InBandExchange"], Coroutine[Deferred[Any], Any, None]]
"""A function that processes a request to its end."""


@define(eq=False)
class InBandExchange:
    """A request that in-band mode handles. It implements L{aileron.base.http1.RelayedExchange}.

    :ivar asks: True if the client waits for C{100 Continue} before it sends the body.
    :ivar error: returns an error document of the client's protocol for a message and a status.
    :ivar reply: the reply to the client.
    :ivar throttle: called with True when the client reads too slowly and with False when it has caught up, or None if
        no provider is read.
    """

    client: RelayClient
    length: int
    asks: bool
    reply: ClientReply
    error: Callable[[str, int], bytes]
    _converse: Converse
    _budget: BodyBudget
    _clock: IReactorTime
    throttle: Callable[[bool], object] | None = field(default=None, init=False)
    _pieces: list[bytes] = field(factory=list, init=False)
    _held: int = field(default=0, init=False)
    _owner: str = field(default="", init=False)
    _running: Deferred[None] | None = field(default=None, init=False)
    _whole: Deferred[None] | None = field(default=None, init=False)
    _deadline: IDelayedCall | None = field(default=None, init=False)
    _body: Body | None = field(init=False)
    _content: ChunkedContent | None = field(init=False)
    _values: ValueCounter = field(factory=ValueCounter, init=False)
    _digest: Any = field(factory=hashlib.sha256, init=False)

    def __attrs_post_init__(self) -> None:
        self._body = announced(self.length)
        self._content = ChunkedContent() if self.length == CHUNKED else None

    @property
    def values(self) -> int:
        """The number of JSON values counted in the request body so far."""
        return self._values.count

    @property
    def digest(self) -> bytes:
        """The SHA-256 of the body received so far."""
        digest: bytes = self._digest.digest()
        return digest

    @property
    def completion(self) -> str:
        """Return an empty text: each response of the provider is recorded as a completion elsewhere."""
        return ""

    @property
    def answered(self) -> bool:
        """True if the reply is complete and only waits for the client to read it."""
        return self.reply.answered

    def take(self, data: bytes) -> int:
        if self._body is None:
            return 0
        try:
            end = self._body.take(data)
        except Malformed as fault:
            self._dismiss(str(fault), 400)
            return -1
        used = len(data) if end < 0 else end
        piece = data[:used]  # decoded in pieces: decoding a whole body of small chunks would block for seconds
        self._keep(piece if self._content is None else self._content.take(piece))
        self._count(self._held + used)
        if self.reply.over:
            return -1
        if end >= 0:
            self._body = None
        if self._whole is not None:
            self._await_body(self._whole)
        return end

    def _keep(self, content: bytes) -> None:
        self._pieces.append(content)
        self._digest.update(content)
        self._values.feed(content)

    def start(self) -> None:
        if self.length > MOST_BODY_BYTES:
            self._refuse_long()
            return
        if self._body is not None:
            self.client.hold()  # until collect() is called, when the session is known
        self._running = Deferred.fromCoroutine(self._converse(self))
        self._running.addErrback(self._failed).addBoth(lambda _: self._release())

    def belong_to(self, owner: str) -> None:
        """Record the session of the request, and count its bytes for the session.

        :raises LimitExceeded: if the session or all sessions hold too many bytes.
        """
        self.client.keep(owner)
        self._budget.count(self._owner, -self._held)
        self._owner = owner
        if not self._budget.count(owner, self._held):
            raise LimitExceeded(_TOO_MUCH)

    async def collect(self) -> None:
        """Read the client's body until it is complete. If the client expects it, send C{100 Continue} first."""
        self._whole = whole = Deferred[None]()
        if self.asks and not self._held and self._body is not None:
            self.client.transport.write(_GO_ON)
        self.client.release()
        self._await_body(whole)
        await whole

    @property
    def size(self) -> int:
        """The number of bytes in memory for this request."""
        return self._held

    def give(self) -> bytes:
        """Return the received request body, and remove it from memory. Call this once."""
        body, self._pieces = b"".join(self._pieces), []
        return body

    def charge(self, size: int) -> None:
        """Set the bytes held for the request and its reply.

        :raises LimitExceeded: if the session or all sessions hold too many bytes.
        """
        if self.reply.over:
            return
        by, self._held = size - self._held, size
        if not self._budget.count(self._owner, by) and by > 0:
            raise LimitExceeded(_TOO_MUCH)

    def client_is_slow(self) -> None:
        self.reply.client_is_slow()
        if self.throttle is not None:
            self.throttle(True)

    def client_has_caught_up(self) -> None:
        self.reply.client_has_caught_up()
        if self.throttle is not None:
            self.throttle(False)

    def client_left(self) -> None:
        """Cancel the processing of the request. Runs that it started continue."""
        self.reply.over = True
        self._release()
        if self._running is not None:
            self._running.cancel()

    def _await_body(self, whole: Deferred[None]) -> None:
        self._stop_clock()
        if self._body is None:
            self._whole, self.reply.unread = None, False
            whole.callback(None)
        else:
            late = "The request did not come whole."
            self._deadline = self._clock.callLater(SILENT_SECONDS, self._dismiss, late, 408)

    def _failed(self, failure: Any) -> None:
        """Log an unexpected failure without its message, which may contain content, and cut the reply."""
        if failure.check(CancelledError) is None:
            _log.error("in-band mode failed: {kind}", kind=failure.type.__qualname__)
            self.reply.cut(framed=True)

    def _count(self, size: int) -> None:
        is_within = self._budget.count(self._owner, size - self._held)
        self._held = size
        if size > MOST_BODY_BYTES:
            self._refuse_long()
        elif self.values > MOST_VALUES:
            self._dismiss(f"The body has more than {MOST_VALUES} values. In-band mode takes no more.", 413)
        elif not is_within:
            self._dismiss(_TOO_MUCH, 429)

    def _refuse_long(self) -> None:
        self._dismiss(f"The body is longer than {MOST_BODY_BYTES} bytes.", 413)

    def _dismiss(self, message: str, status: int) -> None:
        """Refuse a request of which only a part has arrived: stop reading it, and cancel its processing."""
        self._release()
        self._pieces = []
        self.reply.refuse(status, self.error(message, status))
        if self._running is not None:
            self._running.cancel()

    def _release(self) -> None:
        self._stop_clock()
        self._budget.count(self._owner, -self._held)
        self._held = 0

    def _stop_clock(self) -> None:
        deadline, self._deadline = self._deadline, None
        if deadline is not None and deadline.active():
            deadline.cancel()
