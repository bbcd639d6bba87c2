"""A request as the sites' resources see it, in memory; and an answer made no faster than the client takes it."""

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
from aileron.model.errors import AileronError

_log = Logger()

_VERSION = b"HTTP/1.1"


class MemoryRequest(Request):
    """A request whose body, capped as it is, never touches a disk, and whose head nobody reads a second time."""

    content: BytesIO
    _head: RequestHead

    def begin(self, head: RequestHead) -> None:
        """Take over the head, as checked: its fields say nothing in two ways, and its version is ours."""
        self._head, headers = head, self.requestHeaders
        for line in head.lines.split(b"\r\n")[1:]:
            name, _, value = line.partition(b":")
            headers.addRawHeader(name, value.strip(b" \t"))
        self.parseCookies()  # type: ignore[no-untyped-call]
        self.content = BytesIO()

    def body_received(self) -> None:
        """Hand the request to its resource: of the body nothing is still to come."""
        head = self._head
        if head.length == CHUNKED:
            content = unchunked(self.content.getvalue())
            self.content = BytesIO()
            self.content.write(content)
        self.requestReceived(head.method, head.target, _VERSION)  # type: ignore[no-untyped-call]

    def keep_place(self, owner: str) -> None:
        """Have the connection keep its place while the site is flooded.

        :param owner: who sent this request, as its credential proved.
        """
        keep = getattr(self.channel, "keep", None)  # there is no channel once the client has gone
        if keep is not None:
            keep(owner)


@implementer(IPushProducer)
class _Flow:
    """Tells whether the client takes more.

    :ivar stopped: the client has gone.
    """

    def __init__(self) -> None:
        self.stopped = False
        self._paused: Deferred[None] | None = None

    def pauseProducing(self) -> None:
        """Wait with the next chunk."""
        self._paused = self._paused or Deferred()

    def resumeProducing(self) -> None:
        """Go on with it."""
        paused, self._paused = self._paused, None
        if paused is not None and not paused.called:
            paused.callback(None)

    def stopProducing(self) -> None:
        """Make no more: the client has gone."""
        self.stopped = True
        self.resumeProducing()

    async def more(self) -> bool:
        """Wait until the client takes more; C{False}: it has gone."""
        if self._paused is not None:
            await self._paused
        return not self.stopped


async def stream(request: IRequest, answer: Streamed) -> bytes:
    """Write the chunks of C{answer}; what is left for the caller to write is nothing.

    A failure on the way ends the body: its status has been sent, so the body itself must show that it is not whole.
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
    """Have what makes them end now, not when somebody collects it: it may hold something."""
    if isinstance(chunks, AsyncGenerator):
        await chunks.aclose()
