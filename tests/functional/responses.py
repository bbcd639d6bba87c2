"""The OpenAI responses format, as far as an agent that streams needs it."""

import json
from collections.abc import Iterator
from typing import Any

from tests.functional.answer import Answer
from tests.functional.chat import models, refusal

__all__ = ["models", "refusal", "stream", "whole"]

USAGE = {
    "input_tokens": 1,
    "input_tokens_details": {"cached_tokens": 0},
    "output_tokens": 1,
    "output_tokens_details": {"reasoning_tokens": 0},
    "total_tokens": 2,
}
Item = dict[str, Any]


def whole(answer: Answer) -> bytes:
    """The answer as one JSON document."""
    return json.dumps(_response(answer, "completed", _items(answer), USAGE)).encode()


def stream(answer: Answer) -> Iterator[bytes]:
    """The answer as server-sent events: text by words, arguments in halves, the whole at last."""
    for number, (kind, fields) in enumerate(_events(answer)):
        event = {"type": kind, "sequence_number": number, **fields}
        yield f"event: {kind}\ndata: {json.dumps(event)}\n\n".encode()


def _events(answer: Answer) -> Iterator[tuple[str, Item]]:
    begun = _response(answer, "in_progress", [], None)
    yield "response.created", {"response": begun}
    yield "response.in_progress", {"response": begun}
    for index, item in enumerate(_items(answer)):
        place: Item = {"output_index": index, "item_id": item["id"]}
        empty: Item = {"content": []} if item["type"] == "message" else {"arguments": ""}
        yield "response.output_item.added", {"output_index": index, "item": {**item, **empty, "status": "in_progress"}}
        yield from _text(answer.words, item, place) if item["type"] == "message" else _arguments(item, place)
        yield "response.output_item.done", {"output_index": index, "item": item}
    yield "response.completed", {"response": _response(answer, "completed", _items(answer), USAGE)}


def _text(words: list[str], item: Item, place: Item) -> Iterator[tuple[str, Item]]:
    (part,) = item["content"]
    text, place = part["text"], {**place, "content_index": 0}
    yield "response.content_part.added", {**place, "part": {**part, "text": ""}}
    for word in words:
        yield "response.output_text.delta", {**place, "delta": word, "logprobs": []}
    yield "response.output_text.done", {**place, "text": text, "logprobs": []}
    yield "response.content_part.done", {**place, "part": part}


def _arguments(item: Item, place: Item) -> Iterator[tuple[str, Item]]:
    text, middle = item["arguments"], len(item["arguments"]) // 2
    for half in (text[:middle], text[middle:]):
        yield "response.function_call_arguments.delta", {**place, "delta": half}
    done = {"name": item["name"], "arguments": item["arguments"]}
    yield "response.function_call_arguments.done", {**place, **done}


def _items(answer: Answer) -> list[Item]:
    part = {"type": "output_text", "text": answer.text, "annotations": [], "logprobs": []}
    message = {"type": "message", "id": "msg_1", "status": "completed", "role": "assistant", "content": [part]}
    calls = [
        {"type": "function_call", "id": f"fc_{call.id}", "status": "completed", "call_id": call.id}
        | _named(call.name)
        | {"arguments": call.arguments}
        for call in answer.calls
    ]
    return [message, *calls] if answer.text else calls


def _named(name: str) -> Item:
    """A tool by its name, and by its namespace if it is in one."""
    namespace, slash, own = name.rpartition("/")
    return {"namespace": namespace, "name": own} if slash else {"name": name}


def _response(answer: Answer, status: str, output: list[Item], usage: Item | None) -> Item:
    return {
        "id": "resp_1",
        "object": "response",
        "created_at": 1,
        "status": status,
        "model": answer.model,
        "output": output,
        "usage": usage,
        "error": None,
        "incomplete_details": None,
        "instructions": None,
        "metadata": {},
        "parallel_tool_calls": True,
        "temperature": 1.0,
        "tool_choice": "auto",
        "tools": [],
        "top_p": 1.0,
    }
