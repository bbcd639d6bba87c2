"""Writes the reply to a client: a stream of events, one document, or the provider's own answer as it came."""

from __future__ import annotations

import re
from http import HTTPStatus

from aileron.base.http1 import RelayClient, ResponseHead

# Lines that say how a body is framed, which is another here.
_FRAMING = re.compile(rb"\r\n(?:connection|content-encoding|content-length|transfer-encoding):[^\r]*", re.IGNORECASE)
_OURS = b"\r\nContent-Type: application/json\r\nCache-Control: no-store"
_LAST_CHUNK = b"0\r\n\r\n"
_CLOSE = b"\r\nConnection: close"
_NO_RETRY = b"\r\nX-Should-Retry: false"
"""The field by which the SDKs of OpenAI and Anthropic are told not to send a request again by themselves."""


class ClientReply:
    """The reply to one request.

    :ivar unread: whether some of the request is still to come.
    :ivar begun: whether its head was written.
    :ivar answered: whether it is whole; some of it may still wait for the client.
    :ivar slow: whether something that was written waits for the client to read it.
    :ivar over: whether nothing more is to be done, or the client is gone.
    """

    def __init__(self, client: RelayClient, *, keep: bool) -> None:
        """Begin with nothing.

        :param keep: whether the client may send another request on its connection.
        """
        self._client, self._keep = client, keep
        self.begun = self.answered = self.over = self.slow = False
        self.unread = True

    def begin(self, head: ResponseHead) -> None:
        """Write the head of a stream, with what the provider's says."""
        self.begun = True
        more = b"\r\nTransfer-Encoding: chunked" + (b"" if self._keep else _CLOSE)
        self._write(b"".join((b"HTTP/1.1 ", head.status, _FRAMING.sub(b"", head.lines), more, b"\r\n\r\n")))

    def write(self, data: bytes) -> None:
        """Write the next piece of a stream; nothing, where that is empty."""
        if data and not self.over:
            self._write(b"%x\r\n%b\r\n" % (len(data), data))

    def end(self, data: bytes) -> None:
        """Write the last piece of a stream."""
        self.write(data)
        self._write(_LAST_CHUNK)
        self._complete()

    def document(self, status: bytes, lines: bytes, body: bytes) -> None:
        """Write one whole document.

        :param status: the code, and what stands after it.
        :param lines: as a head has them; those of its framing are replaced.
        """
        self.begun = True
        self._write(_document(status, lines, body, keep=self._keep))
        self._complete()

    def refuse(self, status: int, body: bytes) -> None:
        """Write one whole document of our own, an error; while the request is not read, close behind it."""
        line = f"{status} {HTTPStatus(status).phrase}".encode("ascii")
        if self.unread:
            self.dismiss(_document(line, _OURS, body, keep=False))
        else:
            self.document(line, _OURS + _NO_RETRY, body)

    def dismiss(self, answer: bytes) -> None:
        """Write an answer that says that the connection closes, read nothing more of the request, and close."""
        if not self.over:
            self.over = self.begun = True
            self._client.dismiss(answer)

    def pass_on(self, data: bytes) -> None:
        """Write bytes of the provider's own answer, its head first, as they came."""
        self.begun = True
        self._write(data)

    def passed(self, *, keep: bool) -> None:
        """Note that the provider's answer was passed on, whole.

        :param keep: whether its end can be told without the connection's.
        """
        self._keep = self._keep and keep
        self._complete()

    def cut(self, *, framed: bool) -> None:
        """Break off what was passed on, so that the client notices.

        :param framed: whether its head says where it would have ended.
        """
        if not self.over:
            self.over = True
            self._client.cut(framed)

    def client_is_slow(self) -> None:
        """Note that what was written waits to be sent."""
        self.slow = True

    def client_has_caught_up(self) -> None:
        """Note that it was sent."""
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
