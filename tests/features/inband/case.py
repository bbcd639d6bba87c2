"""In-band mode before a gateway behind a real site, with tools that answer as a test says; no socket."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any

from attrs import define, evolve, field, frozen
from twisted.internet.defer import CancelledError, Deferred, maybeDeferred
from zope.interface import implementer

from aileron.base.http1 import FirstHandler
from aileron.base.json import JSON
from aileron.features.inband._handler import InBandHandler, InBandParts
from aileron.model.audit import Event
from aileron.model.interfaces.services import IAgentTools
from aileron.model.queries import AuditQuery
from aileron.model.sessions import derive_gateway_key
from aileron.testing import memory_store
from tests.features.gateway.case import GatewayCase, Line, Peer, request

from .provider import Part, chat_document, chat_events

KEY = "ail_i_" + "i" * 43
CHAT = "/inband/openai/v1/chat/completions"
MOST_TURNS = 3
WAITING = object()
"""The answer of a tool that the test gives later."""


@frozen
class Tool:
    """A tool."""

    name: str
    description: str = "Does it."
    input_schema: Mapping[str, JSON] = field(factory=lambda: {"type": "object", "properties": {}})


@frozen
class Answered:
    """The answer of a tool."""

    text: str
    is_error: bool = False
    pending: object | None = None
    run_id: str = ""


@implementer(IAgentTools)
@define
class ScriptedTools:
    """Two tools.

    :ivar answers: of the next calls; after them each is answered with its own name.
    :ivar called: name, arguments, idempotency key and patience of each call.
    :ivar waiting: calls that the test answers.
    :ivar cancelled: how many of them were given up.
    :ivar listed: how often the tools were asked for.
    """

    answers: list[Answered | object] = field(factory=list)
    called: list[tuple[str, Mapping[str, JSON], str, float]] = field(factory=list)
    waiting: list[Deferred[Answered]] = field(factory=list)
    cancelled: int = 0
    listed: int = 0

    async def offered(self, key: str) -> Sequence[Tool]:
        self.listed += 1
        assert key == KEY, "it is asked with the session's own key"
        return Tool("look_up"), Tool("ship")

    async def call(
        self, key: str, name: str, arguments: Mapping[str, JSON], idempotency_key: str, wait_seconds: float
    ) -> Answered:
        assert key == KEY, "it is called with the session's own key"
        self.called.append((name, arguments, idempotency_key, wait_seconds))
        answer = self.answers.pop(0) if self.answers else Answered(f"{name} answers")
        if isinstance(answer, Answered):
            return answer
        self.waiting.append(Deferred())
        try:
            return await self.waiting[-1]
        except CancelledError:
            self.cancelled += 1
            raise


class InBandCase(GatewayCase):
    """A session with an in-band key, a program that has it, and a provider behind the gateway."""

    def setUp(self) -> None:
        super().setUp()
        self.tools = ScriptedTools()
        self.store = memory_store(self, self.clock)
        numbers = count(1)
        parts = InBandParts(
            self.store.sessions,
            self.tools,
            self.store.in_band,
            self.store.audit,
            self.clock,
            lambda: f"01JA{next(numbers):022d}",
            MOST_TURNS,
            maybeDeferred,
        )
        self.handler = InBandHandler(self.gateway, parts)
        self.site.taker = FirstHandler((self.handler, self.gateway))
        gateway_key = derive_gateway_key(KEY)
        self.own = evolve(self.session(key=gateway_key), in_band=True)
        digests = [hashlib.sha256(each.encode()).digest() for each in ("token", gateway_key, KEY)]
        self.do(self.store.sessions.open(self.own, digests[0], digests[1], (), digests[2]))

    def build(self, **changes: Any) -> None:
        """Serve with other parts."""
        self.handler = InBandHandler(self.gateway, evolve(self.handler.parts, **changes))
        self.site.taker = FirstHandler((self.handler, self.gateway))

    def do(self, work: Any) -> Any:
        """The result of what is done at once."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def events(self, kind: str) -> list[Event]:
        """What is on record, oldest first."""
        page = self.do(self.store.audit.list(AuditQuery()))
        return [each.event for each in reversed(page.items) if each.event.type == kind]

    def post(self, body: Mapping[str, Any] | bytes, *lines: str, path: str = CHAT, key: str | None = KEY) -> bytes:
        """A request in in-band mode."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        before = "" if key is None else f"/s/{key}"
        return request(before + path, "Content-Type: application/json", "Authorization: Bearer sk", *lines, body=data)

    def begin(self, *lines: str, stream: bool = True, tools: Sequence[Any] = ()) -> tuple[Line, Peer]:
        """Send a request, and have the provider's end of the connection."""
        return self.ask(self.post(asked(stream=stream, tools=tools), *lines))

    def say(self, there: Peer, *parts: Part, number: int = 1, stream: bool = True) -> None:
        """Have the provider say it, whole, in chunks of its own."""
        events = chat_events(parts, number) if stream else [chat_document(parts, number)]
        there.end.write(head(stream=stream) + b"".join(map(chunk, events)) + b"0\r\n\r\n")

    def next_request(self, there: Peer) -> Any:
        """The body of the request that the provider has got by now."""
        self.net.run()
        self.clock.advance(0)
        self.net.run()
        heard = there.take()
        return json.loads(heard.partition(b"\r\n\r\n")[2]) if heard else None


def asked(*, stream: bool = True, tools: Sequence[Any] = ()) -> dict[str, Any]:
    """A chat request."""
    more = {"tools": [{"type": "function", "function": {"name": each}} for each in tools]} if tools else {}
    return {"model": "m", "stream": stream, "messages": [{"role": "user", "content": "hello"}], **more}


def head(*, stream: bool = True, lines: bytes = b"") -> bytes:
    """The head of a provider's answer in chunks."""
    kind = b"text/event-stream" if stream else b"application/json"
    about = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nX-Request-Id: r1\r\n%b" % (kind, lines)
    return about + b"Transfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes) -> bytes:
    """A chunk."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def content(heard: bytes) -> bytes:
    """The content of an answer in chunks, or with a length."""
    about, _, body = heard.partition(b"\r\n\r\n")
    if b"chunked" not in about:
        return body
    pieces = []
    while body:
        size, _, body = body.partition(b"\r\n")
        pieces.append(body[: int(size, 16)])
        body = body[int(size, 16) + 2 :]
    return b"".join(pieces)


def events_of(heard: bytes) -> list[Any]:
    """The events of a streamed answer, but for comments and the end mark."""
    lines = [line for line in content(heard).split(b"\n") if line.startswith(b"data: {")]
    return [json.loads(line.removeprefix(b"data: ")) for line in lines]


def text_of(heard: bytes) -> str:
    """All text of a streamed chat answer."""
    choices = [choice for each in events_of(heard) for choice in each.get("choices", ())]
    return "".join(choice["delta"].get("content") or "" for choice in choices)
