"""Tells the operator by any service that C{apprise} knows: ntfy, mail, chats, telephones."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.interfaces import IChannel
from aileron.values import Message

from ._delivery import Undelivered

InThread = Callable[..., "Deferred[Any]"]
"""Calls a function in another thread."""

_CHATTY = ("apprise", "requests", "urllib3")
"""What these log may hold an address, which is a secret."""


@implementer(IChannel)
@define(eq=False)
class AppriseChannel:
    """Tells one address, which lies in the vault, in a thread: that library waits for the network.

    :param open_address: opens it.
    :param notify: L{notify}, or another that waits; it says what went wrong, if anything did.
    """

    name: str
    _open_address: Callable[[], Awaitable[bytes]]
    _in_thread: InThread
    _notify: Callable[[str, Message], str | None] = field(factory=lambda: notify)
    kind: str = "apprise"
    _busy: bool = field(default=False, init=False)

    async def deliver(self, message: Message) -> None:
        """See L{IChannel}.  A thread cannot be called back: while one is under way there is no second."""
        address = (await self._open_address()).decode("ascii")
        if self._busy:
            raise Undelivered("It has not yet come back from an earlier message.")
        telling = self._in_thread(self._notify, address, message)
        self._busy = True
        answered: Deferred[str | None] = Deferred()
        telling.addBoth(self._over, answered)
        problem = await answered
        if problem is not None:
            raise Undelivered(problem)

    def _over(self, result: str | Failure | None, answered: Deferred[str | None]) -> None:
        self._busy = False
        if answered.called:  # nobody waits any more
            return
        if isinstance(result, Failure):
            answered.callback(f"It failed ({result.type.__name__ if result.type else 'unknown'}).")
        else:
            answered.callback(result)


def notify(address: str, message: Message) -> str | None:
    """Notify one address of C{message}, however long that takes; return what went wrong, or L{None}."""
    try:
        from apprise import Apprise as Library
        from apprise import AppriseAsset, NotifyFormat, NotifyType
    except ImportError:
        return "apprise is not installed: pip install 'aileron[notify]'"
    for name in _CHATTY:
        _silence(logging.getLogger(name))
    library = Library(asset=AppriseAsset(app_id="Aileron", async_mode=False, secure_logging=True))
    if not library.add(address):
        return "What is bound to it is no address that apprise knows."
    body = "\n".join((*message.lines, *message.contents, message.url))
    kind = NotifyType.WARNING if message.urgent else NotifyType.INFO
    arrived = library.notify(body, title=message.title, notify_type=kind, body_format=NotifyFormat.TEXT)
    return None if arrived else "The service did not take it."


def _silence(logger: logging.Logger) -> None:
    logger.disabled = True
    logger.propagate = False
