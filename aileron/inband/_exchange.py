"""One request of a client's: collected within bounds, then carried on until its reply, or the client, has ended."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any

from attrs import define, field
from twisted.internet.defer import CancelledError, Deferred
from twisted.internet.interfaces import IDelayedCall, IReactorTime
from twisted.logger import Logger

from aileron.http1 import CHUNKED, Body, Malformed, RelayClient, announced, unchunked

from ._reply import ClientReply

MOST_BODY_BYTES = 32 * 1024 * 1024
"""Of one request; providers take no more."""

MOST_BODIES_BYTES = 128 * 1024 * 1024
"""Of all requests that are collected or under way."""

SILENT_SECONDS = 60.0
"""After which a request that has not come whole is given up."""

_log = Logger()


@define
class BodyBudget:
    """The bytes of all requests' bodies.

    :ivar held: now.
    """

    most: int = MOST_BODIES_BYTES
    held: int = 0


Converse = Callable[["InBandExchange", bytes], Coroutine[Deferred[Any], Any, None]]
"""Carries on the request of this body, to its end."""


@define(eq=False)
class InBandExchange:
    """A request that in-band mode took over.  It is L{aileron.http1.RelayedExchange}.

    :ivar error: writes a document of the client's protocol that says what is wrong, for a status.
    :ivar reply: what the client gets.
    :ivar throttle: told whether the client reads slowly, by who reads from the provider now; L{None}: nobody does.
    """

    client: RelayClient
    length: int
    reply: ClientReply
    error: Callable[[str, int], bytes]
    _converse: Converse
    _budget: BodyBudget
    _clock: IReactorTime
    throttle: Callable[[bool], object] | None = field(default=None, init=False)
    _pieces: list[bytes] = field(factory=list, init=False)
    _held: int = field(default=0, init=False)
    _started: bool = field(default=False, init=False)
    _running: Deferred[None] | None = field(default=None, init=False)
    _deadline: IDelayedCall | None = field(default=None, init=False)
    _body: Body | None = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._body = announced(self.length)

    @property
    def answered(self) -> bool:
        """True once the reply is whole and only waits for the client to read it."""
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
        self._pieces.append(data[:used])
        self._count(self._held + used)
        if self.reply.over:
            return -1
        if end >= 0:
            self._body = None
        self._go_on()
        return end

    def start(self) -> None:
        self._started = True
        self._go_on()

    def client_is_slow(self) -> None:
        self.reply.client_is_slow()
        if self.throttle is not None:
            self.throttle(True)

    def client_has_caught_up(self) -> None:
        self.reply.client_has_caught_up()
        if self.throttle is not None:
            self.throttle(False)

    def client_left(self) -> None:
        """End the conversation: what it waits for goes on without it."""
        self.reply.over = True
        self._release()
        if self._running is not None:
            self._running.cancel()

    def _go_on(self) -> None:
        self._stop_clock()
        if not self._started:
            return
        if self._body is not None:
            self._deadline = self._clock.callLater(
                SILENT_SECONDS, self._dismiss, "The request did not come whole.", 408
            )
        elif self._running is None:
            body, self._pieces = b"".join(self._pieces), []
            content = unchunked(body) if self.length == CHUNKED else body
            self._running = Deferred.fromCoroutine(self._converse(self, content))
            self._running.addErrback(self._failed).addBoth(lambda _: self._release())

    def _failed(self, failure: Any) -> None:
        """Cut the reply off where even its own end failed; what failed is logged without a word of what was said."""
        if failure.check(CancelledError) is None:
            _log.error("in-band mode failed: {kind}", kind=failure.type.__qualname__)
            self.reply.cut(framed=True)

    def _count(self, size: int) -> None:
        self._budget.held += size - self._held
        self._held = size
        if size > MOST_BODY_BYTES:
            self._dismiss(f"The body is longer than {MOST_BODY_BYTES} bytes.", 413)
        elif self._budget.held > self._budget.most:
            self._dismiss("Too many requests are under way. Try again later.", 429)

    def _dismiss(self, message: str, status: int) -> None:
        """Refuse a request that is not whole, and read nothing more of it."""
        self._release()
        self._pieces = []
        self.reply.dismiss(status, self.error(message, status))

    def _release(self) -> None:
        self._stop_clock()
        self._budget.held -= self._held
        self._held = 0

    def _stop_clock(self) -> None:
        deadline, self._deadline = self._deadline, None
        if deadline is not None and deadline.active():
            deadline.cancel()
