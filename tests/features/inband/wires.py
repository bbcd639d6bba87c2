"""The three protocols as tests see them: how a request is made, and how a scripted provider and a client speak."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

from attrs import frozen

from aileron.features.inband._turns import CallResult, Memory, OfferedTool, Turn
from aileron.features.inband.protocols import ChatRequest, ClientRequest, Exchange, MessagesRequest, ResponsesRequest

from . import client, provider
from .provider import Part

SHIP = OfferedTool(
    "ship_update", "Tells customers what is new.", {"type": "object", "properties": {"text": {"type": "string"}}}
)
READ = OfferedTool("read_ticket", "Reads a ticket.", {"type": "object", "properties": {}})
OURS = frozenset({"ship_update", "read_ticket", "aileron_ship_update", "aileron_read_ticket"})


@frozen
class Wire:
    """One protocol.

    :ivar tool: writes a tool of the client's.
    :ivar history: the name of the member that holds it.
    """

    name: str
    protocol: type[ClientRequest]
    history: str
    tool: Callable[[str], Any]
    events: Callable[..., list[bytes]]
    document: Callable[..., bytes]
    read_stream: Callable[[bytes], client.Heard]
    read_document: Callable[[bytes], client.Heard]

    def request(self, *own: str, stream: bool = True, **more: Any) -> bytes:
        """Write a request of a client that has tools of its own, in a form that no serialiser has."""
        tools = {"tools": [self.tool(name) for name in own]} if own else {}
        first = [{"role": "user", "content": "Go ✓"}]
        return json.dumps({"model": "m", **tools, self.history: first, "stream": stream, **more}, indent=1).encode()

    def serve(self, exchange: Exchange, parts: Sequence[Part], number: int = 1, **more: Any) -> tuple[bytes, Turn]:
        """Give an exchange a whole response; return what the client is sent, and the turn."""
        if exchange.streams:
            data = b"".join(self.events(parts, number, **more))
        else:
            data = self.document(parts, number, **more)
        return exchange.feed(data), exchange.end()

    def read(self, exchange: Exchange, reply: bytes) -> client.Heard:
        """Read what a client was sent."""
        return self.read_stream(reply) if exchange.streams else self.read_document(reply)


def open_exchange(
    wire: Wire, body: bytes, offered: Sequence[OfferedTool] = (SHIP, READ), memories: Sequence[Memory] = ()
) -> Exchange:
    """Open an exchange as a server does."""
    return wire.protocol(body).open(offered, memories)


def results(turn: Turn, text: str = "ok") -> list[CallResult]:
    """Answer all calls of a turn, each by its own text."""
    return [CallResult(call.id, f"{text} {number}") for number, call in enumerate(turn.calls)]


CHAT = Wire(
    name="chat",
    protocol=ChatRequest,
    history="messages",
    tool=lambda name: {"type": "function", "function": {"name": name, "parameters": {"type": "object"}}},
    events=provider.chat_events,
    document=provider.chat_document,
    read_stream=client.read_chat,
    read_document=client.read_chat_document,
)
MESSAGES = Wire(
    name="messages",
    protocol=MessagesRequest,
    history="messages",
    tool=lambda name: {"name": name, "input_schema": {"type": "object"}},
    events=provider.message_events,
    document=provider.message_document,
    read_stream=client.read_message,
    read_document=client.read_message_document,
)
RESPONSES = Wire(
    name="responses",
    protocol=ResponsesRequest,
    history="input",
    tool=lambda name: {"type": "function", "name": name, "parameters": {"type": "object"}, "strict": False},
    events=provider.response_events,
    document=provider.response_document,
    read_stream=client.read_response,
    read_document=client.read_response_document,
)
WIRES = (CHAT, MESSAGES, RESPONSES)
