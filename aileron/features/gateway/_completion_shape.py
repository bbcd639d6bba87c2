"""Reads facts about a completion from a response's body, in one pass, in linear time and bounded memory.

Of the contents only the model's name, the names of the tools that it calls, the ids of these calls, the stop reason and
the token counts are stored.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Mapping
from typing import Any

from aileron.base.http1 import ChunkedContent
from aileron.model.usage import Usage

from ._body_sample import PACKED, PLAIN, PLAIN_BYTES, Allowance, content_coding, is_chunked, is_streamed, zlib_window
from ._usage import read_counts

MOST_TEXT_BYTES = 256 * 1024
"""The longest event of a stream, or whole response, that is parsed. Parsing this much takes about two milliseconds."""

MOST_UNPACKED_BYTES = 8 * 1024 * 1024
"""The limit of a decompressed response. The rest is not read."""

MOST_NAMES = 32
MOST_CALLS = 1024
_LONGEST_NAME = 128

_DATA = b"data:"
# Members whose values are not null. Most events have none of them and are not parsed.
_tells = re.compile(
    rb'"(?:usage|finish_reason|stop_reason|tool_calls|function_call|content_block|item|response)"'
    rb'[ \t]{0,8}:[ \t]{0,8}[{\["]'
).search
_COUNTS = frozenset(
    (
        "prompt_tokens",
        "completion_tokens",
        "input_tokens",
        "output_tokens",
        "cache_read_input_tokens",
        "cache_creation_input_tokens",
    )
)
_DETAILS = frozenset(("prompt_tokens_details", "input_tokens_details"))
_BEGUN = frozenset(("in_progress", "queued"))
_TOOL_BLOCKS = frozenset(("tool_use", "server_tool_use", "mcp_tool_use"))


class CompletionShape:
    """The facts about one completion, as far as its response has been read.

    :ivar model: the name of the model in the response, or None.
    :ivar tools: names of the tools that the model called, in order, at most L{MOST_NAMES}.
    :ivar calls: the number of calls.
    :ivar call_ids: ids of the calls, in order, at most L{MOST_NAMES}. Calls without an id are left out.
    :ivar stop_reason: the stop reason as the provider sent it, or None if the response ended before it.
    :ivar partial: True if some of the response could not be read.
    """

    def __init__(self) -> None:
        self.model: str | None = None
        self.tools: list[str] = []
        self.calls = 0
        self.call_ids: list[str] = []
        self.stop_reason: str | None = None
        self.partial = False
        self._told: dict[str, Any] = {}
        self._indexes: set[tuple[int, int]] = set()

    @property
    def usage(self) -> Usage | None:
        """The token counts of the response, or None if it reports none."""
        return read_counts(self._told)

    def read(self, said: Mapping[str, Any]) -> None:
        """Add the facts of one event of a stream, or of a whole response, in any of the three protocols."""
        type_ = _text(said, "type")
        if isinstance(said.get("choices"), list):
            self._read_chat(said)
        elif type_ == "message_start":
            self._read_message(_object(said, "message"))
        elif type_ in {"message", "message_delta"}:
            self._read_message(said)
        elif type_ == "content_block_start":
            self._read_block(said.get("content_block"))
        elif type_.startswith("response."):
            self._read_event(type_, said)
        elif said.get("object") == "response":
            self._read_response(said)

    def _read_chat(self, said: Mapping[str, Any]) -> None:
        self.model = self.model or cut_name(said.get("model"))
        self._read_usage(said)
        for choice in _list(said, "choices"):
            if not isinstance(choice, dict):
                continue
            self.stop_reason = cut_name(choice.get("finish_reason")) or self.stop_reason
            message = _object(choice, "message") or _object(choice, "delta")
            for place, call in enumerate(_list(message, "tool_calls")):
                self._read_chat_call(choice.get("index", 0), place, call)
            self._read_chat_call(choice.get("index", 0), -1, {"function": message.get("function_call")})

    def _read_chat_call(self, choice: object, place: int, call: object) -> None:
        """Count a tool call once, although each piece of its arguments may name the tool.

        A piece that names no tool is ignored. From L{MOST_CALLS} calls on, set C{partial} and count no more.
        """
        if not isinstance(call, dict):
            return
        name = _object(call, "function").get("name") or _object(call, "custom").get("name")
        index = call.get("index", place)
        if not name or type(index) is not int or type(choice) is not int:
            return
        if len(self._indexes) >= MOST_CALLS:
            self.partial = True
        elif (choice, index) not in self._indexes:
            self._indexes.add((choice, index))
            self._count_call(name, call.get("id"))

    def _read_message(self, said: Mapping[str, Any]) -> None:
        self.model = self.model or cut_name(said.get("model"))
        self._read_usage(said)
        reason = said.get("stop_reason") or _object(said, "delta").get("stop_reason")
        self.stop_reason = cut_name(reason) or self.stop_reason
        for block in _list(said, "content"):
            self._read_block(block)

    def _read_block(self, block: object) -> None:
        if isinstance(block, dict) and _text(block, "type") in _TOOL_BLOCKS:
            self._count_call(block.get("name"), block.get("id"))

    def _read_event(self, type_: str, said: Mapping[str, Any]) -> None:
        """Read an event of a response. The output of the closing event is skipped: its items were counted before."""
        self._read_response({**_object(said, "response"), "output": None})
        if type_ == "response.output_item.done":
            self._read_item(said.get("item"))

    def _read_response(self, said: Mapping[str, Any]) -> None:
        self.model = self.model or cut_name(said.get("model"))
        self._read_usage(said)
        for item in _list(said, "output"):
            self._read_item(item)
        status = cut_name(said.get("status"))
        if status is not None and status not in _BEGUN:
            self.stop_reason = cut_name(_object(said, "incomplete_details").get("reason")) or status

    def _read_item(self, item: object) -> None:
        """Count a call of a client's or provider's tool. Provider's tools have no name, so their type is stored."""
        if isinstance(item, dict) and _text(item, "type").endswith("_call"):
            self._count_call(item.get("name") or item.get("type"), item.get("call_id"))

    def _count_call(self, name: object, id_: object) -> None:
        self.calls += 1
        if len(self.tools) < MOST_NAMES:
            self.tools.append(cut_name(name) or "")
        told = cut_name(id_)
        if told and len(self.call_ids) < MOST_NAMES:
            self.call_ids.append(told)

    def _read_usage(self, said: Mapping[str, Any]) -> None:
        """Store the token counts. A later count replaces an earlier one."""
        for name, value in _object(said, "usage").items():
            if name in _COUNTS and type(value) is int:
                self._told[name] = value
            elif name in _DETAILS and isinstance(value, dict):
                self._told[name] = {"cached_tokens": value.get("cached_tokens")}


class ShapeReader:
    """The reader of one response's body, fed as the body is relayed.

    :ivar shape: the facts read so far.
    """

    def __init__(self, head: bytes, allowance: Allowance) -> None:
        """Create a reader for the body that follows C{head}.

        :param allowance: limits how many texts longer than L{PLAIN_BYTES} are held at once.
        """
        coding = content_coding(head)
        self.shape = CompletionShape()
        self._allowance = allowance
        self._long = False
        self._streamed = is_streamed(head)
        self._content = ChunkedContent() if is_chunked(head) else None
        self._coding = b"" if coding in PLAIN else coding
        self._unpacker: Any = None
        self._unpacked = 0
        self._over = False  # True if the rest of the body is ignored
        self._lost = False  # True if the current line or document is too long
        self._text = bytearray()
        if self._coding and coding not in PACKED:
            self._stop()

    def feed(self, data: bytes) -> None:
        """Read a piece of the body, framing included."""
        if self._over:
            return
        content = data if self._content is None else self._content.take(data)
        if self._coding and content:
            content = self._unpack(content)
        if not self._streamed:
            self._keep(content)
            return
        start = 0
        while (end := content.find(b"\n", start)) >= 0:
            self._keep(content[start:end])
            self._read_line()
            start = end + 1
        self._keep(content[start:])

    def finish(self) -> CompletionShape:
        """Read what is buffered of the body, release the buffers, and return the facts that were read."""
        if not self._streamed:
            self._parse(bytes(self._text))
        elif self._text:
            self._read_line()
        self._let_go()
        self._over, self._unpacker = True, None
        return self.shape

    def _keep(self, content: bytes) -> None:
        size = len(self._text) + len(content)
        if size > PLAIN_BYTES and not (self._lost or self._long):
            self._long = self._allowance.take()
        if size > (MOST_TEXT_BYTES if self._long else PLAIN_BYTES):
            self._lost = self.shape.partial = True
            self._let_go()
        if not self._lost:
            self._text += content

    def _read_line(self) -> None:
        line = bytes(self._text)
        if line.startswith(_DATA) and (self.shape.model is None or _tells(line)):
            self._parse(line.removeprefix(_DATA))
        self._let_go()
        self._lost = False

    def _parse(self, text: bytes) -> None:
        try:
            said = json.loads(text)
        except (ValueError, RecursionError):
            return  # such as "[DONE]", or a truncated response
        if isinstance(said, dict):
            self.shape.read(said)

    def _unpack(self, content: bytes) -> bytes:
        if self._unpacker is None:
            self._unpacker = zlib.decompressobj(zlib_window(content, self._coding))
        room = MOST_UNPACKED_BYTES - self._unpacked
        try:
            text: bytes = self._unpacker.decompress(content, room)
        except zlib.error:
            self._stop()
            return b""
        self._unpacked += len(text)
        if len(text) >= room:
            self._stop()
        return text

    def _stop(self) -> None:
        self._over = self.shape.partial = True
        self._unpacker = None
        self._let_go()

    def _let_go(self) -> None:
        self._text.clear()
        if self._long:
            self._long = False
            self._allowance.give()


def cut_name(value: object) -> str | None:
    """Return the first characters of a name, with unprintable ones replaced, or None if C{value} is not a text."""
    if not isinstance(value, str):
        return None
    return "".join(sign if sign.isprintable() else "\ufffd" for sign in value[:_LONGEST_NAME])


def _text(holder: Mapping[str, Any], name: str) -> str:
    value = holder.get(name)
    return value if isinstance(value, str) else ""


def _object(holder: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = holder.get(name)
    return value if isinstance(value, dict) else {}


def _list(holder: Mapping[str, Any], name: str) -> list[Any]:
    value = holder.get(name)
    return value if isinstance(value, list) else []
