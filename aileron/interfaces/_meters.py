"""What the gateway tells whoever counts, and what was counted."""

from __future__ import annotations

from zope.interface import Interface

from aileron.values import Ending, GatewayTotals, Provider, Traffic


class IMeter(Interface):
    """Counts one exchange.  Called in its path: each call costs microseconds and raises nothing."""

    def sent() -> None:
        """The request's head was just written to the upstream.  Again, if it was replayed."""

    def arrived() -> None:
        """The head of the final answer was just read whole and is about to be written to the client.

        Where this is not told, the way back does not count as time that was added.
        """

    def answered(code: int, head: bytes) -> None:
        """The head of the final answer came and was just written to the client.

        :param head: as it came, status line and closing empty line included.
        """

    def passed(data: bytes) -> None:
        """A piece of the answer's body, framing included, was just written to the client."""

    def ended(ending: Ending, uploaded: int) -> None:
        """The exchange is over; nothing follows.  Called exactly once.

        :param uploaded: bytes of the request's body, framing included, that were taken from the client.
        """


class IMeters(Interface):
    """Makes a meter for each exchange."""

    def begin(provider: Provider, session_id: str | None, inference: bool) -> IMeter:
        """The head of a request just came, whole.

        :param session_id: of the session whose gateway key it brought, or L{None}.
        :param inference: whether it went to one of the named routes, so that its answer may tell tokens.
        """


class ITotals(Interface):
    """What was counted since the daemon's start."""

    def snapshot() -> GatewayTotals:
        """The totals as they are now."""

    def of_session(session_id: str) -> Traffic | None:
        """What a session's calls come to; L{None}: it made none, or is long forgotten."""
