"""The process of a local MCP server: messages as lines, in and out, within bounds, and its errors in the log."""

from __future__ import annotations

import json
import signal
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import define, field
from twisted.internet.defer import Deferred, fail
from twisted.internet.interfaces import IDelayedCall, IPullProducer, IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.base.json import JSON, compact
from aileron.connectors._answer import ServiceUnreachable, TooLarge
from aileron.connectors._decode import decode, show_safely
from aileron.connectors.programs import Launch, Program
from aileron.redaction import Redactor

from ._wire import Delivery, Message, Receiver

_STDIN, _STDOUT = 0, 1
MOST_STRAY_LINES = 100
MOST_QUEUED_BYTES = 16 * 1024 * 1024
MOST_UNASKED_BYTES = 64 * 1024 * 1024
"""How much it may write between two messages that it is sent."""

_POLITE_SECONDS = 2.0
_MOST_ERROR_BYTES, _MOST_SHOWN = 8 * 1024, 500
MOST_ERROR_LINES, _ERROR_SECONDS = 100, 60.0

_log = Logger()


@define
class Lines:
    """Makes lines of bytes that come in pieces, and holds no more than one line.

    :ivar most_bytes: of a line; what is beyond is dropped.
    :ivar has_cut: whether anything was dropped.
    """

    most_bytes: int
    has_cut: bool = False
    _kept: bytearray = field(factory=bytearray, init=False)

    def split(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that end in C{data}."""
        *ends, rest = data.split(b"\n")
        for end in ends:
            self._keep(end)
            yield bytes(self._kept)
            self._kept.clear()
        self._keep(rest)

    def _keep(self, piece: bytes) -> None:
        room = self.most_bytes - len(self._kept)
        self._kept += piece[:room]
        self.has_cut = self.has_cut or len(piece) > room


@define
class ErrorLog:
    """Writes a server's standard error to the daemon's log: visible, without its credential, and not too much.

    :ivar name: of the connector.
    :ivar hide: makes of a line what others may see of it.
    """

    clock: IReactorTime
    name: str
    redactor: Redactor = field(repr=False)
    hide: Callable[[bytes], bytes] = field(default=bytes, repr=False)
    _lines: Lines = field(init=False, factory=lambda: Lines(_MOST_ERROR_BYTES))
    _begun: float = field(init=False, default=0.0)
    _count: int = field(init=False, default=0)

    def write(self, data: bytes) -> None:
        """Take what it writes."""
        for line in self._lines.split(data):
            now = self.clock.seconds()
            if now - self._begun >= _ERROR_SECONDS:
                self._begun, self._count = now, 0
            self._count += 1
            if self._count <= MOST_ERROR_LINES:
                text = show_safely(self.redactor.text(self.hide(line).decode("utf-8", "replace")), _MOST_SHOWN)
                _log.info("{connector} wrote: {line}", connector=self.name, line=text)
            elif self._count == MOST_ERROR_LINES + 1:
                _log.warn("{connector} writes too much; the rest of a minute is left out", connector=self.name)


@define(eq=False)
class _Outgoing:
    """A message that waits for those before it.

    :ivar number: of the answer to it; L{None}: it asks for none.
    :ivar handed: fires when it begins to leave.
    """

    line: bytes = field(repr=False)
    number: JSON
    delivery: Delivery
    handed: Deferred[None] = field(factory=Deferred)

    @property
    def is_given_up(self) -> bool:
        return self.handed.called or self.delivery.withdrawn or self.delivery.overdue


@implementer(IPullProducer)
class ServerProcess(Program):
    """One life of a local server, and the wire to it.  What breaks a bound ends it.

    :param ended: called once, when it and its process group are gone, with why, in a clause about it.
    :param most_bytes: of one message that it writes.
    :param hide: makes of a message what others may see of it.
    """

    def __init__(
        self,
        clock: IReactorTime,
        launch: Launch,
        *,
        errors: ErrorLog,
        ended: Callable[[str], object],
        most_bytes: int,
        hide: Callable[[bytes], bytes] = bytes,
    ) -> None:
        super().__init__(clock, launch)
        self._errors, self._ended, self._hide = errors, ended, hide
        self._lines, self._stray_lines, self._unasked_bytes = Lines(most_bytes), 0, 0
        self._queue: deque[_Outgoing] = deque()
        self._queued_bytes = 0
        self._asked: set[JSON] = set()
        self._receiver: Receiver | None = None
        self._is_writing, self._is_ending, self._why = False, False, ""
        self._next_step: IDelayedCall | None = None

    # the wire ---------------------------------------------------------------------------------

    def listen(self, receiver: Receiver) -> None:
        """Hand every message to C{receiver} from now on."""
        self._receiver = receiver

    def send(self, message: Message, headers: Mapping[str, str], delivery: Delivery) -> Deferred[None]:
        """Send a message as soon as those before it are in the pipe; given up before that, it never leaves."""
        if self._is_ending:
            return fail(ServiceUnreachable())
        number = message.get("id") if "method" in message else None
        outgoing = _Outgoing(compact(message).encode("ascii") + b"\n", number, delivery)
        self._queue.append(outgoing)
        self._queued_bytes += len(outgoing.line)
        if self._queued_bytes > MOST_QUEUED_BYTES:
            self._break(f"left {MOST_QUEUED_BYTES} bytes unread")
        elif not self._is_writing:
            self._is_writing = True
            self.transport.registerProducer(self, False)
        return outgoing.handed

    def close(self) -> None:
        """End it at once."""
        self._receiver = None
        self._break("")

    def end(self, why: str = "") -> None:
        """End it: first by the end of its input, then by SIGTERM, then by SIGKILL.  Twice is safe.

        :param why: in a clause about it; empty: the way in which it ends says enough.
        """
        if self._is_ending:
            return
        self._is_ending, self._why = True, why
        self._stop_writing()
        self.transport.closeChildFD(_STDIN)
        self._next_step = self._clock.callLater(_POLITE_SECONDS, self._terminate)

    def _terminate(self) -> None:
        self.signal_group(signal.SIGTERM)
        self._next_step = self._clock.callLater(_POLITE_SECONDS, self.kill)

    def _break(self, why: str) -> None:
        self.end(why)
        self.kill()

    # from the server --------------------------------------------------------------------------

    def wrote(self, descriptor: int, data: bytes) -> None:
        """Hand over its messages, and write its errors to the log."""
        if descriptor != _STDOUT:
            self._errors.write(data)
            return
        self._unasked_bytes += len(data)
        if self._unasked_bytes > MOST_UNASKED_BYTES:
            self._break(f"wrote {MOST_UNASKED_BYTES} bytes that nobody asked for")
        for line in self._lines.split(data):
            if not self._lines.has_cut and not self._is_ending and line.strip():
                self._take(self._hide(line))
        if self._lines.has_cut:
            self._break(f"wrote a message of more than {self._lines.most_bytes} bytes")

    def _take(self, line: bytes) -> None:
        try:
            message = json.loads(line.decode("utf-8"))
        except (ValueError, RecursionError):
            message = None
        if not isinstance(message, Mapping) or message.get("jsonrpc") != "2.0":
            self._stray_lines += 1
            if self._stray_lines > MOST_STRAY_LINES:
                self._break(f"wrote more than {MOST_STRAY_LINES} lines that are no messages")
        elif self._receiver is not None and self._is_awaited(message):
            self._hear(line, self._receiver)

    def _hear(self, line: bytes, receiver: Receiver) -> None:
        """Read a message strictly, which takes longer than what nobody waits for is worth, and hand it over."""
        try:
            message = decode(line)
        except ValueError:
            message = None
        if isinstance(message, Mapping):
            receiver.receive(message)
        else:
            self._break("sent a message that is not valid JSON")

    def _is_awaited(self, message: Mapping[str, Any]) -> bool:
        """Tell whether a message answers one that was sent, for the first time, or asks for an answer."""
        number = message.get("id")
        if "method" in message:
            return number is not None
        if type(number) is not int or number not in self._asked:
            return False
        self._asked.discard(number)
        return True

    def inConnectionLost(self) -> None:
        """End it: it reads nothing any more."""
        self.end()

    def outConnectionLost(self) -> None:
        """End it: it says nothing any more."""
        self.end()

    def processEnded(self, reason: Failure) -> None:
        """Tell that it is gone, and why."""
        super().processEnded(reason)
        if self._next_step is not None and self._next_step.active():
            self._next_step.cancel()
        self._is_ending = True
        self._stop_writing()
        code: Any = getattr(reason.value, "exitCode", None)
        how = "was ended by a signal" if code is None else f"ended with exit code {code}"
        receiver, self._receiver = self._receiver, None
        self._ended(f"was not started: {show_safely(self.problem)}" if self.problem else self._why or how)
        if receiver is not None:
            receiver.lost(TooLarge(None) if self._lines.has_cut else ServiceUnreachable())

    # to the server ----------------------------------------------------------------------------

    def resumeProducing(self) -> None:
        """Begin the next message: all before it are in the pipe."""
        while self._queue:
            outgoing = self._queue.popleft()
            self._queued_bytes -= len(outgoing.line)
            if not outgoing.is_given_up:
                outgoing.delivery.sent, self._unasked_bytes = True, 0
                self._asked.add(outgoing.number)
                self.transport.writeToChild(_STDIN, outgoing.line)
                outgoing.handed.callback(None)
                return
        self._stop_writing()

    def stopProducing(self) -> None:
        """Send nothing more: its standard input is gone."""
        self._is_writing = False
        self._stop_writing()

    def _stop_writing(self) -> None:
        if self._is_writing:
            self._is_writing = False
            self.transport.unregisterProducer()
        queued, self._queue = self._queue, deque()
        for outgoing in queued:
            outgoing.handed.errback(ServiceUnreachable())
