"""The outcome of a sending as its transport tells it: an answer, or the way it failed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer

DEFAULT_MAX_RESPONSE_BYTES = 1024 * 1024
MOST_RESPONSE_BYTES = 16 * 1024 * 1024
_REQUEST_TIMEOUT, _TOO_MANY = 408, 429


def may_pass(status: int) -> bool:
    """Tell whether the same request may succeed later."""
    return status >= 500 or status in {_REQUEST_TIMEOUT, _TOO_MANY}


@frozen
class OutgoingRequest:
    """A request as it leaves, its credential among the headers: never shown.

    :ivar headers: name and value, in order.
    :ivar private_network: whether loopback and private addresses may be connected to.
    :ivar max_response_bytes: what its answer may have.
    :ivar private_key: what logs in over SSH; empty for HTTP.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(repr=False)
    private_network: bool
    max_response_bytes: int
    private_key: str = field(default="", repr=False)


@frozen
class ServiceAnswer:
    """An answer, whole.

    :ivar headers: by lower-case name; of a repeated one the first, but all challenges, with commas between.
    :ivar head: the reason phrase, and every header as it came: its name, then its value.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    head: tuple[str, ...] = field(default=(), repr=False)


@define
class Flight:
    """The progress of one sending.

    :ivar sent: whether the transport was handed the first byte of the request, after the TLS handshake.
    :ivar overdue: whether it was given up because that took too long.
    """

    sent: bool = False
    overdue: bool = False


class AddressRefused(Exception):
    """No address that may be connected to; nothing was sent."""


class ServiceUnreachable(Exception):
    """No connection came about, or it broke; L{Flight} says whether before or after sending."""


@define(eq=False)
class TooLarge(Exception):
    """The answer is larger than allowed.

    :ivar status: of its head, if that came.
    """

    status: int | None


TakeBody = Callable[[bytes], bool]
"""Takes a piece of a body, and returns whether that is enough: then the connection is closed."""

BeginBody = Callable[[ServiceAnswer], TakeBody]
"""From an answer without its body to what takes this."""


class Transport(Protocol):
    """Sends one request on a connection of its own."""

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Send C{message}, once; C{flight} is kept true to what happens.

        Follows no redirect.  Cancelling drops the connection and errbacks with C{CancelledError}.

        :return: the answer, whatever its status, or a failure: L{AddressRefused}, L{ServiceUnreachable} or L{TooLarge}.
        """


class StreamingTransport(Transport, Protocol):
    """A transport that can hand on an answer piece by piece."""

    def stream(
        self, message: OutgoingRequest, flight: Flight, begin: BeginBody, consumer: IConsumer | None = None
    ) -> Deferred[ServiceAnswer]:
        """Send C{message} as L{send} does, and hand each piece of the body on as it comes.

        :param consumer: has the body wait where it cannot take more; the body is its producer until it is over.
        :return: the answer without a body, once it ended or enough of it came, or a failure: of those of L{send}, or
            what C{begin} or the taking raises, if that is L{NotUnderstood}.
        """
