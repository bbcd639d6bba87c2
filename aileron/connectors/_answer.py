"""The result of sending a request: a response, or an error."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from attrs import define, field, frozen
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IConsumer

from aileron.base.file_bodies import FileBody

DEFAULT_MAX_RESPONSE_BYTES = 1024 * 1024
MOST_RESPONSE_BYTES = 16 * 1024 * 1024
_REQUEST_TIMEOUT, _TOO_MANY = 408, 429


def may_pass(status: int) -> bool:
    """Return whether a retry of a request with this status may succeed: true for 408, 429 and 5xx."""
    return status >= 500 or status in {_REQUEST_TIMEOUT, _TOO_MANY}


@frozen
class OutgoingRequest:
    """A request as sent, with its credential among the headers. It must never be displayed.

    :ivar headers: name and value, in order.
    :ivar private_network: whether loopback and private addresses are permitted.
    :ivar max_response_bytes: the limit of the response.
    :ivar private_key: the key for SSH, or empty for HTTP.
    :ivar file: the body in a file, in place of C{body}.
    """

    method: str
    url: str
    headers: tuple[tuple[str, str], ...] = field(repr=False)
    body: bytes | None = field(repr=False)
    private_network: bool
    max_response_bytes: int
    private_key: str = field(default="", repr=False)
    file: FileBody | None = field(default=None, repr=False)


@frozen
class ServiceAnswer:
    """A complete response.

    :ivar headers: the headers by lower-case name. Of a repeated header, only the first value is kept, except that all
        challenges are joined by commas.
    :ivar head: the reason phrase, and every header as received: its name, then its value.
    """

    status: int
    headers: Mapping[str, str] = field(repr=False)
    body: bytes = field(repr=False)
    head: tuple[str, ...] = field(default=(), repr=False)


@define
class Flight:
    """The progress of sending one request.

    :ivar sent: whether the first byte of the request was written, after the TLS handshake.
    :ivar overdue: whether a timeout cancelled the request before its first byte was written.
    """

    sent: bool = False
    overdue: bool = False


class AddressRefused(Exception):
    """The error for a host without a permitted address. Nothing was sent."""


class ServiceUnreachable(Exception):
    """The error for a connection that failed or broke. L{Flight} records whether the request was sent."""


@define(eq=False)
class TooLarge(Exception):
    """The error for a response that is larger than allowed.

    :ivar status: the response's status, or None if its head did not arrive.
    """

    status: int | None


TakeBody = Callable[[bytes], bool]
"""Processes a piece of a body, and returns whether it has enough. Then the connection is closed."""

BeginBody = Callable[[ServiceAnswer], TakeBody]
"""Returns the function that processes the body of a response."""


class Transport(Protocol):
    """The sender of requests, each on a new connection."""

    def send(self, message: OutgoingRequest, flight: Flight) -> Deferred[ServiceAnswer]:
        """Send C{message} once, and update C{flight}.

        Redirects are not followed. Cancelling closes the connection and errbacks with C{CancelledError}.

        :return: the response with any status, or a failure: L{AddressRefused}, L{ServiceUnreachable} or L{TooLarge}.
        """


class StreamingTransport(Transport, Protocol):
    """A transport that can deliver a response in pieces."""

    def stream(
        self, message: OutgoingRequest, flight: Flight, begin: BeginBody, consumer: IConsumer | None = None
    ) -> Deferred[ServiceAnswer]:
        """Send C{message} once, without following redirects, and deliver each piece of the body as it arrives.

        :param begin: called with the head of the response. Returns the function that processes the pieces.
        :param consumer: pauses the body if it cannot accept more. The body is registered as its producer.
        :return: a Deferred that fires with the response, without its body, when the body has ended or was accepted as
            enough. It fails with L{AddressRefused}, L{ServiceUnreachable} or L{TooLarge}, or with L{NotUnderstood} if
            C{begin} or the function raised it.
        """
