"""The audit log gets the shape of each completion, and never its contents."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.features.gateway._body_sample import PLAIN_BYTES, Allowance
from aileron.features.gateway._completion_shape import MOST_NAMES, MOST_TEXT_BYTES, MOST_UNPACKED_BYTES, ShapeReader
from aileron.features.gateway._completions import MOST_LONG, MOST_UNRECORDED, CompletionRecorder
from aileron.features.gateway._tally import Tally
from aileron.features.gateway.interfaces import IMeter
from aileron.features.gateway.values import ANTHROPIC, OPENAI, Ending, Provider
from aileron.model.audit import DAEMON, Event
from aileron.model.interfaces.store import IAudit
from tests.features.gateway import answers
from tests.features.gateway.case import Recorded
from tests.growth import seconds

CHAT, RESPONSES, MESSAGES = b"/v1/chat/completions", b"/v1/responses", b"/v1/messages"
SECRET = "the contents"


def events(*said: Mapping[str, Any]) -> bytes:
    """A stream of these events."""
    return b"".join(b"data: " + json.dumps(each).encode() + b"\n\n" for each in said)


def chat_calls() -> bytes:
    """A stream of chat completions that calls two tools."""

    def chunk(delta: Mapping[str, Any], reason: str | None = None, **more: Any) -> Mapping[str, Any]:
        return {"model": "m1", "choices": [{"index": 0, "delta": delta, "finish_reason": reason}], **more}

    return (
        events(
            chunk({"role": "assistant", "content": SECRET}),
            chunk({"tool_calls": [{"index": 0, "id": "c1", "function": {"name": "read", "arguments": ""}}]}),
            chunk({"tool_calls": [{"index": 0, "function": {"arguments": SECRET}}]}),
            chunk({"tool_calls": [{"index": 1, "id": "c2", "function": {"name": "write", "arguments": SECRET}}]}),
            chunk({}, "tool_calls"),
            {"model": "m1", "choices": [], "usage": answers.CHAT_USAGE},
        )
        + b"data: [DONE]\n\n"
    )


def response_calls() -> bytes:
    """A stream of a response that calls a tool."""
    call = {"type": "function_call", "id": "fc_1", "call_id": "c1", "name": "read", "arguments": SECRET}
    return events(
        {"type": "response.created", "response": {"model": "m2", "status": "in_progress", "usage": None}},
        {"type": "response.output_text.delta", "delta": SECRET},
        {"type": "response.output_item.added", "item": call},
        {"type": "response.output_item.done", "item": call},
        {"type": "response.output_item.done", "item": {"type": "web_search_call"}},
        {
            "type": "response.incomplete",
            "response": {
                "model": "m2",
                "status": "incomplete",
                "incomplete_details": {"reason": "max_output_tokens"},
                "output": [call],
                "usage": answers.RESPONSES_USAGE,
            },
        },
    )


def message_calls() -> bytes:
    """A stream of a message that calls a tool."""
    return events(
        {"type": "message_start", "message": {"model": "m3", "stop_reason": None, "usage": answers.MESSAGES_USAGE}},
        {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
        {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": SECRET}},
        {"type": "content_block_start", "index": 1, "content_block": {"type": "tool_use", "id": "c1", "name": "read"}},
        {"type": "message_delta", "delta": {"stop_reason": "tool_use"}, "usage": {"output_tokens": 89}},
        {"type": "message_stop"},
    )


class Slow:
    """A log that stores nothing before it is told to."""

    def __init__(self) -> None:
        self.stored: Deferred[None] = Deferred()
        self.asked = 0

    async def append(self, *_events: Event) -> None:
        """See L{IAudit}."""
        self.asked += 1
        await self.stored


class RecordCase(SynchronousTestCase):
    """A tally that records completions."""

    def setUp(self) -> None:
        self.audit = Recorded()
        self.fresh = 0
        self.tally = self.made(self.audit)

    def made(self, audit: object, *, records: bool = True) -> Tally:
        """A tally that records in that log."""
        clock = Clock()
        self.recorder = CompletionRecorder(cast(IAudit, audit), clock, self.fresh_id)
        return Tally(
            clock.seconds,
            lambda _call: None,
            lambda *_call: None,
            completions=self.recorder if records else None,
        )

    def fresh_id(self) -> str:
        """A fresh id."""
        self.fresh += 1
        return f"id{self.fresh}"

    def call(
        self,
        body: bytes,
        path: bytes = CHAT,
        *,
        head: bytes | None = None,
        piece: int = 1000,
        code: int = 200,
        provider: Provider = OPENAI,
        ending: Ending = Ending.COMPLETE,
        session: str | None = "s1",
    ) -> Mapping[str, Any]:
        """Make one exchange, and return what is recorded of it."""
        before = len(self.audit.events)
        meter = self.tally.begin(provider, session, True, path)
        meter.sent()
        meter.arrived()
        meter.answered(code, head or answers.head(streamed=True))
        for start in range(0, len(body), piece):
            meter.passed(body[start : start + piece])
        self.assertEqual(len(self.audit.events), before)
        meter.ended(ending, 77)
        [event] = self.audit.events[before:]
        self.assertEqual((event.type, event.payload["completion"]), ("completion.recorded", meter.completion))
        self.assertNotIn(SECRET, json.dumps(dict(event.payload)))
        return event.payload


class RecordTests(RecordCase):
    """What is recorded, and when."""

    def test_streams(self) -> None:
        """Of each protocol's stream the model, the tools, the stop reason and the tokens are read, however it comes."""
        for body, path, model, tools, reason, tokens in (
            (chat_calls(), CHAT, "m1", ["read", "write"], "tool_calls", (120, 34, 100)),
            (response_calls(), RESPONSES, "m2", ["read", "web_search_call"], "max_output_tokens", (50, 7, 40)),
            (message_calls(), MESSAGES + b"?beta=true", "m3", ["read"], "tool_use", (3210, 89, 3000)),
        ):
            for piece in (1, 7, len(body)):
                found = self.call(body, path, piece=piece)
                self.assertEqual((found["model"], found["tools"], found["stop_reason"]), (model, tools, reason))
                self.assertEqual(found["call_ids"], ["c1", "c2"] if path == CHAT else ["c1"])
                told = found["input_tokens"], found["output_tokens"], found["cached_tokens"]
                self.assertEqual((told, found["calls"], found["partial"]), (tokens, len(tools), False))
                self.assertEqual((found["sent_bytes"], found["received_bytes"]), (77, len(body)))

    def test_at_once(self) -> None:
        """An answer that comes at once is read too."""
        for body, path, id_, reason in (
            (answers.chat(SECRET), CHAT, "c1", "tool_calls"),
            (answers.messages(SECRET), MESSAGES, "t", None),
            (
                json.dumps(
                    {
                        "object": "response",
                        "model": "m",
                        "status": "completed",
                        "output": [{"type": "custom_tool_call", "call_id": "c", "name": "f", "input": SECRET}],
                    }
                ).encode(),
                RESPONSES,
                "c",
                "completed",
            ),
        ):
            found = self.call(body, path, head=answers.head())
            self.assertEqual((found["tools"], found["stop_reason"], found["calls"]), (["f"], reason, 1))
            self.assertEqual(found["call_ids"], [id_])

    def test_framing(self) -> None:
        """Chunks and compression make no difference; a coding that is not read is told."""
        body = chat_calls()
        chunked = self.call(answers.chunked(body, 13), head=answers.head("Transfer-Encoding: chunked", streamed=True))
        packed = self.call(gzip.compress(body), head=answers.head("Content-Encoding: gzip", streamed=True), piece=5)
        other = self.call(body, head=answers.head("Content-Encoding: br", streamed=True))
        self.assertEqual([each["tools"] for each in (chunked, packed, other)], [["read", "write"]] * 2 + [[]])
        self.assertEqual([each["partial"] for each in (chunked, packed, other)], [False, False, True])

    def test_broken(self) -> None:
        """A stream that broke is recorded once, without a stop reason; so are errors and calls without an answer."""
        found = self.call(
            message_calls().partition(b"message_delta")[0], MESSAGES, ending=Ending.CUT, provider=ANTHROPIC
        )
        self.assertEqual((found["model"], found["stop_reason"], found["ending"]), ("m3", None, "cut"))
        found = self.call(b'{"error": {}}', code=529, head=answers.head())
        self.assertEqual((found["status"], found["model"], found["tools"]), (529, None, []))
        meter = self.tally.begin(OPENAI, None, True, CHAT)
        meter.sent()
        meter.ended(Ending.UNREACHABLE, 5)
        event = self.audit.events[-1]
        self.assertEqual((event.payload["status"], event.actor, event.session_id), (None, DAEMON, None))

    def test_others(self) -> None:
        """What asks for no completion is not recorded, nor what was never sent; nothing is if the setting is off."""
        for inference, path in ((True, b"/v1/embeddings"), (True, b"/v1/messages/count_tokens"), (False, CHAT)):
            meter = self.tally.begin(OPENAI, None, inference, path)
            meter.sent()
            meter.ended(Ending.COMPLETE, 0)
            self.assertEqual(meter.completion, "")
        self.tally.begin(OPENAI, None, True, CHAT).ended(Ending.REFUSED, 0)
        meter = self.made(self.audit, records=False).begin(OPENAI, None, True, CHAT)
        meter.sent()
        meter.ended(Ending.COMPLETE, 0)
        self.assertEqual((meter.completion, self.audit.events), ("", []))

    def test_interface(self) -> None:
        """It is a meter like the others, and these count as before."""
        self.assertTrue(verifyObject(IMeter, self.tally.begin(OPENAI, None, True, CHAT)))
        self.call(chat_calls())
        traffic = self.tally.snapshot().providers["openai"]
        self.assertEqual((traffic.begun, traffic.under_way, traffic.received_bytes), (2, 1, len(chat_calls())))

    def test_waiting(self) -> None:
        """While the store is slow so many wait, and no more."""
        slow = Slow()
        tally = self.made(slow)
        for _ in range(MOST_UNRECORDED + 5):
            meter = tally.begin(OPENAI, None, True, CHAT)
            meter.sent()
            meter.ended(Ending.CUT, 0)
        self.assertEqual(slow.asked, MOST_UNRECORDED)
        slow.stored.callback(None)
        meter = tally.begin(OPENAI, None, True, CHAT)
        meter.sent()
        meter.ended(Ending.CUT, 0)
        self.assertEqual(slow.asked, MOST_UNRECORDED + 1)


class HostileTests(RecordCase):
    """Providers that send what nobody expects."""

    def test_names(self) -> None:
        """Names are cut, in length and in number, and hold no sign that cannot be shown."""
        call = {"type": "tool_use", "id": "i\u202e" + "d" * 5000, "name": "x\u202e\ud800" + "y" * 70_000}
        body = events(
            {"type": "message_start", "message": {"model": "m" * 5000}},
            *({"type": "content_block_start", "content_block": call} for _ in range(MOST_NAMES + 3)),
            {"type": "message_delta", "delta": {"stop_reason": "r" * 5000}},
        )
        found = self.call(body, MESSAGES, piece=65536)
        self.assertEqual((len(found["tools"]), found["calls"]), (MOST_NAMES, MOST_NAMES + 3))
        self.assertEqual({len(each) for each in (*found["tools"], found["model"], found["stop_reason"])}, {128})
        self.assertTrue(found["tools"][0].startswith("x\ufffd\ufffdy"))
        self.assertEqual(found["call_ids"], ["i\ufffd" + "d" * 126] * MOST_NAMES)

    def test_types(self) -> None:
        """Members of another type are passed over."""
        odds: tuple[Any, ...] = ({}, [], 5, None, True, "x", [[]], [{}], {"a": {}})
        for odd in odds:
            members = ("type", "model", "choices", "usage", "message", "response", "content", "delta", "stop_reason")
            self.call(json.dumps(dict.fromkeys(members, odd)).encode(), head=answers.head())
            choice = dict.fromkeys(("index", "message", "finish_reason"), odd)
            odd_calls = {"choices": [choice, {"message": {"tool_calls": odd}}, {"delta": {"tool_calls": [odd]}}]}
            self.call(json.dumps({**odd_calls, "usage": {"prompt_tokens": odd}}).encode(), head=answers.head())
            for type_ in ("message_start", "message_delta", "content_block_start", "response.output_item.done"):
                said = {"type": type_, "item": odd, "content_block": odd, "message": odd, "delta": odd, "usage": odd}
                self.call(events(said))
            named = {"name": "f", "id": odd, "call_id": odd}
            block = {"type": "content_block_start", "content_block": {**named, "type": "tool_use"}}
            self.assertEqual(self.call(events(block))["call_ids"], ["x"] if odd == "x" else [])
            self.call(events({"object": "response", "output": odd, "status": odd, "incomplete_details": odd}))
        self.call(b"data: " + b"[" * 100_000 + b"\n\n", piece=65536)
        self.call(b'data: {"model": ' + b"9" * 10_000 + b"}\n\n", piece=65536)

    def test_long(self) -> None:
        """An event that is too long is passed over, and told; what comes after it is read. Memory stays bounded."""
        long = b'data: {"usage": {"a": "' + b"x" * MOST_TEXT_BYTES + b'"}}\n\n'
        found = self.call(long + message_calls(), MESSAGES, piece=65536)
        self.assertEqual((found["partial"], found["model"], found["tools"]), (True, "m3", ["read"]))
        allowance = Allowance(1)
        readers = [ShapeReader(answers.head(streamed=True), allowance) for _ in range(2)]
        for reader in readers:
            reader.feed(b"data: " + b"x" * PLAIN_BYTES)
        self.assertEqual([reader.shape.partial for reader in readers], [False, True])
        for reader in readers:
            reader.finish()
        self.assertTrue(allowance.take())
        found = self.call(b" " * MOST_TEXT_BYTES + answers.chat(), head=answers.head(), piece=65536)
        self.assertEqual((found["partial"], found["calls"]), (True, 0))
        self.assertEqual([self.recorder.allowance.take() for _ in range(MOST_LONG + 1)].count(True), MOST_LONG)

    def test_bomb(self) -> None:
        """Of a compressed answer so much is unpacked, and no more."""
        packed = gzip.compress(b"\n" * (MOST_UNPACKED_BYTES + 1) + chat_calls())
        found = self.call(packed, head=answers.head("Content-Encoding: gzip", streamed=True), piece=65536)
        self.assertEqual((found["partial"], found["tools"]), (True, []))
        found = self.call(b"no gzip", head=answers.head("Content-Encoding: gzip"))
        self.assertTrue(found["partial"])

    def test_linear(self) -> None:
        """Twice the stream takes about twice the time, in small pieces of one long event as well."""

        def read(size: int) -> None:
            reader = ShapeReader(answers.head(streamed=True), Allowance(1))
            for _ in range(size):
                reader.feed(b"x" * 10)
            reader.feed(b"\n" * size)
            reader.finish()

        self.assertLess(seconds(lambda: read(20_000)), 6 * max(seconds(lambda: read(10_000)), 0.005))
