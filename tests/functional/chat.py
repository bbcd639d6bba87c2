"""The OpenAI chat-completions format, as far as an agent that streams needs it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from tests.functional.answer import Answer, ToolCall

USAGE = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}


def whole(answer: Answer) -> bytes:
    """The answer as one JSON document."""
    message: dict[str, Any] = {"role": "assistant", "content": answer.text or None}
    if answer.calls:
        message["tool_calls"] = [_call(index, call, call.arguments) for index, call in enumerate(answer.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _reason(answer)}
    return json.dumps(_frame("chat.completion", answer.model, [choice], USAGE)).encode()


def stream(answer: Answer) -> Iterator[bytes]:
    """The answer as server-sent events: text by words, arguments in halves, usage, the end mark."""
    for delta in _deltas(answer):
        yield _event(answer.model, [{"index": 0, "delta": delta, "finish_reason": None}])
    yield _event(answer.model, [{"index": 0, "delta": {}, "finish_reason": _reason(answer)}])
    yield _event(answer.model, [], USAGE)
    yield b"data: [DONE]\n\n"


def refusal(message: str, status: int) -> bytes:
    """An error in the provider's shape."""
    kind = "invalid_request_error" if status < 429 else "rate_limit_error" if status == 429 else "server_error"
    return json.dumps({"error": {"message": message, "type": kind, "param": None, "code": None}}).encode()


def models(names: Sequence[str]) -> bytes:
    """The list of models."""
    items = [{"id": name, "object": "model", "created": 1, "owned_by": "script"} for name in names]
    return json.dumps({"object": "list", "data": items}).encode()


def _reason(answer: Answer) -> str:
    return "tool_calls" if answer.calls else "stop"


def _deltas(answer: Answer) -> Iterator[dict[str, Any]]:
    yield {"role": "assistant", "content": ""}
    for word in answer.words:
        yield {"content": word}
    for index, call in enumerate(answer.calls):
        first, second = call.halves
        yield {"tool_calls": [_call(index, call, first)]}
        yield {"tool_calls": [{"index": index, "function": {"arguments": second}}]}


def _call(index: int, call: ToolCall, arguments: str) -> dict[str, Any]:
    function = {"name": call.name, "arguments": arguments}
    return {"index": index, "id": call.id, "type": "function", "function": function}


def _event(model: str, choices: list[Any], usage: Mapping[str, int] | None = None) -> bytes:
    return b"data: " + json.dumps(_frame("chat.completion.chunk", model, choices, usage)).encode() + b"\n\n"


def _frame(kind: str, model: str, choices: list[Any], usage: Mapping[str, int] | None) -> dict[str, Any]:
    return {"id": "chatcmpl-1", "object": kind, "created": 1, "model": model, "choices": choices, "usage": usage}
