"""The interfaces by which the relay reports exchanges to meters, which measure and count them."""

from __future__ import annotations

from typing import Protocol

from zope.interface import Attribute, Interface

from aileron.model.usage import Usage

from .values import Ending, GatewayTotals, Provider


class RequestCharge(Protocol):
    """The cost of one admitted request, which is charged to the limits on spending when the exchange ends.

    It is called in the relay's path, so each call must be fast. For each exchange either L{settle} or L{release} is
    called, once.
    """

    def settle(self, usage: Usage | None, model: str, code: int, uploaded: int, received: int) -> None:
        """Record what the exchange, which has ended, used.

        :param usage: the usage that the response reported, or None if it reported none that can be read.
        :param model: the model that the response names, or empty.
        :param code: the status of the response, or 0 if there was none.
        :param uploaded: the bytes of the request's body, framing included.
        :param received: the bytes of the response's body, framing included.
        """

    def release(self) -> None:
        """Free the reserved amount, since the exchange ended before anything was sent to the provider."""


class IMeter(Interface):
    """A meter of one exchange. It is called in the relay's path, so each call must be fast and raise nothing."""

    completion: str = Attribute("The id under which the exchange is recorded as a completion; empty if it is not.")

    charge: RequestCharge | None = Attribute(
        "What is told what the exchange used. Set before the request is sent, or None."
    )

    def sent() -> None:
        """Record that the request's head was written to the upstream. Called again if the request is retried."""

    def arrived() -> None:
        """Record that the head of the final response was read completely and is about to be written to the client.

        Without this call, the time that the gateway needs for the response does not count as added by the gateway.
        """

    def answered(code: int, head: bytes) -> None:
        """Record that the head of the final response was written to the client.

        :param head: the head as received, with status line and final empty line.
        """

    def passed(data: bytes) -> None:
        """Record that a piece of the response's body, framing included, was written to the client."""

    def ended(ending: Ending, uploaded: int) -> None:
        """Record the end of the exchange. Called exactly once, last.

        :param uploaded: the bytes of the request's body received from the client, framing included.
        """


class IMeters(Interface):
    """A factory of meters, which measure exchanges."""

    def begin(provider: Provider, session_id: str | None, inference: bool, path: bytes) -> IMeter:
        """Create the meter of a request whose head was received completely.

        :param session_id: the id of the session of its gateway key, or None.
        :param inference: whether the request is on one of the named routes, so that its response may report tokens.
        :param path: the path of the request at the provider.
        """


class ITotals(Interface):
    """Counts of the gateway's requests and responses since the daemon's start."""

    def snapshot() -> GatewayTotals:
        """Return the counts of the gateway's requests and responses so far."""
