"""Writes the reply to a client: a stream of events, one document, or the provider's answer unchanged."""

from __future__ import annotations

import re
from http import HTTPStatus

from aileron.base.http1 import RelayClient, ResponseHead

# The header lines that frame a body. Our framing differs.
_FRAMING = re.compile(rb"\r\n(?:connection|content-encoding|content-length|transfer-encoding):[^\r]*", re.IGNORECASE)
_OURS = b"\r\nContent-Type: application/json\r\nCache-Control: no-store"
_LAST_CHUNK = b"0\r\n\r\n"
_CLOSE = b"\r\nConnection: close"
_NO_RETRY = b"\r\nX-Should-Retry: false"
"""The header that makes the SDKs of OpenAI and Anthropic not retry a request."""


class ClientReply:
    """The reply to one request.

    :ivar unread: True if part of the request is not received yet.
    :ivar begun: True if the head was written.
    :ivar answered: True if the reply is complete, even if part of it waits for the client.
    :ivar slow: True if written data waits for the client to read it.
    :ivar over: True if the exchange is finished, or the client has disconnected.
    """

    def __init__(self, client: RelayClient, *, keep: bool) -> None:
        """Create an empty reply.

        :param keep: True if the client may send another request on its connection.
        """
        self._client, self._keep = client, keep
        self.begun = self.answered = self.over = self.slow = False
        self.unread = True

    def begin(self, head: ResponseHead) -> None:
        """Write the head of a stream, with the header lines of the provider's head."""
        self.begun = True
        more = b"\r\nTransfer-Encoding: chunked" + (b"" if self._keep else _CLOSE)
        self._write(b"".join((b"HTTP/1.1 ", head.status, _FRAMING.sub(b"", head.lines), more, b"\r\n\r\n")))

    def write(self, data: bytes) -> None:
        """Write the next piece of a stream. If it is empty, write nothing."""
        if data and not self.over:
            self._write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self, data: bytes) -> None:
        """Write the last piece of a stream."""
        self.write(data)
        self._write(_LAST_CHUNK)
        self._complete()

    def document(self, status: bytes, lines: bytes, body: bytes) -> None:
        """Write one whole document.

        :param status: the code and the reason phrase.
        :param lines: the header lines. Those that frame the body are replaced.
        """
        self.begun = True
        self._write(_document(status, lines, body, keep=self._keep))
        self._complete()

    def refuse(self, status: int, body: bytes) -> None:
        """Write an error document. If the request is not completely read, close the connection afterwards."""
        line = f"{status} {HTTPStatus(status).phrase}".encode("ascii")
        if self.unread:
            self.dismiss(_document(line, _OURS, body, keep=False))
        else:
            self.document(line, _OURS + _NO_RETRY, body)

    def dismiss(self, answer: bytes) -> None:
        """Write an answer that announces the close of the connection, stop reading, and close the connection."""
        if not self.over:
            self.over = self.begun = True
            self._client.dismiss(answer)

    def pass_on(self, data: bytes) -> None:
        """Write the next bytes of the provider's answer unchanged, beginning with its head."""
        self.begun = True
        self._write(data)

    def passed(self, *, keep: bool) -> None:
        """Record that the provider's answer was forwarded to the client completely.

        :param keep: True if the answer has an explicit end, so that the connection can stay open.
        """
        self._keep = self._keep and keep
        self._complete()

    def cut(self, *, framed: bool) -> None:
        """End an incomplete reply so that the client notices that it is incomplete.

        :param framed: True if the head of the reply declares the end of its body.
        """
        if not self.over:
            self.over = True
            self._client.cut(framed)

    def client_is_slow(self) -> None:
        """Record that written data waits to be sent."""
        self.slow = True

    def client_has_caught_up(self) -> None:
        """Record that all written data was sent. If the response is complete, end it."""
        self.slow = False
        if self.answered:
            self._complete()

    def _write(self, data: bytes) -> None:
        if not self.over:
            self._client.transport.write(data)

    def _complete(self) -> None:
        self.answered = True
        if not (self.slow or self.over):
            self.over = True
            self._client.over(self._keep)


def _document(status: bytes, lines: bytes, body: bytes, *, keep: bool) -> bytes:
    length = b"\r\nContent-Length: %d" % len(body) + (b"" if keep else _CLOSE)
    return b"".join((b"HTTP/1.1 ", status, _FRAMING.sub(b"", lines), length, b"\r\n\r\n", body))
