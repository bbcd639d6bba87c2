"""Builds the channels that the operator has configured: the desktop, C{apprise}, and webhooks (L{_webhook})."""

from __future__ import annotations

import logging
import os
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure

from aileron.model.errors import BindingFailed, VaultLocked
from aileron.model.interfaces.vault import IBindings

from ._delivery import NoticeChannel, Undelivered
from ._webhook import post_message
from .values import ChannelSettings, Message, NoticeSettings

InThread = Callable[..., "Deferred[Any]"]
"""Calls a function in another thread."""

_CHATTY = ("apprise", "requests", "urllib3")
"""The loggers whose lines may hold an address, which is a secret."""

PLACES = (Path("/usr/bin/notify-send"), Path("/usr/local/bin/notify-send"), Path("/bin/notify-send"))
_PASSED_ON = ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "LANG", "HOME")
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "\\\\"})
"""Escapes for the body: notification servers read it as markup, and C{notify-send} expands backslashes before."""


def build_channels(
    settings: NoticeSettings, *, bindings: IBindings, reactor: Any, in_thread: InThread, environ: Mapping[str, str]
) -> tuple[NoticeChannel, ...]:
    """Build the configured channels.

    :param reactor: the clock; also connects and spawns processes.
    :param in_thread: calls a function in another thread.
    :param environ: the daemon's environment. The desktop's program inherits the variables that address the desktop.
    """

    def build() -> Iterator[NoticeChannel]:
        if settings.desktop:
            command = find_command(settings.desktop_command)
            yield NoticeChannel("desktop", "desktop", partial(notify_desktop, command, environ, reactor))
        for each in settings.channels:
            secret = partial(open_secret, bindings, each)
            if each.url is None:
                apprise = AppriseThread(secret, in_thread).deliver
                yield NoticeChannel(each.name, "apprise", apprise, settings.people.get(each.name))
            else:
                signing = secret if each.signed else None
                post = partial(post_message, each.url, reactor, signing)
                yield NoticeChannel(each.name, "webhook", post, settings.people.get(each.name))

    return tuple(build())


async def open_secret(bindings: IBindings, channel: ChannelSettings) -> bytes:
    """Decrypt the address or key of a channel for one message.

    It is not cached, so it is unavailable once the vault locks.

    :raises Undelivered: if there is no secret or more than one, the vault is locked, or the secret is for another
        address.
    """
    scope, name = channel.scope(), channel.name
    bound = bindings.for_connector(channel.fqn)
    if scope is None or not bound:
        raise Undelivered(f"Its secret is missing: aileron notification add {name}", again=False)
    if len(bound) > 1:
        raise Undelivered("It has more than one secret. Revoke the others: aileron credential revoke", again=False)
    try:
        return await bindings.credential(bound[0], scope).reveal()
    except VaultLocked:
        raise Undelivered("The vault is locked, so its secret cannot be read.", again=False) from None
    except BindingFailed:
        why = f"Its secret is for another address. Add it again: aileron notification remove {name}, then add"
        raise Undelivered(why, again=False) from None


@define(eq=False)
class AppriseThread:
    """The sender to one apprise address from the vault. It sends in a thread, because the library blocks.

    :param open_address: decrypts the address.
    :param notify: L{notify}, or another function that blocks and returns the problem or None.
    """

    _open_address: Callable[[], Awaitable[bytes]]
    _in_thread: InThread
    _notify: Callable[[str, Message], str | None] = field(factory=lambda: notify)
    _busy: bool = field(default=False, init=False)

    async def deliver(self, message: Message) -> None:
        """Deliver a message.

        :raises Undelivered: if the message was not sent, or the thread is still sending the previous one.
        """
        address = (await self._open_address()).decode("ascii")
        if self._busy:
            raise Undelivered("The previous message is still being sent.")
        telling = self._in_thread(self._notify, address, message)
        self._busy = True
        answered: Deferred[str | None] = Deferred()
        telling.addBoth(self._over, answered)
        problem = await answered
        if problem is not None:
            raise Undelivered(problem)

    def _over(self, result: str | Failure | None, answered: Deferred[str | None]) -> None:
        self._busy = False
        if answered.called:  # cancelled meanwhile
            return
        if isinstance(result, Failure):
            answered.callback(f"It failed ({result.type.__name__ if result.type else 'unknown'}).")
        else:
            answered.callback(result)


def notify(address: str, message: Message) -> str | None:
    """Send a message to one address, and return the problem, or None if it was sent. Blocks the thread meanwhile."""
    try:
        from apprise import Apprise as Library
        from apprise import AppriseAsset, NotifyFormat, NotifyType
    except ImportError:
        return "apprise is not installed: add the extra `notify` as the installation guide says"
    for name in _CHATTY:
        logger = logging.getLogger(name)
        logger.disabled, logger.propagate = True, False
    library = Library(asset=AppriseAsset(app_id="Aileron", async_mode=False, secure_logging=True))
    if not library.add(address):
        return "Its secret is not an address that apprise supports."
    body = "\n".join((*message.lines, *message.contents, message.url))
    kind = NotifyType.WARNING if message.urgent else NotifyType.INFO
    arrived = library.notify(
        body, title=message.subject or message.title, notify_type=kind, body_format=NotifyFormat.TEXT
    )
    return None if arrived else "The service did not accept the message."


def find_command(configured: Path | None, places: tuple[Path, ...] = PLACES) -> Path | None:
    """Return the configured program, or the first of C{places} that is executable, or None if there is none."""
    candidates = places if configured is None else (configured,)
    return next((each for each in candidates if each.is_file() and os.access(each, os.X_OK)), None)


async def notify_desktop(command: Path | None, environ: Mapping[str, str], reactor: Any, message: Message) -> None:
    """Run C{notify-send} for a message, without contents: every user of this machine sees its arguments.

    :param command: absolute, or None if it was not found.
    :param environ: the daemon's environment. The program gets only the variables that address the desktop.
    :param reactor: spawns processes.
    :raises Undelivered: if there is no desktop, or the program failed.
    """
    if command is None:
        raise Undelivered("notify-send is not installed (package libnotify-bin).", again=False)
    running = _ProgramRun()
    argv = [str(command), *_arguments(message)]
    passed_on = {name: environ[name] for name in _PASSED_ON if name in environ}
    try:
        reactor.spawnProcess(running, argv[0], [os.fsencode(each) for each in argv], passed_on)
    except OSError as error:
        raise Undelivered(f"notify-send could not be started ({error.strerror}).") from error
    await running.ended


def _arguments(message: Message) -> tuple[str, ...]:
    body = "\n".join((*message.lines, message.desk_url or message.url)).translate(_MARKUP)
    urgency = "critical" if message.urgent else "normal"
    return "--app-name=Aileron", f"--urgency={urgency}", "--category=im.received", "--", message.title, body


class _ProgramRun(ProcessProtocol):
    """One run of the program. Its output is discarded.

    :ivar ended: fires when the program exits with code 0, or fails. Cancelling kills the program.
    """

    def __init__(self) -> None:
        self.ended: Deferred[None] = Deferred(self._kill)

    def _kill(self, _ended: Deferred[None]) -> None:
        transport: IProcessTransport | None = self.transport
        if transport is not None:
            try:
                transport.signalProcess("KILL")
            except ProcessExitedAlready:
                return

    def processEnded(self, reason: Failure) -> None:
        """Fire L{ended}: with success if the program's exit code is 0, otherwise with a failure."""
        if self.ended.called:
            return
        code = getattr(reason.value, "exitCode", None)
        if code == 0:
            self.ended.callback(None)
        else:
            self.ended.errback(Undelivered("notify-send failed, for example because there is no desktop session."))
