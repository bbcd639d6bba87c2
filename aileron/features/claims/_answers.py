"""Reads the text of the answer that ends a model's turn, from the end of a response. The text is not kept."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

_DATA = b"data:"
_LAST_REASONS = frozenset(("stop", "end_turn", "stop_sequence", "completed"))


class AnswerText:
    """The text of one response of a model, in any of the three protocols that the gateway knows, as far as it was read.

    :ivar is_last: whether the model stopped by itself and calls no tool, so that its turn is over.
    """

    def __init__(self) -> None:
        self._pieces: list[str] = []
        self._reason = ""
        self._calls = False

    @property
    def is_last(self) -> bool:
        """True if the model's turn is over."""
        return self._reason in _LAST_REASONS and not self._calls

    @property
    def text(self) -> str:
        """The model's text as far as it was read."""
        return "".join(self._pieces)

    def read(self, said: Mapping[str, Any]) -> None:
        """Add the text of one event of a stream, or of a whole response."""
        type_ = said.get("type")
        if isinstance(said.get("choices"), list):
            self._read_chat(said["choices"])
        elif type_ == "content_block_start":
            self._read_block(said.get("content_block"))
        elif type_ == "content_block_delta":
            self._add(_object(said, "delta").get("text"))
        elif type_ == "message_delta":
            self._stop(_object(said, "delta").get("stop_reason"))
        elif type_ == "message":
            self._read_blocks(said.get("content"))
            self._stop(said.get("stop_reason"))
        else:
            self._read_of_response(str(type_), said)

    def _read_of_response(self, type_: str, said: Mapping[str, Any]) -> None:
        """Add the text of an event of OpenAI's Responses protocol, or of a whole response."""
        if type_ == "response.output_text.delta":
            self._add(said.get("delta"))
        elif type_ == "response.output_item.done":
            self._read_item(said.get("item"), with_text=False)
        elif type_ == "response.completed":
            self._read_response(_object(said, "response"), with_text=False)
        elif said.get("object") == "response":
            self._read_response(said, with_text=True)

    def _read_chat(self, choices: list[Any]) -> None:
        for choice in choices[:1]:
            if isinstance(choice, dict):
                message = _object(choice, "message") or _object(choice, "delta")
                self._add(message.get("content"))
                self._calls = self._calls or bool(message.get("tool_calls") or message.get("function_call"))
                self._stop(choice.get("finish_reason"))

    def _read_blocks(self, blocks: Any) -> None:
        for block in blocks if isinstance(blocks, list) else ():
            self._read_block(block)

    def _read_block(self, block: Any) -> None:
        if isinstance(block, dict):
            self._calls = self._calls or str(block.get("type")).endswith("tool_use")
            self._add(block.get("text"))

    def _read_response(self, response: Mapping[str, Any], *, with_text: bool) -> None:
        items = response.get("output")
        for item in items if isinstance(items, list) else ():
            self._read_item(item, with_text=with_text)
        self._stop(response.get("status"))

    def _read_item(self, item: Any, *, with_text: bool) -> None:
        if isinstance(item, dict):
            self._calls = self._calls or str(item.get("type")).endswith("_call")
            if with_text:
                self._read_blocks(item.get("content"))

    def _add(self, text: Any) -> None:
        if isinstance(text, str):
            self._pieces.append(text)

    def _stop(self, reason: Any) -> None:
        if isinstance(reason, str):
            self._reason = reason


def read_last_answer(body: bytes, *, streamed: bool) -> str | None:
    """Return the text of the answer that ends a model's turn.

    Return None if the turn goes on, because the model called a tool, or if the response cannot be read.

    :param body: the end of the response that was kept, without framing.
    :param streamed: whether the response is a stream of events.
    """
    answer = AnswerText()
    for said in _list_events(body) if streamed else _parse(body):
        answer.read(said)
    return answer.text if answer.is_last else None


def _list_events(body: bytes) -> Iterator[Mapping[str, Any]]:
    for line in body.split(b"\n"):
        if line.startswith(_DATA):
            yield from _parse(line[len(_DATA) :])


def _parse(text: bytes) -> Iterator[Mapping[str, Any]]:
    """Parse C{text} as JSON, and yield the result if it is an object."""
    try:
        said = json.loads(text.decode())
    except (ValueError, RecursionError):
        return
    if isinstance(said, dict):
        yield said


def _object(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}
