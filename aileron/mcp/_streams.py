"""Connects the MCP SDK's server of one client to the lines that the reactor reads and writes."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any, Self

import mcp.types as t
from mcp.shared.message import SessionMessage

from aileron.base.bridge import SideGone, ThreadBridge
from aileron.client import Daemon, SessionEnvironment

from ._opening import Opening
from .agent import AgentServer
from .offering.tools import ToolListing
from .request_ids import refuse_unusable_id


class _Stream:
    """The base of the two streams to and from the MCP SDK: the methods that the SDK calls besides reading and writing.

    Closing does nothing.
    """

    async def aclose(self) -> None:
        """Do nothing, since the stream stays open until the process closes it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()


class InputStream(_Stream):
    """The stream from which the MCP SDK reads the client's messages, in order and in the asyncio loop.

    L{put} adds a message, and the SDK calls L{receive}.
    """

    def __init__(self) -> None:
        # Unbounded: the client cannot be slowed down, but limits itself by waiting for responses.
        self._queue: asyncio.Queue[SessionMessage | Exception] = asyncio.Queue()

    def put(self, message: SessionMessage | Exception) -> None:
        """Add a message, or the error of a line that is not a message."""
        self._queue.put_nowait(message)

    async def receive(self) -> SessionMessage | Exception:
        """Return the next message, or the error of a line that is not a message. Wait if there is none."""
        return await self._queue.get()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._queue.get()


class OutputStream(_Stream):
    """The stream to which the SDK writes in the loop: each message is a line.

    :param write_line: passes a line to the reactor without waiting, so that a cancellation cannot prevent a response
        from being written.
    :param answered: the ID of the request that was answered before the SDK was loaded. The next response to it is
        dropped.
    """

    def __init__(self, write_line: Callable[[bytes], object], answered: str | int | None = None) -> None:
        self._write_line = write_line
        self._answered = answered

    async def send(self, sent: SessionMessage) -> None:
        """Write one message, or drop it if it is the response to the request that was answered before."""
        if self._answered is not None and self._is_answered(sent):
            self._answered = None
            return
        self._write_line(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    def refuse(self, line: bytes) -> None:
        """Write the error response to a message that was not passed to the SDK."""
        self._write_line(line)

    def _is_answered(self, sent: SessionMessage) -> bool:
        message = sent.message
        return isinstance(message, (t.JSONRPCResponse, t.JSONRPCError)) and message.id == self._answered


def parse_line(line: bytes) -> SessionMessage | Exception:
    """Parse one line. If it is not a message, return the exception."""
    try:
        return SessionMessage(t.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as malformed:
        return malformed


class StreamServer:
    """The MCP server of one agent, which exchanges messages with its client as lines.

    :param output: the stream that the SDK writes to.
    """

    def __init__(self, bridge: ThreadBridge, agent: AgentServer, output: OutputStream) -> None:
        self._bridge = bridge
        self._agent = agent
        self._input = InputStream()
        self._output = output

    def start(self, then: Callable[[], object]) -> None:
        """Start to serve the agent, and call C{then} when the connection with it has ended."""
        self._agent.start()
        self._agent.supervise(self._bridge.ask(self._serve), then)

    def receive(self, line: bytes) -> None:
        """Pass one line of the client to the SDK, or refuse it if its request ID is unusable."""
        refusal = refuse_unusable_id(line)
        message = parse_line(line)
        with contextlib.suppress(SideGone):
            if refusal is None:
                self._bridge.post(lambda: self._input.put(message))
            else:
                self._bridge.post(lambda: self._output.refuse(refusal))

    def announce_missed_change(self) -> None:
        """Notify the client that the tools changed since the list that was sent before this server existed."""
        self._agent.announce_missed_change()

    def stop(self) -> None:
        """Stop serving the agent. Idempotent."""
        self._agent.stop()

    async def _serve(self) -> None:
        server = self._agent.server
        await server.run(self._input, self._output, server.create_initialization_options())


def make_server(
    reactor: Any,
    bridge: ThreadBridge,
    session: SessionEnvironment,
    daemon: Daemon,
    listing: ToolListing,
    write_line: Callable[[bytes], object],
    opening: Opening,
) -> StreamServer:
    """Make the server of a client whose first messages were answered before the SDK was loaded.

    :param listing: the tools offered to the client. Its polling has started.
    :param write_line: writes one line. It is called in the reactor's thread.
    """
    agent = AgentServer(reactor, bridge, session, daemon, listing=listing)
    output = OutputStream(lambda line: reactor.callFromThread(write_line, line), opening.answered)
    return StreamServer(bridge, agent, output)
