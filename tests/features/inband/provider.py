"""A scripted provider: what a model says, written as each protocol has it, in events or as one document."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

from attrs import frozen

USED = 7
"""Tokens that each response says it read, and that it wrote."""


@frozen
class Said:
    """A piece of text."""

    text: str


@frozen
class Thought:
    """A piece of thinking, with what only its provider can make."""

    text: str
    signature: str


@frozen
class Called:
    """A call of a tool."""

    id: str
    name: str
    arguments: str = "{}"


Part: TypeAlias = Said | Thought | Called


def event(data: Any, name: str = "") -> bytes:
    """Write an event."""
    return (f"event: {name}\n" if name else "").encode() + b"data: " + json.dumps(data).encode() + b"\n\n"


def pieces_of(text: str, size: int = 3) -> list[str]:
    """Cut a text as a model's tokens do."""
    return [text[at : at + size] for at in range(0, len(text), size)] or [""]


def is_call(part: Part) -> bool:
    """Tell calls from the rest."""
    return isinstance(part, Called)


def chat_call(call: Called) -> dict[str, Any]:
    """Write a call."""
    return {"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}


def chat_events(parts: Sequence[Part], number: int = 1, *, stop: str = "", usage: bool = True) -> list[bytes]:
    """Write a chat completion in chunks; the fragments of its calls take turns."""
    chunk = {"id": f"chatcmpl-{number}", "object": "chat.completion.chunk", "created": number, "model": "m"}

    def choice(delta: dict[str, Any], finish: str | None = None) -> bytes:
        told = {"usage": None} if usage else {}
        return event({**chunk, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}], **told})

    calls = [part for part in parts if isinstance(part, Called)]
    text = "".join(part.text for part in parts if isinstance(part, Said))
    events = [choice({"role": "assistant", "content": ""})]
    events += [choice({"content": piece}) for piece in pieces_of(text) if piece]
    events += [
        choice({"tool_calls": [{"index": n, **chat_call(Called(call.id, call.name, ""))}]})
        for n, call in enumerate(calls)
    ]
    events += [
        choice({"tool_calls": [{"index": n, "function": {"arguments": piece}}]})
        for n, piece in _taking_turns([pieces_of(call.arguments) for call in calls])
    ]
    events.append(choice({}, stop or ("tool_calls" if calls else "stop")))
    if usage:
        counted: dict[str, Any] = {"prompt_tokens": USED, "completion_tokens": USED, "total_tokens": 2 * USED}
        counted |= {"prompt_tokens_details": {"cached_tokens": 1}}
        events.append(event({**chunk, "choices": [], "usage": counted}))
    return [*events, b"data: [DONE]\n\n"]


def chat_document(parts: Sequence[Part], number: int = 1, *, stop: str = "") -> bytes:
    """Write a chat completion as one document."""
    calls = [chat_call(part) for part in parts if isinstance(part, Called)]
    text = "".join(part.text for part in parts if isinstance(part, Said))
    message = {"role": "assistant", "content": text or None, **({"tool_calls": calls} if calls else {})}
    choice = {"index": 0, "message": message, "finish_reason": stop or ("tool_calls" if calls else "stop")}
    counted = {"prompt_tokens": USED, "completion_tokens": USED, "total_tokens": 2 * USED}
    whole = {"id": f"chatcmpl-{number}", "object": "chat.completion", "created": number, "model": "m"}
    return json.dumps({**whole, "choices": [choice], "usage": counted}).encode()


def block(part: Part, *, empty: bool = False) -> dict[str, Any]:
    """Write a content block, or its beginning."""
    if isinstance(part, Said):
        return {"type": "text", "text": "" if empty else part.text}
    if isinstance(part, Thought):
        signed = {"thinking": "", "signature": ""} if empty else {"thinking": part.text, "signature": part.signature}
        return {"type": "thinking", **signed}
    return {"type": "tool_use", "id": part.id, "name": part.name, "input": {} if empty else json.loads(part.arguments)}


def message_events(parts: Sequence[Part], number: int = 1, *, stop: str = "") -> list[bytes]:
    """Write a message in events."""
    used = {"input_tokens": USED, "output_tokens": 1, "service_tier": "standard"}
    message: dict[str, Any] = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m"}
    message |= {"content": [], "stop_reason": None, "stop_sequence": None, "usage": used}
    events: list[Any] = [{"type": "message_start", "message": message}, {"type": "ping"}]
    for index, part in enumerate(parts):
        events.append({"type": "content_block_start", "index": index, "content_block": block(part, empty=True)})
        events += [{"type": "content_block_delta", "index": index, "delta": delta} for delta in _deltas(part)]
        events.append({"type": "content_block_stop", "index": index})
    reason = stop or ("tool_use" if any(map(is_call, parts)) else "end_turn")
    ending = {"stop_reason": reason, "stop_sequence": None}
    events.append({"type": "message_delta", "delta": ending, "usage": {"output_tokens": USED}})
    return [event(each, each["type"]) for each in [*events, {"type": "message_stop"}]]


def message_document(parts: Sequence[Part], number: int = 1, *, stop: str = "") -> bytes:
    """Write a message as one document."""
    reason = stop or ("tool_use" if any(map(is_call, parts)) else "end_turn")
    message: dict[str, Any] = {"id": f"msg_{number}", "type": "message", "role": "assistant", "model": "m"}
    message |= {"content": [*map(block, parts)], "stop_reason": reason, "stop_sequence": None}
    return json.dumps({**message, "usage": {"input_tokens": USED, "output_tokens": USED}}).encode()


def item(part: Part, number: int, *, empty: bool = False) -> dict[str, Any]:
    """Write an output item, or its beginning."""
    status = "in_progress" if empty else "completed"
    if isinstance(part, Said):
        content = [] if empty else [{"type": "output_text", "text": part.text, "annotations": []}]
        return {"id": f"m_{number}", "type": "message", "role": "assistant", "status": status, "content": content}
    if isinstance(part, Thought):
        summary = [] if empty else [{"type": "summary_text", "text": part.text}]
        secret = {} if empty else {"encrypted_content": part.signature}
        return {"id": f"rs_{number}", "type": "reasoning", "summary": summary, **secret}
    arguments = "" if empty else part.arguments
    called = {"call_id": part.id, "name": part.name, "arguments": arguments}
    return {"id": f"fc_{number}", "type": "function_call", "status": status, **called}


def response(parts: Sequence[Part], number: int, status: str, tools: Sequence[Any] = ()) -> dict[str, Any]:
    """Write a response."""
    output = [] if status == "in_progress" else [item(part, _nth(number, n)) for n, part in enumerate(parts)]
    whole = {"id": f"resp_{number}", "object": "response", "created_at": number, "status": status, "model": "m"}
    whole |= {"output": output, "tools": list(tools), "tool_choice": "auto", "parallel_tool_calls": True}
    counted = {"input_tokens": USED, "output_tokens": USED, "total_tokens": 2 * USED}
    details = {
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens_details": {"reasoning_tokens": 1},
    }
    return {**whole, "usage": None if status == "in_progress" else counted | details}


def response_events(
    parts: Sequence[Part], number: int = 1, *, status: str = "completed", tools: Sequence[Any] = ()
) -> list[bytes]:
    """Write a response in events."""
    begun = response(parts, number, "in_progress", tools)
    events: list[Any] = [{"type": f"response.{kind}", "response": begun} for kind in ("created", "in_progress")]
    for index, part in enumerate(parts):
        nth, place = _nth(number, index), {"output_index": index}
        events.append({"type": "response.output_item.added", **place, "item": item(part, nth, empty=True)})
        events += [{**each, **place, "item_id": item(part, nth)["id"]} for each in _item_events(part)]
        events.append({"type": "response.output_item.done", **place, "item": item(part, nth)})
    events.append({"type": f"response.{status}", "response": response(parts, number, status, tools)})
    return [event({**each, "sequence_number": n}, each["type"]) for n, each in enumerate(events)]


def response_document(
    parts: Sequence[Part], number: int = 1, *, status: str = "completed", tools: Sequence[Any] = ()
) -> bytes:
    """Write a response as one document."""
    return json.dumps(response(parts, number, status, tools)).encode()


def _nth(number: int, index: int) -> int:
    return 100 * number + index


def _taking_turns(texts: Sequence[Sequence[str]]) -> Iterator[tuple[int, str]]:
    for at in range(max(map(len, texts), default=0)):
        for number, pieces in enumerate(texts):
            if at < len(pieces):
                yield number, pieces[at]


def _deltas(part: Part) -> Iterator[dict[str, Any]]:
    if isinstance(part, Said):
        yield from ({"type": "text_delta", "text": piece} for piece in pieces_of(part.text))
    elif isinstance(part, Thought):
        yield from ({"type": "thinking_delta", "thinking": piece} for piece in pieces_of(part.text))
        yield {"type": "signature_delta", "signature": part.signature}
    else:
        yield from ({"type": "input_json_delta", "partial_json": piece} for piece in ["", *pieces_of(part.arguments)])


def _item_events(part: Part) -> Iterator[dict[str, Any]]:
    if isinstance(part, Said):
        whole, where = {"type": "output_text", "text": part.text, "annotations": []}, {"content_index": 0}
        yield {"type": "response.content_part.added", **where, "part": {**whole, "text": ""}}
        for piece in pieces_of(part.text):
            yield {"type": "response.output_text.delta", **where, "delta": piece, "logprobs": []}
        yield {"type": "response.output_text.done", **where, "text": part.text, "logprobs": []}
        yield {"type": "response.content_part.done", **where, "part": whole}
    elif isinstance(part, Called):
        for piece in pieces_of(part.arguments):
            yield {"type": "response.function_call_arguments.delta", "delta": piece}
        yield {"type": "response.function_call_arguments.done", "arguments": part.arguments}
