"""How a site's channel gives a request away before its body has come: to whoever carries it on."""

from __future__ import annotations

from typing import Protocol

from twisted.internet.interfaces import ITCPTransport

from ._request import RequestHead


class Client(Protocol):
    """The client's end of a request that was taken, as whoever took it sees it."""

    @property
    def transport(self) -> ITCPTransport:
        """What answers are written to."""

    def keep(self, owner: str) -> None:
        """Keep this connection's place: its request has proved who C{owner} is."""

    def hold(self) -> None:
        """Read no more of what the client sends."""

    def release(self) -> None:
        """Read again."""

    def over(self, keep: bool) -> None:
        """The answer is written, whole.

        :param keep: whether another request may follow; without, the connection is closed once everything was sent.
        """

    def dismiss(self, answer: bytes) -> None:
        """Write a whole answer in place of any, read nothing more, and close.

        :param answer: which says that the connection closes.
        """

    def cut(self, framed: bool) -> None:
        """The answer breaks off, and the client is to notice.

        :param framed: whether its head says where it would have ended; if not, only a reset shows it.
        """


class Taken(Protocol):
    """A request that was taken.  Before L{start} it only collects what it is given.

    :ivar answered: whether its answer is whole, and only waits for the client to read it.
    """

    answered: bool

    def take(self, data: bytes) -> int:
        """More of what the client sends.

        :return: the index just past the request's end, or -1: all of it belongs and more must come.  Where a byte
            cannot stand there the client is dismissed, or its answer cut, before this returns.
        """

    def start(self) -> None:
        """Begin to carry it on."""

    def client_is_slow(self) -> None:
        """What was written to the client waits to be sent."""

    def client_has_caught_up(self) -> None:
        """It was sent."""

    def client_left(self) -> None:
        """The client's connection is gone.  Nothing is called after this."""


class Way(Protocol):
    """What becomes of one client's requests whose heads differ in the length of their bodies alone."""

    def taken(self, length: int) -> Taken:
        """One of them.

        :param length: of its body in bytes, or L{CHUNKED}.
        """


class Taker(Protocol):
    """Decides by their heads which requests it takes."""

    def way(self, head: RequestHead, client: Client) -> Way | None:
        """Of the request with this head, and of those like it; L{None}: they are for the site's own resources."""
