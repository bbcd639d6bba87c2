"""Interfaces by which a site's channel passes a request to a relay before the request's body has arrived."""

from __future__ import annotations

import re
from typing import Any, Protocol

from attrs import frozen
from twisted.internet.interfaces import ITCPTransport
from werkzeug.exceptions import HTTPException

from ._heads import RequestHead


class RelayClient(Protocol):
    """The client side of a request that a relay handles."""

    @property
    def transport(self) -> ITCPTransport:
        """The transport for the responses to the client."""

    def keep(self, owner: str) -> None:
        """Protect the connection from eviction while the site is flooded.

        Its request has proved to be from C{owner}.
        """

    def hold(self) -> None:
        """Pause reading from the client."""

    def release(self) -> None:
        """Resume reading from the client."""

    def over(self, keep: bool) -> None:
        """Record that the response is completely written.

        :param keep: whether another request may follow. If not, the connection is closed once everything is sent.
        """

    def dismiss(self, answer: bytes) -> None:
        """Write a complete response instead of any other, stop reading, and close the connection.

        :param answer: a response that announces the close of the connection.
        """

    def cut(self, framed: bool) -> None:
        """Abort the response so that the client notices.

        :param framed: whether the head announced the end of the response. If not, the connection is reset.
        """


class RelayedExchange(Protocol):
    """A request accepted by a relay.  Before L{start} it only buffers the bytes passed to it."""

    @property
    def completion(self) -> str:
        """The id of the recorded completion (one call of a language model), or empty if none is recorded.

        It is empty until the response has begun.
        """

    @property
    def answered(self) -> bool:
        """Return True if the response is complete but not yet completely sent to the client."""

    def take(self, data: bytes) -> int:
        """Accept more bytes from the client.

        :return: the index after the request's end, or -1 if all bytes belong to the request and more must follow. At an
            invalid byte, the client gets an error or its response is aborted before this returns.
        """

    def start(self) -> None:
        """Start relaying the request."""

    def client_is_slow(self) -> None:
        """Pause the response, since bytes written to the client are not sent yet."""

    def client_has_caught_up(self) -> None:
        """Resume the response, since all bytes written to the client are sent."""

    def client_left(self) -> None:
        """Stop, since the client's connection is lost. No method is called afterwards."""


class Route(Protocol):
    """The route of one client's requests whose heads differ only in the length of their bodies."""

    def exchange(self, length: int) -> RelayedExchange:
        """Return a new exchange of this route.

        :param length: the length of the body in bytes, or L{CHUNKED}.
        """


class RelayHandler(Protocol):
    """A handler that selects the requests that it relays by their heads."""

    def route(self, head: RequestHead, client: RelayClient) -> Route | None:
        """Return the route of this request and similar ones, or None if the site itself serves the request."""


@frozen
class FirstHandler:
    """A L{RelayHandler} that asks several handlers in order and uses the first route found."""

    handlers: tuple[RelayHandler, ...]

    def route(self, head: RequestHead, client: RelayClient) -> Route | None:
        for each in self.handlers:
            route = each.route(head, client)
            if route is not None:
                return route
        return None


class RelayRoutes:
    """The routes of a Klein application, used to match requests that Klein does not render."""

    def __init__(self, app: Any) -> None:
        app.url_map.merge_slashes = False  # relay the path as sent, or not at all
        self._adapter = app.url_map.bind("localhost")
        self._execute = app.execute_endpoint

    def ask(self, method: bytes, path: bytes, asking: object) -> Any:
        """Return the result of the matching route's handler for C{asking}, or None if no route matches.

        :param path: the path without the query.
        """
        try:
            endpoint, arguments = self._adapter.match(path.decode("ascii"), method.decode("ascii"))
        except HTTPException:  # not found, another method or a redirect
            return None
        return self._execute(endpoint, asking, **arguments)


_LONGEST_BYTES = 4096
_MOST_DIGITS = 18
# The canonical form of a number. A head with a sign, a space or a leading zero is not cached.
_LENGTH = re.compile(rb"\r\n(?i:content-length): *((?:0|[1-9][0-9]{0,17})(?=\r\n))").search


class HeadCache:
    """A cached head that matches all heads that differ only in the number of their Content-Length."""

    __slots__ = ("_after", "_before", "_length")

    def __init__(self, raw: bytes, length: int) -> None:
        """Store a head.

        :param raw: the complete and valid head, with its closing empty line.
        :param length: the length of the body that the head announces.
        """
        number = _LENGTH(raw)
        self._length = length
        self._before, self._after = (raw, b"") if number is None else (raw[: number.start(1)], raw[number.end(1) :])

    @classmethod
    def if_short(cls, raw: bytes, length: int) -> HeadCache | None:
        """Return a cache for the head, or None if the head is so long that parsing it again is cheaper."""
        return cls(raw, length) if len(raw) <= _LONGEST_BYTES else None

    def measure(self, data: bytes) -> tuple[int, int] | None:
        """Match the head at the beginning of C{data}.

        :return: the length in bytes of the head and of its body, or None if the head differs or is incomplete.
        """
        before, after = self._before, self._after
        if not data.startswith(before):
            return None
        if not after:
            return len(before), self._length
        start = len(before)
        end = data.find(b"\r", start, start + _MOST_DIGITS + 1)
        digits = data[start:end]
        if end < 0 or not digits.isdigit() or (digits[0] == 48 and len(digits) > 1) or not data.startswith(after, end):
            return None
        return end + len(after), int(digits)

    def with_length(self, length: int) -> bytes:
        """Return the head with this Content-Length, or unchanged if it has no Content-Length."""
        return b"%b%d%b" % (self._before, length, self._after) if self._after else self._before
