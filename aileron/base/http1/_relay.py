"""Lets a site's channel hand a request to a relay before its body has arrived."""

from __future__ import annotations

import re
from typing import Any, Protocol

from attrs import frozen
from twisted.internet.interfaces import ITCPTransport
from werkzeug.exceptions import HTTPException

from ._heads import RequestHead


class RelayClient(Protocol):
    """The client's side of a request that a relay has taken over."""

    @property
    def transport(self) -> ITCPTransport:
        """The transport that answers are written to."""

    def keep(self, owner: str) -> None:
        """Keep this connection's place: its request has proved who C{owner} is."""

    def hold(self) -> None:
        """Read no more of what the client sends."""

    def release(self) -> None:
        """Read again."""

    def over(self, keep: bool) -> None:
        """Note that the answer is written, whole.

        :param keep: whether another request may follow; without, the connection is closed once everything was sent.
        """

    def dismiss(self, answer: bytes) -> None:
        """Write a whole answer in place of any, read nothing more, and close.

        :param answer: which says that the connection closes.
        """

    def cut(self, framed: bool) -> None:
        """Break the answer off, so that the client notices.

        :param framed: whether its head says where it would have ended; if not, only a reset shows it.
        """


class RelayedExchange(Protocol):
    """A request that was taken.  Before L{start} it only collects what it is given."""

    @property
    def completion(self) -> str:
        """The id under which it is recorded as a completion, once its answer has begun; empty if it is not."""

    @property
    def answered(self) -> bool:
        """True while its answer is whole, and only waits for the client to read it."""

    def take(self, data: bytes) -> int:
        """More of what the client sends.

        :return: the index just past the request's end, or -1: all of it belongs and more must come.  Where a byte
            cannot stand there the client is dismissed, or its answer cut, before this returns.
        """

    def start(self) -> None:
        """Begin to carry it on."""

    def client_is_slow(self) -> None:
        """Note that what was written to the client waits to be sent."""

    def client_has_caught_up(self) -> None:
        """Note that it was sent."""

    def client_left(self) -> None:
        """Note that the client's connection is gone. Nothing is called after this."""


class Route(Protocol):
    """The route of one client's requests whose heads differ in the length of their bodies alone."""

    def exchange(self, length: int) -> RelayedExchange:
        """Begin one of them.

        :param length: of its body in bytes, or L{CHUNKED}.
        """


class RelayHandler(Protocol):
    """Decides by their heads which requests it relays."""

    def route(self, head: RequestHead, client: RelayClient) -> Route | None:
        """Return the route of this request and of those like it; L{None}: they are for the site's own resources."""


@frozen
class FirstHandler:
    """Several handlers of the agent site's channel: the first one that takes a request has it.

    It is itself a L{RelayHandler}.
    """

    handlers: tuple[RelayHandler, ...]

    def route(self, head: RequestHead, client: RelayClient) -> Route | None:
        for each in self.handlers:
            route = each.route(head, client)
            if route is not None:
                return route
        return None


class RelayRoutes:
    """The routes that a Klein application declares, asked about requests that it never renders."""

    def __init__(self, app: Any) -> None:
        app.url_map.merge_slashes = False  # what was sent is what goes on, or nothing does
        self._adapter = app.url_map.bind("localhost")
        self._execute = app.execute_endpoint

    def ask(self, method: bytes, path: bytes, asking: object) -> Any:
        """Return what the route's handler makes of C{asking}; L{None}: there is no such route.

        :param path: without a query.
        """
        try:
            endpoint, arguments = self._adapter.match(path.decode("ascii"), method.decode("ascii"))
        except HTTPException:  # not found, another method, a redirect: not ours
            return None
        return self._execute(endpoint, asking, **arguments)


_LONGEST_BYTES = 4096
_MOST_DIGITS = 18
# As a number is written again: a sign, a space or a nought before it makes a head like no other.
_LENGTH = re.compile(rb"\r\n(?i:content-length): *((?:0|[1-9][0-9]{0,17})(?=\r\n))").search


class HeadCache:
    """One head that was read, and all that are the same bytes but for the number of their Content-Length."""

    __slots__ = ("_after", "_before", "_length")

    def __init__(self, raw: bytes, length: int) -> None:
        """Remember a head.

        :param raw: the whole of it, sound, with its closing empty line.
        :param length: that it tells.
        """
        number = _LENGTH(raw)
        self._length = length
        self._before, self._after = (raw, b"") if number is None else (raw[: number.start(1)], raw[number.end(1) :])

    @classmethod
    def if_short(cls, raw: bytes, length: int) -> HeadCache | None:
        """Return the same; L{None}: the head is so long that it is rather read anew than remembered."""
        return cls(raw, length) if len(raw) <= _LONGEST_BYTES else None

    def measure(self, data: bytes) -> tuple[int, int] | None:
        """Tell whether such a head stands at the beginning of C{data}.

        :return: its own length in bytes and the one that it tells, or L{None}: it is another one, or not all there.
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
        """Return the one that tells this length."""
        return b"%b%d%b" % (self._before, length, self._after) if self._after else self._before
