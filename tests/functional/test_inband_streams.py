"""The official clients' own parsers accept every reply of in-band mode, at whatever bytes it is cut."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from importlib import import_module
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from tests.features.inband.client import Heard
from tests.features.inband.provider import Called, Part, Said, Thought
from tests.features.inband.test_replies import converse, meaning, scripts, shown
from tests.features.inband.wires import CHAT, MESSAGES, RESPONSES, Wire, open_exchange

# By name, since the type checker's environment has neither package.
_anthropic: Any = import_module("anthropic")
_openai: Any = import_module("openai")
_anthropic_streaming: Any = import_module("anthropic.lib.streaming._messages")
_chat_streaming: Any = import_module("openai.lib.streaming.chat")
_response_streaming: Any = import_module("openai.lib.streaming.responses._responses")


def modelled(kind: Any, event: Any) -> Any:
    """Make the SDK's model of an event."""
    return _openai._models.construct_type_unchecked(type_=kind, value=event.json())


def cut(data: bytes, step: int) -> Iterator[bytes]:
    """Cut a stream into pieces of that many bytes."""
    return (data[at : at + step] for at in range(0, len(data), step))


def chat_message(completion: Any) -> Heard:
    """Tell what a completion says, as the SDK has it."""
    (choice,) = completion.choices
    said = [Said(choice.message.content)] if choice.message.content else []
    calls = [Called(c.id, c.function.name, c.function.arguments) for c in choice.message.tool_calls or ()]
    return Heard(completion.id, [*said, *calls], choice.finish_reason)


def chat_stream(data: bytes, step: int) -> Heard:
    """Read chunks with the SDK's accumulator."""
    state = _chat_streaming.ChatCompletionStreamState()
    for event in _openai._streaming.SSEDecoder().iter_bytes(cut(data, step)):
        if event.data != "[DONE]":
            state.handle_chunk(
                _openai._models.construct_type_unchecked(
                    type_=_openai.types.chat.ChatCompletionChunk, value=event.json()
                )
            )
    return chat_message(state.get_final_completion())


def message(whole: Any) -> Heard:
    """Tell what a message says, as the SDK has it."""
    parts: list[Part] = []
    for block in whole.content:
        if block.type == "text":
            parts.append(Said(block.text))
        elif block.type == "thinking":
            parts.append(Thought(block.thinking, block.signature))
        else:
            parts.append(Called(block.id, block.name, json.dumps(block.input)))
    return Heard(whole.id, parts, whole.stop_reason)


def message_stream(data: bytes, step: int) -> Heard:
    """Read events with the SDK's accumulator."""
    snapshot: Any = None
    buffers: dict[int, bytes] = {}
    for event in _anthropic._streaming.SSEDecoder().iter_bytes(cut(data, step)):
        if event.event != "ping":
            value = event.json()
            snapshot = _anthropic_streaming.accumulate_event(event=value, current_snapshot=snapshot, json_bufs=buffers)
    return message(snapshot)


def response(whole: Any) -> Heard:
    """Tell what a response says, as the SDK has it."""
    parts: list[Part] = []
    for item in whole.output:
        if item.type == "message":
            parts.append(Said("".join(part.text for part in item.content)))
        elif item.type == "reasoning":
            parts.append(Thought("".join(part.text for part in item.summary), item.encrypted_content))
        else:
            parts.append(Called(item.call_id, item.name, item.arguments))
    return Heard(whole.id, parts, whole.status)


def response_stream(data: bytes, step: int) -> Heard:
    """Read events with the SDK's accumulator."""
    state = _response_streaming.ResponseStreamState(input_tools=[], text_format=_openai.omit)
    for event in _openai._streaming.SSEDecoder().iter_bytes(cut(data, step)):
        state.handle_event(
            _openai._models.construct_type_unchecked(
                type_=_openai.types.responses.ResponseStreamEvent, value=event.json()
            )
        )
    return response(state._completed_response)


class SdkTests(SynchronousTestCase):
    """Each protocol, streamed and at once."""

    @settings(max_examples=25, deadline=None)
    @given(rounds=scripts(), step=st.integers(1, 90))
    def test_streams(self, rounds: list[list[Part]], step: int) -> None:
        """The streams' accumulators of both packages read exactly what was said to the client."""
        for wire, read in ((CHAT, chat_stream), (MESSAGES, message_stream), (RESPONSES, response_stream)):
            heard = read(self._reply(wire, rounds, stream=True), step)
            self._check(wire, rounds, heard)

    @settings(max_examples=10, deadline=None)
    @given(rounds=scripts())
    def test_documents(self, rounds: list[list[Part]]) -> None:
        """So do their models of whole responses, strictly."""
        for wire, model, read in (
            (CHAT, _openai.types.chat.ChatCompletion, chat_message),
            (MESSAGES, _anthropic.types.Message, message),
            (RESPONSES, _openai.types.responses.Response, response),
        ):
            whole = json.loads(self._reply(wire, rounds, stream=False))
            self._check(wire, rounds, read(model.model_validate(whole)))

    def _reply(self, wire: Wire, rounds: Sequence[Sequence[Part]], *, stream: bool) -> bytes:
        return converse(wire, open_exchange(wire, wire.request("bash", "aileron_own", stream=stream)), rounds)

    def _check(self, wire: Wire, rounds: Sequence[Sequence[Part]], heard: Heard) -> None:
        self.assertEqual(meaning(heard.parts), meaning(shown(wire, rounds)))
        self.assertTrue(heard.id.endswith("1"))
        self.assertTrue(heard.stop)
