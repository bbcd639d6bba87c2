"""The MCP transport on standard input and output: the reactor reads and writes, the loop gets messages."""

from __future__ import annotations

import contextlib
import fcntl
import math
import os
from collections.abc import Callable

import anyio
import mcp.types as t
from mcp.shared.message import SessionMessage
from twisted.internet.interfaces import IHalfCloseableProtocol
from twisted.internet.protocol import Protocol, connectionDone
from twisted.python.failure import Failure
from zope.interface import implementer

from ._bridge import IBridge, SideGone

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


@implementer(IHalfCloseableProtocol)
class Wire(Protocol):
    """JSON lines between the reactor's transport and the SDK's streams.

    :param ended: called once, when either direction has ended.
    :ivar incoming: for the SDK to read from.
    :ivar outgoing: for the SDK to write to.
    """

    def __init__(self, bridge: IBridge, ended: Callable[[], object]) -> None:
        self._bridge = bridge
        self._ended: Callable[[], object] | None = ended
        self._rest = bytearray()
        # Unbounded, since the reactor's side cannot wait; a client waits for answers by itself.
        self._to_server, self.incoming = anyio.create_memory_object_stream[SessionMessage | Exception](math.inf)
        self.outgoing, self._from_server = anyio.create_memory_object_stream[SessionMessage](0)

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

    async def pump(self, write: Callable[[bytes], object]) -> None:
        """In the loop: write out what the SDK sends, until it stops.

        :param write: takes a line to the reactor.
        """
        async with self._from_server:
            async for sent in self._from_server:
                write(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode() + b"\n")

    def write_line(self, line: bytes) -> None:
        """In the reactor: write one line, if there is still somebody who reads."""
        if self.transport is not None and self._ended is not None:
            self.transport.write(line)

    def _hand_over(self, line: bytes) -> None:
        if not line.strip() or self._ended is None:
            return
        message = _parsed(line)
        with contextlib.suppress(SideGone):
            self._bridge.post(lambda: self._feed(message))

    def _feed(self, message: SessionMessage | Exception) -> None:
        with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
            self._to_server.send_nowait(message)

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()


class Outlet:
    """Where the loop writes its lines: at once while the client keeps up, which spares a hop; else by the reactor.

    :param descriptor: does not block.
    :param later: takes what is left over to the reactor, in order.
    """

    def __init__(self, descriptor: int, later: Callable[[bytes], object]) -> None:
        self._descriptor = descriptor
        self._later = later
        self._keeps_up = True

    def write(self, line: bytes) -> None:
        """Write one line.  A broken output is the reactor's to find."""
        rest = line[self._written(line) :] if self._keeps_up else line
        if rest:
            self._keeps_up = False  # for good: nothing may overtake what the reactor holds
            self._later(rest)

    def _written(self, line: bytes) -> int:
        try:
            return os.write(self._descriptor, line)
        except OSError:
            return 0


def _parsed(line: bytes) -> SessionMessage | Exception:
    try:
        return SessionMessage(t.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as malformed:
        return malformed
