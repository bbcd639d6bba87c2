"""How the operator is told of what waits, without having asked."""

from __future__ import annotations

from zope.interface import Attribute, Interface

from aileron.values import ChannelState, Message


class IChannel(Interface):
    """One way to the operator."""

    name = Attribute("What the operator calls it.")
    kind = Attribute("C{desktop}, C{webhook} or C{apprise}.")

    async def deliver(message: Message) -> None:
        """Bring C{message} there, once.  Cancelling gives it up.

        :raises aileron.notices.Undelivered: it did not arrive, as far as can be told; it says whether another attempt
            is worth it.  Whatever else is raised counts as a failure too, of which only the class is told.
        """


class INotifier(Interface):
    """Tells the operator, by whatever channels they have configured, of what is put on record and concerns them.

    Nothing of it fails or delays what it tells of.
    """

    def channels() -> tuple[ChannelState, ...]:
        """How each channel does."""

    async def test() -> tuple[ChannelState, ...]:
        """Try every channel at once, with one attempt each, and say how they do then."""
