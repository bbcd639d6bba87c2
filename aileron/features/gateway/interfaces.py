"""The interfaces of the relay's meters."""

from __future__ import annotations

from zope.interface import Attribute, Interface

from .values import Ending, GatewayTotals, Provider


class IMeter(Interface):
    """A meter of one exchange. It is called in the relay's path, so each call must be fast and raise nothing."""

    completion: str = Attribute("The id under which the exchange is recorded as a completion; empty if it is not.")

    def sent() -> None:
        """Record that the request's head was written to the upstream. Called again if the request is retried."""

    def arrived() -> None:
        """Record that the head of the final response was read completely and is about to be written to the client.

        If this is not called, the way back is not counted as added time.
        """

    def answered(code: int, head: bytes) -> None:
        """Record that the head of the final response was written to the client.

        :param head: as received, status line and closing empty line included.
        """

    def passed(data: bytes) -> None:
        """Record that a piece of the response's body, framing included, was written to the client."""

    def ended(ending: Ending, uploaded: int) -> None:
        """Record the end of the exchange. Called exactly once, last.

        :param uploaded: bytes of the request's body, framing included, received from the client.
        """


class IMeters(Interface):
    """The maker of a meter for each exchange."""

    def begin(provider: Provider, session_id: str | None, inference: bool, path: bytes) -> IMeter:
        """Create the meter of a request whose head was received completely.

        :param session_id: of the session of its gateway key, or None.
        :param inference: whether the request is on one of the named routes, so that its response may report tokens.
        :param path: of the request at the provider.
        """


class ITotals(Interface):
    """The counts since the daemon's start."""

    def snapshot() -> GatewayTotals:
        """Return the totals as they are now."""
