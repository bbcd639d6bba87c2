"""The interfaces by which the relay is counted."""

from __future__ import annotations

from zope.interface import Attribute, Interface

from .values import Ending, GatewayTotals, Provider


class IMeter(Interface):
    """Counts one exchange.  Called in its path: each call costs microseconds and raises nothing."""

    completion: str = Attribute("The id under which the exchange is recorded as a completion; empty if it is not.")

    def sent() -> None:
        """Note that the request's head was just written to the upstream. Again, if it was replayed."""

    def arrived() -> None:
        """Note that the head of the final answer was just read whole and is about to be written to the client.

        Where this is not told, the way back does not count as time that was added.
        """

    def answered(code: int, head: bytes) -> None:
        """Note that the head of the final answer came and was just written to the client.

        :param head: as it came, status line and closing empty line included.
        """

    def passed(data: bytes) -> None:
        """Note that a piece of the answer's body, framing included, was just written to the client."""

    def ended(ending: Ending, uploaded: int) -> None:
        """Note that the exchange is over; nothing follows. Called exactly once.

        :param uploaded: bytes of the request's body, framing included, that were taken from the client.
        """


class IMeters(Interface):
    """Makes a meter for each exchange."""

    def begin(provider: Provider, session_id: str | None, inference: bool, path: bytes) -> IMeter:
        """Note that the head of a request just came, whole.

        :param session_id: of the session whose gateway key it brought, or L{None}.
        :param inference: whether it went to one of the named routes, so that its answer may tell tokens.
        :param path: of the request at the provider.
        """


class ITotals(Interface):
    """The counts since the daemon's start."""

    def snapshot() -> GatewayTotals:
        """Return the totals as they are now."""
