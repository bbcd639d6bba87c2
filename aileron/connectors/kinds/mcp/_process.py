"""The process of a local MCP server. Sends and receives messages as lines, with limits, and logs standard error."""

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
"""The limit on the bytes that a server may write between two messages sent to it."""

_POLITE_SECONDS = 2.0
_MOST_ERROR_BYTES, _MOST_SHOWN = 8 * 1024, 500
MOST_ERROR_LINES, _ERROR_SECONDS = 100, 60.0

_log = Logger()


@define
class Lines:
    """A splitter of bytes into lines that buffers at most one line.

    :ivar most_bytes: the size limit of a line; further bytes are dropped.
    :ivar has_cut: whether any bytes were dropped.
    """

    most_bytes: int
    has_cut: bool = False
    _kept: bytearray = field(factory=bytearray, init=False)

    def split(self, data: bytes) -> Iterator[bytes]:
        """Yield the lines that end in C{data}, without line ends.

        The beginning of a further line is kept for the next call.
        """
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
    """Writes a server's standard error to the daemon's log: escaped, redacted, and with a limit on lines per minute.

    :ivar name: the name of the connector.
    :ivar hide: removes the relay's URL from a line.
    """

    clock: IReactorTime
    name: str
    redactor: Redactor = field(repr=False)
    hide: Callable[[bytes], bytes] = field(default=bytes, repr=False)
    _lines: Lines = field(init=False, factory=lambda: Lines(_MOST_ERROR_BYTES))
    _begun: float = field(init=False, default=0.0)
    _count: int = field(init=False, default=0)

    def write(self, data: bytes) -> None:
        """Log the lines that end in C{data}.

        If there are too many in a minute, log one warning, and drop the others.
        """
        for line in self._lines.split(data):
            now = self.clock.seconds()
            if now - self._begun >= _ERROR_SECONDS:
                self._begun, self._count = now, 0
            self._count += 1
            if self._count <= MOST_ERROR_LINES:
                text = show_safely(self.redactor.text(self.hide(line).decode("utf-8", "replace")), _MOST_SHOWN)
                _log.info("{connector} wrote: {line}", connector=self.name, line=text)
            elif self._count == MOST_ERROR_LINES + 1:
                _log.warn("{connector} wrote too many lines; the rest of this minute is omitted", connector=self.name)


@define(eq=False)
class _Outgoing:
    """A message in the queue.

    :ivar number: the id of a request, or None if the message is not a request.
    :ivar handed: fires when the message is written to the pipe, or fails with L{ServiceUnreachable} if the queue is
        dropped before.
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
    """The process of a local MCP server, and the connection to it. Exceeding a limit ends the process.

    :param errors: logs standard error.
    :param ended: called once when the process and its process group have ended, with the reason as a clause.
    :param most_bytes: the size limit of a message from the server.
    :param hide: removes the relay's URL from a message.
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
        """Pass every message that the server sends from now on to C{receiver}."""
        self._receiver = receiver

    def send(self, message: Message, headers: Mapping[str, str], delivery: Delivery) -> Deferred[None]:
        """Send a message when the earlier messages are in the pipe.

        The Deferred fires when the message is written to the pipe, and fails if the process is ending. A message that
        is cancelled before is never sent. If too many bytes wait, end the process.
        """
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
        """Kill the server's process. No further message of it is passed on."""
        self._receiver = None
        self._break("")

    def end(self, why: str = "") -> None:
        """End the process: close its input, then send SIGTERM, then SIGKILL. Idempotent.

        :param why: the reason as a clause; if empty, the exit code or signal is the reason.
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
        """Pass on messages from standard output, and log standard error. If too much is written, end the process."""
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
        """Parse a message strictly and pass it to C{receiver}. If it is malformed, end the process.

        Strict parsing is slow, so only awaited messages get here.
        """
        try:
            message = decode(line)
        except ValueError:
            message = None
        if isinstance(message, Mapping):
            receiver.receive(message)
        else:
            self._break("sent a message that is not valid JSON")

    def _is_awaited(self, message: Mapping[str, Any]) -> bool:
        """Return True if a message is a request, or the first response to a request that was sent."""
        number = message.get("id")
        if "method" in message:
            return number is not None
        if type(number) is not int or number not in self._asked:
            return False
        self._asked.discard(number)
        return True

    def inConnectionLost(self) -> None:
        """End the process, because it has closed its input."""
        self.end()

    def outConnectionLost(self) -> None:
        """End the process, because it has closed its output."""
        self.end()

    def processEnded(self, reason: Failure) -> None:
        """Report the end of the process and the reason to the callback and the receiver."""
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
        """Write the next message, since the earlier ones are in the pipe."""
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
        """Fail all queued messages, since standard input is closed."""
        self._is_writing = False
        self._stop_writing()

    def _stop_writing(self) -> None:
        if self._is_writing:
            self._is_writing = False
            self.transport.unregisterProducer()
        queued, self._queue = self._queue, deque()
        for outgoing in queued:
            outgoing.handed.errback(ServiceUnreachable())
