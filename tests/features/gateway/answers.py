"""Answers as the providers give them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

TRAP = '{"usage": {"prompt_tokens": 666, "input_tokens": 666, "output_tokens": 666}}'
"""What a tool may be called with, and no account of tokens."""

CHAT_USAGE = {
    "prompt_tokens": 120,
    "completion_tokens": 34,
    "total_tokens": 154,
    "prompt_tokens_details": {"cached_tokens": 100},
}
RESPONSES_USAGE = {
    "input_tokens": 50,
    "input_tokens_details": {"cached_tokens": 40},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 3},
    "total_tokens": 57,
}
MESSAGES_USAGE = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 200,
    "cache_read_input_tokens": 3000,
    "output_tokens": 1,
    "service_tier": "standard",
}


def chat(content: str = "Hello.") -> bytes:
    """OpenAI's C{/v1/chat/completions}, at once."""
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": TRAP}}
    message = {"role": "assistant", "content": content, "tool_calls": [call]}
    return _json(
        {
            "id": "x",
            "object": "chat.completion",
            "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
            "usage": CHAT_USAGE,
            "service_tier": "default",
        }
    )


def messages(content: str = "Hello.") -> bytes:
    """Anthropic's C{/v1/messages}, at once, with a tool's arguments as an object."""
    blocks = [
        {"type": "text", "text": content},
        {"type": "tool_use", "id": "t", "name": "f", "input": json.loads(TRAP)},
    ]
    return _json({"id": "m", "type": "message", "content": blocks, "usage": {**MESSAGES_USAGE, "output_tokens": 55}})


def responses(content: str = "Hello.") -> bytes:
    """OpenAI's C{/v1/responses}, at once."""
    return _json(response(content))


def response(content: str) -> dict[str, Any]:
    """A response, as it also closes its stream."""
    call = {"type": "function_call", "name": "f", "arguments": TRAP}
    output = [{"type": "message", "content": [{"type": "output_text", "text": content}]}, call]
    return {"id": "r", "object": "response", "output": output, "usage": RESPONSES_USAGE, "user": None, "metadata": {}}


def chat_stream(content: Sequence[str] = ("Hel", "lo."), *, usage: bool = True) -> bytes:
    """The chunks of a chat, the last but one telling its tokens."""
    chunks: list[Mapping[str, Any]] = [
        {"id": "x", "object": "chat.completion.chunk", "choices": [{"delta": {"content": each}}], "usage": None}
        for each in (*content, TRAP)
    ]
    if usage:
        chunks.append({"id": "x", "object": "chat.completion.chunk", "choices": [], "usage": CHAT_USAGE})
    return b"".join(b"data: " + _json(each) + b"\n\n" for each in chunks) + b"data: [DONE]\n\n"


def responses_stream(content: Sequence[str] = ("Hel", "lo.")) -> bytes:
    """The events of a response."""
    events: list[dict[str, Any]] = [
        {"type": "response.created", "response": {"id": "r", "usage": None}},
        *({"type": "response.output_text.delta", "delta": each} for each in content),
        {"type": "response.function_call_arguments.done", "arguments": TRAP},
        {"type": "response.completed", "response": response("".join(content))},
    ]
    return _events({**event, "sequence_number": number} for number, event in enumerate(events))


def messages_stream(content: Sequence[str] = ("Hel", "lo."), line_end: bytes = b"\n") -> bytes:
    """The events of a message."""
    return _events(
        [
            {"type": "message_start", "message": {"id": "m", "content": [], "usage": MESSAGES_USAGE}},
            {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
            {"type": "ping"},
            *(
                {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": each}}
                for each in content
            ),
            {"type": "content_block_delta", "index": 1, "delta": {"type": "input_json_delta", "partial_json": TRAP}},
            {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 89}},
            {"type": "message_stop"},
        ],
        line_end,
    )


def chunked(body: bytes, size: int) -> bytes:
    """A body in chunks of C{size} bytes."""
    pieces = [body[start : start + size] for start in range(0, len(body), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


def head(*fields: str, streamed: bool = False) -> bytes:
    """The head of an answer 200."""
    kind = "text/event-stream; charset=utf-8" if streamed else "application/json"
    lines = ["HTTP/1.1 200 OK", "Date: x", *fields, f"Content-Type: {kind}", "", ""]
    return "\r\n".join(lines).encode()


def _events(events: Any, line_end: bytes = b"\n") -> bytes:
    return b"".join(
        b"event: " + event["type"].encode() + line_end + b"data: " + _json(event) + line_end * 2 for event in events
    )


def _json(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()
