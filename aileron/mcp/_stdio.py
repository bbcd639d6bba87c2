"""The MCP transport on standard input and output: lines of the reactor's, messages of the SDK's."""

from __future__ import annotations

import asyncio
import fcntl
import os
from collections.abc import Callable
from typing import Self

import mcp.types as t
from mcp.shared.message import SessionMessage
from twisted.internet.interfaces import IHalfCloseableProtocol
from twisted.internet.protocol import connectionDone
from twisted.protocols.basic import LineOnlyReceiver
from twisted.python.failure import Failure
from zope.interface import implementer

MAX_LINE_BYTES = 8 * 1024 * 1024


def claim_standard_streams() -> tuple[int, int]:
    """Take the client's two streams away from descriptors 0 and 1, so that a stray print cannot break the protocol.

    :return: private descriptors to read from and to write to.
    :raises OSError: one of them is closed.
    """
    readable = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    writable = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return readable, writable


class _Stream:
    """What the SDK asks of a stream beside reading or writing.  When one ends is for the process to say."""

    async def aclose(self) -> None:
        """The SDK needs it no more."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class InputStream(_Stream):
    """The stream of messages, in order, that the SDK reads from in the loop.  A wait takes one turn of the loop."""

    def __init__(self) -> None:
        # Unbounded, since the client cannot be made to wait; it waits for answers by itself.
        self._queue: asyncio.Queue[SessionMessage | Exception] = asyncio.Queue()

    def put(self, message: SessionMessage | Exception) -> None:
        """Add one."""
        self._queue.put_nowait(message)

    async def receive(self) -> SessionMessage | Exception:
        """The next one, as soon as there is one."""
        return await self._queue.get()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._queue.get()


class OutputStream(_Stream):
    """The stream that the SDK writes to in the loop: each message is a line.

    :param write_line: takes a line to the reactor, and does not wait for it: no cancellation can fall between an answer
        and its line.
    """

    def __init__(self, write_line: Callable[[bytes], object]) -> None:
        self._write_line = write_line

    async def send(self, sent: SessionMessage) -> None:
        """Write one message."""
        self._write_line(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode())


@implementer(IHalfCloseableProtocol)
class JsonLines(LineOnlyReceiver):
    """Reads and writes JSON lines by the reactor's transport.

    :param received: called with each message, or with why a line is none.
    :param ended: called once, when either direction has ended.
    """

    delimiter = b"\n"
    MAX_LENGTH = MAX_LINE_BYTES

    def __init__(self, received: Callable[[SessionMessage | Exception], object], ended: Callable[[], object]) -> None:
        self._received = received
        self._ended: Callable[[], object] | None = ended

    def lineReceived(self, line: bytes) -> None:
        """Hand over one message."""
        if line.strip() and self._ended is not None:
            self._received(_parse_line(line))

    def lineLengthExceeded(self, line: bytes) -> None:
        """A line without an end: nothing that follows can be read."""
        self._end()

    def readConnectionLost(self) -> None:
        """Standard input ended: the client is done."""
        self._end()

    def writeConnectionLost(self) -> None:
        """Standard output broke: the client is gone."""
        self._end()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Both are gone."""
        self._end()

    def write_line(self, line: bytes) -> None:
        """Write one line, if there is still somebody who reads."""
        if self.transport is not None and self._ended is not None:
            self.transport.write(line + b"\n")

    def close(self) -> None:
        """Read and write nothing any more: that a call is given up says nothing of what becomes of its run."""
        self._ended = None

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()


def _parse_line(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(t.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as malformed:
        return malformed
