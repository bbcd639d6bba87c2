"""A channel that can pass a request to a relay handler, such as the gateway, before the request's body arrives.

For such requests the channel is the handler's client.
"""

from __future__ import annotations

from typing import Protocol

from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from aileron.base.http1 import HeadCache, RelayedExchange, RelayHandler, RequestHead, Route

from .channel import Channel, ChannelSite, discard

MAX_TAKEN_HEAD_BYTES = 65536
"""The longest head of a relayed request, since agents send long fields."""


class RelayingSite(ChannelSite, Protocol):
    """A site that hands some requests to a relay handler before it reads their bodies.

    :ivar taker: the handler. It is offered each request once the head is read.
    """

    taker: RelayHandler


class RelayingChannel(Channel):
    """A L{Channel} that first offers each request to the L{RelayHandler}, and is the L{Client} of the relayed ones."""

    site: RelayingSite
    most_head_bytes = MAX_TAKEN_HEAD_BYTES
    _taken: RelayedExchange | None = None
    _known: tuple[HeadCache, Route] | None = None  # the cached head of the last request: the next heads are similar
    _wants_body = True  # True if the client expects a body in the answer
    _held = False
    _stirred = False  # True if data arrived since the last timeout check
    _relayed = False  # True if at least one byte was relayed

    @property
    def at_rest(self) -> bool:
        """True if no response is due on the connection, or if the client does not read a complete response."""
        return super().at_rest if self._taken is None else self._taken.answered

    @property
    def _refuses_work(self) -> bool:
        """Return True if the daemon is stopping, so that each head is checked."""
        rules = self.site.rules
        return rules.is_stopping

    @property
    def is_working(self) -> bool:
        return super().is_working if self._taken is None else not self._taken.answered

    def dataReceived(self, data: bytes) -> None:
        """Process received bytes.

        A complete request whose head equals the previous one, with nothing before or behind it, is relayed at once.
        """
        known = self._known
        waits = self._unread or self._choked or self._queued or self._dealing or self._due is not None
        waits = waits or self._refuses_work
        if known is None or waits or self._step != self._take_head:
            super().dataReceived(data)
            return
        cache, route = known
        found = cache.measure(data)
        if found is None or found[0] + found[1] != len(data):
            super().dataReceived(data)
            return
        self._stirred, self._step = True, None
        taken = self._taken = route.exchange(found[1])
        taken.take(data[found[0] :])
        if self._taken is taken:  # and not refused for the body bytes received with its head
            taken.start()

    def divert(self, head: RequestHead, rest: bytes) -> int:
        self._stirred, self._known = True, None
        route = self.site.taker.route(head, self)
        if route is None:
            return -1
        cache = HeadCache.if_short(head.raw, head.length) if self._relayed else None
        if cache is not None:
            self._known = cache, route
        self._wants_body = head.method != b"HEAD"
        return self._relay(route.exchange(head.length), rest)

    def _relay(self, taken: RelayedExchange, rest: bytes) -> int:
        self._taken = taken
        used = self._carry(rest)
        if self._taken is taken:  # and not refused for the body bytes received with its head
            taken.start()
        return used

    def _carry(self, data: bytes) -> int:
        taken = self._taken
        if taken is None:
            return len(data)
        end = taken.take(data)
        if self._taken is taken:
            self._step = self._carry if end < 0 else None
        return len(data) if end < 0 else end

    def _take_head(self, data: bytes) -> int:
        """Relay a request without parsing if its head differs from the last relayed head at most in Content-Length.

        Any other head is parsed and handled by L{Channel}.

        :return: the number of bytes used, or 0 if the head is incomplete or the request has to wait.
        """
        if self._known is not None and not self._choked and not self._refuses_work:
            cache, route = self._known
            found = cache.measure(data)
            if found is not None:
                self._stirred = True
                return found[0] + self._relay(route.exchange(found[1]), data[found[0] :])
        return super()._take_head(data)

    # the client's end of a relayed request: see Client ---------------------------------------------------------------

    def hold(self) -> None:
        self._held = True
        super().hold()  # also if it was paused: the site's own answers release it silently

    def release(self) -> None:
        if self._held:
            self._held = False
            self.transport.resumeProducing()

    def over(self, keep: bool) -> None:
        whole = self._step is None
        self._untake()
        if keep and not self.site.limiter.closed:
            self.site.limiter.rested(self)
            self._step = self._take_head
            if self._held:
                self.release()
            if self._unread:
                self._go_on()
        elif whole:
            self._finish()
        else:
            self.release()
            self.linger()

    def dismiss(self, answer: bytes) -> None:
        self._untake()
        self.release()
        self.transport.write(answer if self._wants_body else answer[: answer.index(b"\r\n\r\n") + 4])
        self.linger()

    def cut(self, framed: bool) -> None:
        self._untake()
        if framed:
            self._finish()
        else:
            self.drop()

    def _untake(self) -> None:
        self._taken = None
        self._relayed = self._stirred = True

    def _finish(self) -> None:
        """Close the connection after everything is sent, or after a timeout. Data that arrives meanwhile is ignored."""
        self._step, self._unread = discard, b""
        self.setTimeout(self.timeOut)  # type: ignore[no-untyped-call]
        self.loseConnection()  # type: ignore[no-untyped-call]

    # the transport's producer: flow control towards the client ------------------------------------------------------

    def pauseProducing(self) -> None:
        """Stop writing, because the transport's buffer is full. Called by the transport."""
        if self._taken is None:
            super().pauseProducing()
        else:
            self._choked = True
            self._taken.client_is_slow()

    def resumeProducing(self) -> None:
        """Write again, because the transport's buffer was sent. Called by the transport."""
        if self._taken is None:
            super().resumeProducing()
        else:
            self._choked = False
            self._taken.client_has_caught_up()
            self._go_on()

    def timeoutConnection(self) -> None:
        """Close an idle connection. If data has arrived, or the handler owes a response, do nothing."""
        if self._step is discard:
            self.drop()
        elif self._stirred or self._taken is not None or self.requests:
            self._stirred = False
            self.setTimeout(self.timeOut)  # type: ignore[no-untyped-call]
        elif self._relayed:
            self._finish()  # the client may not have read the whole last answer
        else:
            super().timeoutConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        taken = self._taken
        if taken is not None:
            self._untake()
            taken.client_left()
        super().connectionLost(reason)
