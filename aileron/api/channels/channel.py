"""The channel of both sites. It checks each request's head before its body arrives, and limits the body.

It builds the request from the head it checked, so no second parser can read the bytes differently. Only public names
of L{twisted.web} are overridden or called.

A client that sends many requests, or reads no answers, does not slow down others: each connection starts one request
in a turn of the reactor, when its owner's turn has come, and only after the client has read the answers to its
previous requests.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Protocol

from twisted.internet.interfaces import IDelayedCall, IReactorTime, ITCPTransport
from twisted.internet.protocol import connectionDone
from twisted.python.failure import Failure
from twisted.web.http import RESPONSES, HTTPChannel, Request
from twisted.web.http_headers import Headers

from aileron.api.faults import HEADERS, Answer, http_failure
from aileron.base.http1 import Body, Malformed, RequestHead, announced, parse_request

from .checks import MAX_BODY_BYTES, RequestRefused, SiteRules, StaticAnswer, too_long
from .limiter import ConnectionLimiter, RequestTurns
from .request import MemoryRequest
from .request_log import REQUEST_ID, RequestNotes, log_request

if TYPE_CHECKING:
    from twisted.internet.tcp import Connection

MAX_HEAD_BYTES = 16384
LINGER_SECONDS = 2.0
"""The time for which a refused client's data is still read. Closing at once could lose the refusal."""

_CARRIED = tuple(
    (name.encode("ascii"), f"{name}: {value}\r\n".encode("ascii"))
    for name, value in {**HEADERS, "Server": "aileron"}.items()
)
_GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"

discard: Callable[[bytes], int] = len
"""A handler of received bytes that discards them."""


class ChannelSite(Protocol):
    """A site as its channels use it.

    :ivar rules: the checks of each request.
    :ivar limiter: the connections that the site holds.
    :ivar turns: the order in which the requests of busy clients begin.
    :ivar request_seconds: the longest time in which one request may arrive, head and body.
    :ivar ids: returns a new id of a request at each call.
    """

    rules: SiteRules
    limiter: ConnectionLimiter
    turns: RequestTurns
    reactor: IReactorTime
    request_seconds: float
    ids: Callable[[], str]


class Channel(HTTPChannel):
    """An L{HTTPChannel} that processes one request at a time, after its checks passed."""

    site: ChannelSite
    requestFactory: type[MemoryRequest]
    transport: Connection
    most_head_bytes = MAX_HEAD_BYTES
    """The longest head that is received.

    Requests to the site's resources are limited to L{MAX_HEAD_BYTES} in any case.
    """

    carried: ClassVar[Mapping[bytes, bytes]] = {}
    """Further headers of every answer."""

    _step: Callable[[bytes], int] | None = None  # the handler of the next bytes; None while an answer is due
    _body: Body | None = None
    _framed = 0
    _unread = b""
    _dealing = False
    _answered = False  # True if a request was answered since the last received bytes
    _due: IDelayedCall | None = None
    _queued = False  # True until the turn in which the next request starts
    _served = False  # True if at least one request was served
    _choked = False  # True if written data waits for the client to read
    _unsent = 0  # the number of bytes that wait for the client
    _counted = 0  # the bytes that the site's limiter counts

    def connectionMade(self) -> None:
        """Close a connection of another user or without a place in the limiter. Otherwise, wait for a request."""
        super().connectionMade()  # type: ignore[no-untyped-call]
        if not self.site.rules.admits(self.transport):
            self._step = discard
            self.drop()
        elif not self.site.limiter.enter(self):
            self._step = discard
            self.transport.loseConnection()
        else:
            self._step = self._take_head

    @property
    def at_rest(self) -> bool:
        """Return True if no response is owed to the client. Subclasses that divert requests override this."""
        return self._step is not None

    @property
    def is_working(self) -> bool:
        """Return True if an answer is owed to a request that may change something. Streams and long polls do not."""
        return not self.at_rest and not (self.requests and self.requests[-1].method == b"GET")

    def divert(self, head: RequestHead, rest: bytes) -> int:
        """Handle a request outside this channel, before its body arrives and after its address was checked.

        :param rest: the bytes after the head: of its body, or of the next request.
        :return: the number of bytes of C{rest} used, or -1 to pass the request to the site's resources.
        """
        return -1

    def dataReceived(self, data: bytes) -> None:
        """Process received bytes. While the request is queued, only store them."""
        self._unread = self._unread + data if self._unread else data
        if self._queued:
            self._watch()
        else:
            self._go_on()
        self._count()

    def _deal(self) -> None:
        self._dealing, self._answered = True, False
        try:
            while self._unread and self._step is not None and not self._answered:
                used = self._step(self._unread)
                if not used:
                    break
                self._unread = self._unread[used:]
        except Malformed as fault:
            self.refuse(400, str(fault))
        except RequestRefused as refusal:
            self.refuse(refusal.status, refusal.message)
        except StaticAnswer as given:
            self._close_with(given.answer)
        finally:
            self._dealing = False
        if self._answered and self._unread and self._step is not discard:
            self._queue()
        if self._unread or self._due is not None or self._body is not None:
            self._watch()

    def _go_on(self) -> None:
        if self._unread and not self._dealing and not self._queued:
            self._deal()

    def _take_head(self, data: bytes) -> int:
        if self._choked:
            return 0
        end = data.find(b"\r\n\r\n") + 4
        if max(end, len(data) if end < 4 else 0) > self.most_head_bytes:
            raise head_too_long(self.most_head_bytes)
        if end < 4:
            return 0
        head = parse_request(data[:end])
        self.site.rules.check_address(head)
        taken = self.divert(head, data[end:])
        if taken >= 0:
            return end + taken
        if end > MAX_HEAD_BYTES:
            raise head_too_long(MAX_HEAD_BYTES)
        self.site.rules.check_browser(head)
        if self._served and not self.site.turns.begin():
            self._queue()
            return 0
        self._begin(head)
        return end

    def _begin(self, head: RequestHead) -> None:
        self._served = True
        self.resetTimeout()  # type: ignore[no-untyped-call]
        request = self.requestFactory(self)
        self.requests.append(request)
        request.begin(head, self.site.ids(), self.site.reactor.seconds())
        self.persistent = self.checkPersistence(request, b"HTTP/1.1")  # type: ignore[no-untyped-call]
        self._body, self._framed = announced(head.length), 0
        self._step = self._take_body if self._body else None
        if self._body is None:
            request.body_received()
        elif (request.getHeader(b"Expect") or b"").lower() == b"100-continue":
            self.transport.write(_GO_ON)

    def _take_body(self, data: bytes) -> int:
        if self._body is None:
            return 0
        end = self._body.take(data)
        used = len(data) if end < 0 else end
        self._framed += used
        if self._framed > MAX_BODY_BYTES:
            raise too_long()
        self.resetTimeout()  # type: ignore[no-untyped-call]
        request: MemoryRequest = self.requests[-1]
        request.handleContentChunk(data[:used])  # type: ignore[no-untyped-call]
        if end >= 0:
            self._step = self._body = None
            request.body_received()
        return used

    def requestDone(self, request: Request) -> None:
        """After an answer was written, process the bytes received meanwhile, unless the site is closing."""
        self.persistent = self.persistent and not self.site.limiter.closed
        self._framed = 0
        self._count()
        if isinstance(request, MemoryRequest):
            request.log_end(self.site.reactor.seconds(), request.code)
        super().requestDone(request)  # type: ignore[no-untyped-call]
        self.resetTimeout()  # type: ignore[no-untyped-call]
        if not self.persistent:
            return
        self._step = self._take_head
        self.site.limiter.rested(self)
        self._answered = True
        self._go_on()

    def _queue(self) -> None:
        self._queued = True
        self.site.turns.wait(self, self.site.limiter.owner(self))

    def take_turn(self) -> None:
        """Start the next request, because it is this connection's turn."""
        self._queued = False
        if not self._choked:
            self.transport.resumeProducing()  # more bytes may have arrived
        self._go_on()

    def keep(self, owner: str) -> None:
        """Protect this connection from being dropped while the site is full.

        :param owner: the owner that a request on this connection has proved.
        """
        self.site.limiter.keep(self, owner)

    def writeHeaders(self, version: bytes, code: bytes, reason: bytes, headers: Headers) -> None:
        """Write the status line and the headers, including the headers of every response, in one piece.

        If the status is 401, the connection loses its protection from being dropped (see L{ConnectionLimiter}).
        """
        if code == b"401":
            self.site.limiter.give_up(self)
        given = dict(headers.getAllRawHeaders())
        given.pop(b"Server", None)
        lines = [b"%b: %b\r\n" % (name, value) for name, values in given.items() for value in values]
        lines += [line for name, line in _CARRIED if name not in given]
        lines += [b"%b: %b\r\n" % each for each in self.carried.items()]
        lines += [b"%b: %b\r\n" % (REQUEST_ID, each.notes.id.encode("ascii")) for each in self.requests[:1]]
        self.transport.write(b"%b %b %b\r\n%b\r\n" % (version, code, reason, b"".join(lines)))

    def write(self, data: bytes) -> None:
        """Write bytes, and count those that wait for the client to read."""
        super().write(data)  # type: ignore[no-untyped-call]
        if self._choked:
            self._unsent += len(data)
            self._count()

    def writeSequence(self, iovec: Sequence[bytes]) -> None:
        """Write several pieces at once."""
        self.write(b"".join(iovec))

    def _count(self) -> None:
        """Report to the limiter how many bytes this connection holds. The limiter drops the largest connections first.

        The bytes are those of the request, and also of unsent responses if the connection is protected by the limiter.
        """
        limiter, held = self.site.limiter, len(self._unread) + self._framed
        if self._unsent and limiter.owner(self) is not None:
            held += self._unsent
        if held != self._counted:
            self._counted = held
            limiter.count(self, held)

    def refuse(self, status: int, message: str) -> None:
        """Answer with the error envelope, discard the rest of the request, and close."""
        self._close_with(http_failure(status, message))

    def _close_with(self, answer: Answer) -> None:
        begun: MemoryRequest | None = next(iter(self.requests), None)
        notes = RequestNotes(self.site.ids(), "refused") if begun is None else begun.notes
        fields = {
            **HEADERS,
            REQUEST_ID.decode("ascii"): notes.id,
            **{name.decode("ascii"): value.decode("ascii") for name, value in self.carried.items()},
            **answer.headers,
            "Content-Type": answer.content_type,
            "Content-Length": str(len(answer.body)),
            "Connection": "close",
        }
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        reason = RESPONSES.get(answer.status, b"Refused").decode("ascii")
        self.transport.write(f"HTTP/1.1 {answer.status} {reason}\r\n{lines}\r\n".encode("ascii") + answer.body)
        if begun is None:
            log_request(notes, b"", answer.status, 0.0)
        else:
            begun.log_end(self.site.reactor.seconds(), answer.status)
        self.linger()

    def linger(self) -> None:
        """Stop writing, but read for a short time before closing, so that the client receives the last response."""
        self._step, self._unread = discard, b""
        self._settle()
        self._due = self.site.reactor.callLater(LINGER_SECONDS, self.drop)
        if ITCPTransport.providedBy(self.transport):
            self.transport.loseWriteConnection()

    def _watch(self) -> None:
        """Set a deadline for receiving a request that has begun, or cancel it if no request has begun.

        If the client sends more than a head while it must wait for an answer, pause reading.
        """
        if self._step is discard:
            return
        waits = self._step is None or self._queued or self._choked
        begun = self._body is not None or (not waits and bool(self._unread))
        if begun and self._due is None:
            self._due = self.site.reactor.callLater(self.site.request_seconds, self._too_slow)
        elif self._due is not None and not begun:
            self._settle_deadline()
        if waits and len(self._unread) > self.most_head_bytes:
            self.hold()

    def hold(self) -> None:
        """Stop reading requests from the connection until the response to the present request is sent."""
        self.transport.pauseProducing()

    def _too_slow(self) -> None:
        self._due = None
        self.refuse(408, "The request took too long to come.")

    def _settle_deadline(self) -> None:
        due, self._due = self._due, None
        if due is not None and due.active():
            due.cancel()

    def _settle(self) -> None:
        """Cancel the pending deadline, if any, and leave the queue of connections that have a request to start."""
        self._settle_deadline()
        self._queued = False
        self.site.turns.leave(self)

    def pauseProducing(self) -> None:
        """Stop writing, because the transport's buffer is full. Called by the transport."""
        self._choked = True
        super().pauseProducing()  # type: ignore[no-untyped-call]

    def resumeProducing(self) -> None:
        """Resume writing after the transport's buffer was sent, and process the requests received meanwhile."""
        self._choked, self._unsent = False, 0
        self._count()
        super().resumeProducing()  # type: ignore[no-untyped-call]
        self._watch()
        self._go_on()

    def timeoutConnection(self) -> None:
        """Close the connection because it was idle too long. If a response is still due, extend the wait once."""
        if self.requests:
            self.setTimeout(self.timeOut)  # type: ignore[no-untyped-call]
        else:
            self.drop()

    def drop(self) -> None:
        """Close the connection at once, and drop data that was not sent yet."""
        self.transport.abortConnection()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """End the current request, since the client is gone, and no longer count this connection."""
        self._settle()
        self.site.limiter.leave(self)
        for request in self.requests:
            request.log_end(self.site.reactor.seconds(), None)
        super().connectionLost(reason)  # type: ignore[no-untyped-call]


def head_too_long(most: int) -> RequestRefused:
    """Return the error for a request whose head is longer than C{most} bytes."""
    return RequestRefused(431, f"The request's head is longer than {most} bytes.")
