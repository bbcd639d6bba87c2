"""A request as the sites' resources see it, in memory, and answers streamed no faster than the client reads."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator
from io import BytesIO

from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer, IPushProducer
from twisted.logger import Logger
from twisted.web.iweb import IRequest
from twisted.web.server import Request
from zope.interface import implementer

from aileron.api.faults import Streamed
from aileron.base.http1 import CHUNKED, RequestHead, unchunked
from aileron.base.trace_context import read_traceparent
from aileron.model.errors import AileronError

from .request_log import RequestNotes, log_request, read_client_id

_log = Logger()

_VERSION = b"HTTP/1.1"


class MemoryRequest(Request):
    """A request whose body stays in memory, since its size is limited, and whose head was parsed before.

    :ivar notes: the facts about the request for the log.
    """

    content: BytesIO
    notes: RequestNotes
    _head: RequestHead
    _began_at: float
    _is_logged = False

    def begin(self, head: RequestHead, id_: str, now: float) -> None:
        """Copy the fields of the checked head into the request.

        :param id_: our id of the request.
        :param now: the time in seconds of the site's clock.
        """
        self._head, headers, self._began_at = head, self.requestHeaders, now
        for line in head.lines.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            headers.addRawHeader(name, value.strip(b" \t"))
        self.parseCookies()  # type: ignore[no-untyped-call]
        self.content = BytesIO()
        self.notes = RequestNotes(
            id_,
            client_id=read_client_id(headers.getRawHeaders(b"X-Request-Id", ())),
            parent=read_traceparent(headers.getRawHeaders(b"traceparent", ())),
        )

    def body_received(self) -> None:
        """Pass the request with its complete body to its resource."""
        head = self._head
        if head.length == CHUNKED:
            content = unchunked(self.content.getvalue())
            self.content = BytesIO()
            self.content.write(content)
        self.requestReceived(head.method, head.target, _VERSION)  # type: ignore[no-untyped-call]

    def log_end(self, now: float, status: int | None) -> None:
        """Log the end of the request. Idempotent.

        :param status: the status of the answer, or None if the client disconnected before it had the whole answer.
        """
        if not self._is_logged:
            self._is_logged = True
            log_request(self.notes, self._head.method, status, now - self._began_at)

    def keep_place(self, owner: str) -> None:
        """Protect the request's connection from being dropped while the site is full. After a disconnect, do nothing.

        :param owner: the owner of the request's credential.
        """
        keep = getattr(self.channel, "keep", None)  # the channel is None after the client has disconnected
        if keep is not None:
            keep(owner)


@implementer(IPushProducer)
class _Flow:
    """The back-pressure of a response.

    :ivar stopped: True if the client has disconnected.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._paused: Deferred[None] | None = None

    def pauseProducing(self) -> None:
        """Stop sending the response after the present chunk, since the client reads too slowly."""
        self._paused = self._paused or Deferred()

    def resumeProducing(self) -> None:
        """Send the next chunk of the response, since the client reads again."""
        paused, self._paused = self._paused, None
        if paused is not None and not paused.called:
            paused.callback(None)

    def stopProducing(self) -> None:
        """Stop sending the response, since the client has disconnected."""
        self.stopped = True
        self.resumeProducing()

    async def more(self) -> bool:
        """Wait until the client can receive more of the response. Return False if it has disconnected."""
        if self._paused is not None:
            await self._paused
        return not self.stopped


async def stream(request: IRequest, answer: Streamed) -> bytes:
    """Write the chunks of C{answer} no faster than the client reads, and return an empty text for Klein.

    An L{AileronError} during the body is logged and ends it early. The status is already sent, so the body itself must
    show that it is cut.
    """
    request.setResponseCode(answer.status)
    request.responseHeaders.setRawHeaders(b"Content-Type", [answer.content_type])
    for name, value in answer.headers.items():
        request.responseHeaders.setRawHeaders(name, [value])
    flow, consumer = _Flow(), IConsumer(request)
    consumer.registerProducer(flow, True)
    try:
        async for chunk in answer.chunks:
            request.write(chunk)
            if not await flow.more():
                break
    except AileronError as error:
        _log.warn("a body ended early: {why}", why=error.message)
    finally:
        if not flow.stopped:
            consumer.unregisterProducer()
        await _close(answer.chunks)
    return b""


async def _close(chunks: AsyncIterator[bytes]) -> None:
    """Close the generator of chunks now and not at garbage collection, since it may hold resources."""
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()
