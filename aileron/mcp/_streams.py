"""The SDK's server of one client whose lines the reactor reads and writes."""

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
    """The part of a stream that the SDK asks for beside reading or writing. When one ends is for the process to say."""

    async def aclose(self) -> None:
        """Note that the SDK needs it no more."""

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
        """Return the next one, as soon as there is one."""
        return await self._queue.get()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return await self._queue.get()


class OutputStream(_Stream):
    """The stream that the SDK writes to in the loop: each message is a line.

    :param write_line: takes a line to the reactor, and does not wait for it: no cancellation can fall between an answer
        and its line.
    :param answered: the request that was answered before the SDK was there; its next answer is dropped.
    """

    def __init__(self, write_line: Callable[[bytes], object], answered: str | int | None = None) -> None:
        self._write_line = write_line
        self._answered = answered

    async def send(self, sent: SessionMessage) -> None:
        """Write one message."""
        if self._answered is not None and self._is_answered(sent):
            self._answered = None
            return
        self._write_line(sent.message.model_dump_json(by_alias=True, exclude_unset=True).encode())

    def refuse(self, line: bytes) -> None:
        """Write the refusal of a message that the SDK was not given."""
        self._write_line(line)

    def _is_answered(self, sent: SessionMessage) -> bool:
        message = sent.message
        return isinstance(message, (t.JSONRPCResponse, t.JSONRPCError)) and message.id == self._answered


def parse_line(line: bytes) -> SessionMessage | Exception:
    """Parse one line, or return why it is no message."""
    try:
        return SessionMessage(t.jsonrpc_message_adapter.validate_json(line, by_name=False))
    except ValueError as malformed:
        return malformed


class StreamServer:
    """One agent's server over lines.

    :param output: what the SDK writes to.
    """

    def __init__(self, bridge: ThreadBridge, agent: AgentServer, output: OutputStream) -> None:
        self._bridge = bridge
        self._agent = agent
        self._input = InputStream()
        self._output = output

    def start(self, then: Callable[[], object]) -> None:
        """Begin to serve, and call C{then} when it is over."""
        self._agent.start()
        self._agent.supervise(self._bridge.ask(self._serve), then)

    def receive(self, line: bytes) -> None:
        """Hand one line of the client's to the SDK, or refuse it if it is a request that nobody could answer."""
        refusal = refuse_unusable_id(line)
        message = parse_line(line)
        with contextlib.suppress(SideGone):
            if refusal is None:
                self._bridge.post(lambda: self._input.put(message))
            else:
                self._bridge.post(lambda: self._output.refuse(refusal))

    def announce_missed_change(self) -> None:
        """Tell the client that the tools are others than in the list that it was given before this was there."""
        self._agent.announce_missed_change()

    def stop(self) -> None:
        """End it.  Twice is safe."""
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
    """Make the server of a client whose first messages were answered before the SDK was there.

    :param listing: what the client is offered, followed already.
    :param write_line: writes one line; it is called in the reactor.
    """
    agent = AgentServer(reactor, bridge, session, daemon, listing=listing)
    output = OutputStream(lambda line: reactor.callFromThread(write_line, line), opening.answered)
    return StreamServer(bridge, agent, output)
