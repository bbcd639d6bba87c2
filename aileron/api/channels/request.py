"""A request as the sites' resources see it: made of the head that was judged, its body in memory."""

from __future__ import annotations

from collections.abc import Sequence
from io import BytesIO
from typing import Protocol, runtime_checkable

from twisted.web.server import Request

from aileron.http1 import CHUNKED, RequestHead, unchunked

_VERSION = b"HTTP/1.1"
_CONTENT_TYPE = b"Content-Type"
_JSON = b"application/json"


@runtime_checkable
class KeepsPlace(Protocol):
    """A connection whose place can be kept."""

    def keep(self, owner: str) -> None:
        """See L{Channel.keep}."""


class MemoryRequest(Request):
    """A request whose body, capped as it is, never touches a disk, and whose head nobody reads a second time."""

    content: BytesIO
    _head: RequestHead
    _kinds: Sequence[bytes] = ()

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
        self.requestReceived(head.method, head.target, _VERSION)

    def requestReceived(self, command: bytes, path: bytes, version: bytes) -> None:
        """See L{Request.requestReceived}, which looks for forms by parsing the type: dear, and vain for JSON."""
        kinds = self.requestHeaders.getRawHeaders(_CONTENT_TYPE, ())
        if kinds and kinds[0].startswith(_JSON):
            self._kinds = kinds
            self.requestHeaders.removeHeader(_CONTENT_TYPE)
        super().requestReceived(command, path, version)  # type: ignore[no-untyped-call]

    def keep_place(self, owner: str) -> None:
        """Have the connection keep its place while the site is flooded.

        :param owner: who sent this request, as its credential proved.
        """
        if isinstance(self.channel, KeepsPlace):
            self.channel.keep(owner)

    def process(self) -> None:
        """See L{Request.process}; resources see the request as it came."""
        if self._kinds:
            self.requestHeaders.setRawHeaders(_CONTENT_TYPE, self._kinds)
        super().process()  # type: ignore[no-untyped-call]
