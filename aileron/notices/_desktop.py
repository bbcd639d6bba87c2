"""Tells the operator on the desktop, by the program that comes with most of them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from attrs import frozen
from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessExitedAlready
from twisted.internet.interfaces import IProcessTransport
from twisted.internet.protocol import ProcessProtocol
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.interfaces import IChannel
from aileron.values import Message

from ._delivery import Undelivered

PLACES = (Path("/usr/bin/notify-send"), Path("/usr/local/bin/notify-send"), Path("/bin/notify-send"))
_PASSED_ON = ("DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "LANG", "HOME")
_MARKUP = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;", "\\": "\\\\"})
"""Servers take the body, and it alone, as markup; before that the program reads backslashes in it as C does."""


def find_command(configured: Path | None, places: tuple[Path, ...] = PLACES) -> Path | None:
    """Find the program: what is configured, or the first of C{places} that can be run; L{None}: there is none."""
    candidates = places if configured is None else (configured,)
    return next((each for each in candidates if each.is_file() and os.access(each, os.X_OK)), None)


@implementer(IChannel)
@frozen
class DesktopChannel:
    """Runs C{notify-send} for each message, without contents: every user of this machine sees its arguments.

    :param command: absolute; L{None}: it was not found.
    :param environ: of which the few variables are passed on that lead to the desktop.
    :param reactor: spawns processes.
    """

    _command: Path | None
    _environ: Mapping[str, str]
    _reactor: Any
    name: str = "desktop"
    kind: str = "desktop"

    async def deliver(self, message: Message) -> None:
        """See L{IChannel}."""
        if self._command is None:
            raise Undelivered("There is no notify-send on this machine (package libnotify-bin).", again=False)
        running = _Run()
        argv = [str(self._command), *_arguments(message)]
        environ = {name: self._environ[name] for name in _PASSED_ON if name in self._environ}
        try:
            self._reactor.spawnProcess(running, argv[0], [os.fsencode(each) for each in argv], environ)
        except OSError as error:
            raise Undelivered(f"notify-send could not be started ({error.strerror}).") from error
        await running.ended


def _arguments(message: Message) -> tuple[str, ...]:
    body = "\n".join((*message.lines, message.url)).translate(_MARKUP)
    urgency = "critical" if message.urgent else "normal"
    return "--app-name=Aileron", f"--urgency={urgency}", "--category=im.received", "--", message.title, body


class _Run(ProcessProtocol):
    """One run of the program; what it writes is dropped.

    :ivar ended: fires when it has ended well; cancelling ends it.
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
        """It is over."""
        if self.ended.called:
            return
        code = getattr(reason.value, "exitCode", None)
        if code == 0:
            self.ended.callback(None)
        else:
            self.ended.errback(Undelivered("notify-send found no desktop to tell, or another fault."))
