"""A strict client: reads a reply as each protocol says it must come, and refuses whatever an SDK would trip over."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from attrs import Factory, define

from .provider import Called, Said, Thought


@define
class Heard:
    """A whole reply.

    :ivar used: tokens that were written, as the reply counts them.
    """

    id: str = ""
    parts: list[Any] = Factory(list)
    stop: str = ""
    used: int = 0
    error: str = ""

    @property
    def calls(self) -> list[Called]:
        """The calls that it makes."""
        return [part for part in self.parts if isinstance(part, Called)]


def events_of(stream: bytes) -> list[tuple[str, Any]]:
    """Split a whole stream into the names and the data of its events; comments are none."""
    found = []
    for block in stream.decode().replace("\r\n", "\n").split("\n\n"):
        lines = [line.partition(": ") for line in block.split("\n") if line and not line.startswith(":")]
        if lines:
            fields = {key: value for key, _, value in lines}
            data = fields.get("data", "")
            found.append((fields.get("event", ""), data if data == "[DONE]" else json.loads(data)))
    return found


def read_chat(stream: bytes) -> Heard:
    """Read a chat completion that came in chunks."""
    heard, same, text = Heard(), set(), ""
    calls: list[list[str]] = []
    for _, data in events_of(stream):
        assert heard.error == ""
        if data == "[DONE]":
            assert heard.stop
            break
        if "error" in data:
            heard.error = data["error"]["message"]
            continue
        same.add((data["id"], data["created"]))
        heard.id = data["id"]
        if isinstance(data.get("usage"), dict):
            assert not heard.used, "counted twice"
            heard.used = data["usage"]["completion_tokens"]
        for choice in data["choices"]:
            delta = choice["delta"]
            assert not heard.stop, "more after the end"
            heard.parts += ["role"] if "role" in delta else []
            assert heard.parts == ["role"], "a role, once and first"
            text += delta.get("content") or ""
            for piece in delta.get("tool_calls") or ():
                if piece["index"] == len(calls):
                    calls.append([piece["id"], piece["function"]["name"], ""])
                else:
                    assert not piece.get("id"), "begun twice"
                calls[piece["index"]][2] += piece["function"]["arguments"]
            heard.stop = choice["finish_reason"] or ""
    assert len(same) <= 1, same
    heard.parts = ([Said(text)] if text else []) + [Called(*call) for call in calls]
    return heard


def read_chat_document(document: bytes) -> Heard:
    """Read a chat completion that came at once."""
    data = json.loads(document)
    if "error" in data:
        return Heard(error=data["error"]["message"])
    (choice,) = data["choices"]
    message = choice["message"]
    calls = [
        Called(call["id"], call["function"]["name"], call["function"]["arguments"])
        for call in message.get("tool_calls", ())
    ]
    said = [Said(message["content"])] if message["content"] else []
    return Heard(data["id"], [*said, *calls], choice["finish_reason"], data["usage"]["completion_tokens"])


def read_message(stream: bytes) -> Heard:
    """Read a message that came in events."""
    heard, ended = Heard(), False
    blocks: list[dict[str, Any]] = []
    for name, data in events_of(stream):
        kind = data["type"]
        assert name == kind and not ended and not heard.error
        if kind == "message_start":
            assert not heard.id
            heard.id = data["message"]["id"]
        elif kind == "error":
            heard.error = data["error"]["message"]
        elif kind.startswith("content_block"):
            assert heard.id and not heard.stop
            _take(blocks, data)
        elif kind == "message_delta":
            assert not blocks or "written" in blocks[-1], "a block is open"
            heard.stop, heard.used = data["delta"]["stop_reason"], data["usage"]["output_tokens"]
        else:
            ended = kind == "message_stop" and bool(heard.stop)
            assert ended or kind == "ping"
    assert ended or heard.error, "not complete"
    heard.parts = [_part(each, each.get("written", "")) for each in blocks]
    return heard


def _take(blocks: list[dict[str, Any]], data: Mapping[str, Any]) -> None:
    is_open = bool(blocks) and "written" not in blocks[-1]
    if data["type"] == "content_block_start":
        assert not is_open and data["index"] == len(blocks)
        blocks.append({**data["content_block"], "piece": ""})
        return
    assert is_open and data["index"] == len(blocks) - 1
    if data["type"] == "content_block_delta":
        blocks[-1]["piece"] += _fill(blocks[-1], data["delta"])
    else:
        blocks[-1]["written"] = blocks[-1]["piece"]


def _fill(block: dict[str, Any], delta: Mapping[str, Any]) -> str:
    kind = delta["type"]
    if kind == "input_json_delta":
        return str(delta["partial_json"])
    key = {"text_delta": "text", "thinking_delta": "thinking", "signature_delta": "signature"}[kind]
    block[key] += delta[key]
    return ""


def _part(block: Mapping[str, Any], written: str) -> Any:
    if block["type"] == "text":
        return Said(block["text"])
    if block["type"] == "thinking":
        return Thought(block["thinking"], block["signature"])
    return Called(block["id"], block["name"], written or json.dumps(block["input"]))


def read_message_document(document: bytes) -> Heard:
    """Read a message that came at once."""
    data = json.loads(document)
    if data["type"] == "error":
        return Heard(error=data["error"]["message"])
    parts = [_part(block, "") for block in data["content"]]
    return Heard(data["id"], parts, data["stop_reason"], data["usage"]["output_tokens"])


def read_response(stream: bytes) -> Heard:
    """Read a response that came in events."""
    items: dict[int, dict[str, Any]] = {}
    text: dict[int, str] = {}
    heard = Heard()
    for number, (name, data) in enumerate(events_of(stream)):
        kind = data["type"]
        assert name == kind and data["sequence_number"] == number and not heard.stop, (number, data)
        if "response" in data:
            assert heard.id in ("", data["response"]["id"]), "another response"
            heard.id = data["response"]["id"]
            assert not any("ship" in str(tool) for tool in data["response"]["tools"]), "a tool of ours"
        assert number > 1 or kind in ("response.created", "response.in_progress", "response.output_item.added")
        assert number < 2 or kind not in ("response.created", "response.in_progress"), "begun again"
        if kind == "response.output_item.added":
            assert data["output_index"] == len(items)
            items[data["output_index"]], text[data["output_index"]] = data["item"], ""
        elif kind.endswith(".delta"):
            text[data["output_index"]] += data["delta"]
        elif kind == "response.output_item.done":
            assert items[data["output_index"]]["id"] == data["item"]["id"]
            assert "done" not in items[data["output_index"]]
            items[data["output_index"]] = data["item"] | {"done": True}
        elif kind == "response.failed":
            heard.error, heard.stop = data["response"]["error"]["message"], "failed"
        elif kind in ("response.completed", "response.incomplete"):
            whole = [{key: value for key, value in each.items() if key != "done"} for each in items.values()]
            assert all("done" in each for each in items.values())
            assert data["response"]["output"] == whole, "the end says other than the events"
            heard.stop, heard.used = data["response"]["status"], data["response"]["usage"]["output_tokens"]
    assert heard.stop, "not complete"
    heard.parts = [_item(each) for each in items.values()]
    streamed = [(text[index], each) for index, each in items.items() if each["type"] != "reasoning"]
    assert heard.error or all(_written(each) == came for came, each in streamed), "deltas say something else"
    return heard


def _written(item: Mapping[str, Any]) -> str:
    if item["type"] == "message":
        return "".join(part["text"] for part in item["content"])
    return str(item["arguments"])


def _item(item: Mapping[str, Any]) -> Any:
    if item["type"] == "message":
        return Said(_written(item))
    if item["type"] == "reasoning":
        return Thought("".join(part["text"] for part in item["summary"]), item.get("encrypted_content", ""))
    return Called(item["call_id"], item["name"], item["arguments"])


def read_response_document(document: bytes) -> Heard:
    """Read a response that came at once."""
    data = json.loads(document)
    if "error" in data and data.get("object") != "response":
        return Heard(error=data["error"]["message"])
    assert not any("ship" in str(tool) for tool in data["tools"]), "a tool of ours"
    return Heard(data["id"], [*map(_item, data["output"])], data["status"], data["usage"]["output_tokens"])
