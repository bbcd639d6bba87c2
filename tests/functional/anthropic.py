"""The Anthropic messages format, as far as an agent that streams needs it."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from tests.functional.answer import Answer

_KINDS = {
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
USAGE = {"input_tokens": 1, "output_tokens": 1}


def whole(answer: Answer) -> bytes:
    """The answer as one JSON document."""
    content: list[dict[str, Any]] = [{"type": "text", "text": answer.text}] if answer.text else []
    content += [
        {"type": "tool_use", "id": call.id, "name": call.name, "input": json.loads(call.arguments)}
        for call in answer.calls
    ]
    return json.dumps(_message(answer, content, _reason(answer))).encode()


def stream(answer: Answer) -> Iterator[bytes]:
    """The answer as server-sent events: a block of text by words, a block a call with its arguments in halves."""
    yield _event("message_start", message=_message(answer, [], None))
    for index, (block, deltas) in enumerate(_blocks(answer)):
        yield _event("content_block_start", index=index, content_block=block)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    yield _event("message_delta", delta={"stop_reason": _reason(answer), "stop_sequence": None}, usage=USAGE)
    yield _event("message_stop")


def refusal(message: str, status: int) -> bytes:
    """An error in the provider's shape."""
    kind = _KINDS.get(status, "invalid_request_error")
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


def models(names: Sequence[str]) -> bytes:
    """The list of models."""
    made = "2026-01-01T00:00:00Z"
    items = [{"type": "model", "id": name, "display_name": name, "created_at": made} for name in names]
    ends = {"first_id": names[0] if names else None, "last_id": names[-1] if names else None}
    return json.dumps({"data": items, "has_more": False, **ends}).encode()


def tokens(count: int) -> bytes:
    """How many tokens a conversation has."""
    return json.dumps({"input_tokens": count}).encode()


def _reason(answer: Answer) -> str:
    return "tool_use" if answer.calls else "end_turn"


def _blocks(answer: Answer) -> Iterator[tuple[dict[str, Any], list[dict[str, Any]]]]:
    if answer.text:
        yield {"type": "text", "text": ""}, [{"type": "text_delta", "text": word} for word in answer.words]
    for call in answer.calls:
        block = {"type": "tool_use", "id": call.id, "name": call.name, "input": {}}
        yield block, [{"type": "input_json_delta", "partial_json": half} for half in call.halves]


def _message(answer: Answer, content: list[dict[str, Any]], reason: str | None) -> dict[str, Any]:
    said = {"role": "assistant", "model": answer.model, "content": content, "stop_reason": reason}
    return {"id": "msg_1", "type": "message", **said, "stop_sequence": None, "usage": USAGE}


def _event(kind: str, **fields: Any) -> bytes:
    return f"event: {kind}\ndata: {json.dumps({'type': kind, **fields})}\n\n".encode()
