"""The channel of a site that gives requests away before their bodies: it is the client's end of each of them."""

from __future__ import annotations

from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure

from aileron.base.http1 import HeadCache, RelayedExchange, RequestHead, Route

from .channel import Channel, discard

MAX_TAKEN_HEAD_BYTES = 65536
"""Of requests that are given away: agents send long fields."""


class RelayingChannel(Channel):
    """A L{Channel} that first offers each request to the L{RelayHandler}.  It is the L{Client} of what was taken."""

    most_head_bytes = MAX_TAKEN_HEAD_BYTES
    _taken: RelayedExchange | None = None
    _known: tuple[HeadCache, Route] | None = None  # of a client that has come back: its next heads will look the same
    _wants_body = True  # of its answer
    _held = False
    _stirred = False  # since the last look at the clock
    _relayed = False  # something, ever

    @property
    def at_rest(self) -> bool:
        """True while it waits for no answer of ours, or where its client leaves a whole answer unread."""
        return super().at_rest if self._taken is None else self._taken.answered

    def dataReceived(self, data: bytes) -> None:
        """Take bytes as they come.

        A whole request that looks like the one before, with nothing before it and nothing behind, is handed on at once.
        """
        known = self._known
        waits = self._unread or self._choked or self._queued or self._dealing or self._due is not None
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
        if self._taken is taken:  # and not refused for what came with its head
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
        if self._taken is taken:  # and not refused for what came with its head
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
        """Know a request that looks like the one before."""
        if self._known is not None and not self._choked:
            cache, route = self._known
            found = cache.measure(data)
            if found is not None:
                self._stirred = True
                return found[0] + self._relay(route.exchange(found[1]), data[found[0] :])
        return super()._take_head(data)

    # the client's end of a request that was taken: see Client -------------------------------------------------------

    def hold(self) -> None:
        self._held = True
        super().hold()  # also if it was held before: the site's own answers release it without a word

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
        """Close, once all is sent, and at the latest when a time has passed in which nothing else may come."""
        self._step, self._unread = discard, b""
        self.setTimeout(self.timeOut)  # type: ignore[no-untyped-call]
        self.loseConnection()  # type: ignore[no-untyped-call]

    # the transport's producer: flow control towards the client ------------------------------------------------------

    def pauseProducing(self) -> None:
        """Note that what was written waits to be sent."""
        if self._taken is None:
            super().pauseProducing()
        else:
            self._choked = True
            self._taken.client_is_slow()

    def resumeProducing(self) -> None:
        """Note that it was sent."""
        if self._taken is None:
            super().resumeProducing()
        else:
            self._choked = False
            self._taken.client_has_caught_up()
            self._go_on()

    def timeoutConnection(self) -> None:
        """Nothing came for too long, unless something did, or an answer is under way: its deadlines are the taker's."""
        if self._step is discard:
            self.drop()
        elif self._stirred or self._taken is not None or self.requests:
            self._stirred = False
            self.setTimeout(self.timeOut)  # type: ignore[no-untyped-call]
        elif self._relayed:
            self._finish()  # it may not have read the last answer to its end
        else:
            super().timeoutConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        taken = self._taken
        if taken is not None:
            self._untake()
            taken.client_left()
        super().connectionLost(reason)
