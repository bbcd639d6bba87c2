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
from twisted.internet.protocol import Protocol, connectionDone
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


class Inbox(_Stream):
    """What the SDK reads from: messages in order.  To wait and to be woken takes one turn of the loop."""

    def __init__(self) -> None:
        # Unbounded, since the client cannot be made to wait; it waits for answers by itself.
        self._queue: asyncio.Queue[SessionMessage | Exception] = asyncio.Queue()

    def put(self, message: SessionMessage | Exception) -> None:
        """One more."""
        self._queue.put_nowait(message)

    async def receive(self) -> SessionMessage | Exception:
        """The next one, as soon as there is one."""
        return await self._queue.get()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._queue.get()


class Outlet(_Stream):
    """What the SDK writes to: each message is a line, written at once while the client keeps up, else by the reactor.

    :param descriptor: does not block.
    :param later: takes what is left over to the reactor, in order.
    """

    def __init__(self, descriptor: int, later: Callable[[bytes], object]) -> None:
        self._descriptor = descriptor
        self._later = later
        self._keeps_up = True
        self._closed = False

    def close(self) -> None:
        """Write nothing any more: that a call is given up says nothing of what becomes of its run."""
        self._closed = True

    async def send(self, sent: SessionMessage) -> None:
        """Write one message.  A broken output is the reactor's to find."""
        if not self._closed:
            self._write(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    def _write(self, line: bytes) -> None:
        rest = line[self._written(line) :] if self._keeps_up else line
        if rest:
            self._keeps_up = False  # for good: nothing may overtake what the reactor holds
            self._later(rest)

    def _written(self, line: bytes) -> int:
        try:
            return os.write(self._descriptor, line)
        except OSError:
            return 0


@implementer(IHalfCloseableProtocol)
class Wire(Protocol):
    """JSON lines of the reactor's transport.

    :param ended: called once, when either direction has ended.
    :ivar inbox: has their messages for the SDK.
    """

    def __init__(self, ended: Callable[[], object]) -> None:
        self._ended: Callable[[], object] | None = ended
        self._rest = bytearray()
        self.inbox = Inbox()

    def dataReceived(self, data: bytes) -> None:
        """Hand over every whole line."""
        *lines, rest = data.split(b"\n")
        for line in lines:
            self._hand_over(bytes(self._rest + line))
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > MAX_LINE_BYTES:
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
        """Write one line, or what is left of one, if there is still somebody who reads."""
        if self.transport is not None and self._ended is not None:
            self.transport.write(line)

    def _hand_over(self, line: bytes) -> None:
        if line.strip() and self._ended is not None:
            self.inbox.put(_parsed(line))

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()


def _parsed(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(t.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as malformed:
        return malformed
