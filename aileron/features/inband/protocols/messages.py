"""Anthropic's Messages: content blocks by index, each started, filled and stopped, among them calls and thinking."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from aileron.base.json import JSON, digest_of_bytes
from aileron.features.gateway.values import Dialect
from aileron.features.inband._turns import BrokenReply, CallResult, OfferedTool
from aileron.model.errors import InvalidRequest

from .document import EACH, Span, dump
from .events import StreamEvent, write_event
from .exchange import WENT_ON, Exchange
from .parts import ARGUMENTS, EVENT_BYTES, ReplyPart, Round
from .requests import ClientRequest, interleave, place_results
from .weight import weigh

_CALLED, _STOPPED = "tool_use", "end_turn"
_CALLS = frozenset({"tool_use", "server_tool_use"})
_GROWS = {"text_delta": "text", "thinking_delta": "thinking", "compaction_delta": "content"}
_BEGIN, _END = '{"role":"assistant","content":[', "]}"
_COUNTED = (
    "input_tokens",
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "output_tokens",
    "server_tool_use",
    "output_tokens_details",
)


class MessagesExchange(Exchange):
    """The reply to a request in the protocol Messages."""

    complete_at = frozenset({_CALLED, _STOPPED})
    dialect = Dialect.ANTHROPIC
    calls_of_clients = frozenset({_CALLED})
    error_event = "error"
    alive = write_event("ping", {"type": "ping"})

    def _event(self, event: StreamEvent) -> bytes:
        kind, data, now = event.data.get("type"), event.data, self._round
        if kind == "message_start":
            now.message = {"container": data["message"].get("container")}
            now.usage = dict(data["message"].get("usage") or {})
            return b"" if self._rounds else event.raw
        if kind in ("message_delta", "message_stop"):
            return self._ending(event)
        if kind == "error":
            self._stop(kind)
        index = data.get("index")
        if kind == "content_block_start":
            self._hold(EVENT_BYTES + weigh(event.raw))
            self._begin(int(index or 0), data["content_block"])
        part = None if index is None else now.parts.get(index)
        if part is None:
            return event.raw
        if kind == "content_block_delta":
            self._fill(part, data["delta"])
        if part.ours:
            return b""
        shown = {"content_block": self._rename(data["content_block"])} if "content_block" in data else {}
        return event.with_data({**data, "index": part.shown, **shown}).raw

    def _ending(self, event: StreamEvent) -> bytes:
        data, now = event.data, self._round
        if data["type"] == "message_stop":
            self._stop(now.notes.get("stop_reason") or _STOPPED)
        else:
            delta = data.get("delta") or {}
            if (before := now.notes.get("stop_reason")) and before not in self.complete_at:
                delta = {**delta, "stop_reason": before}
            now.notes.update(delta)
            now.message.update({key: delta[key] for key in ("container",) if delta.get(key)})
            counted = {key: value for key, value in (data.get("usage") or {}).items() if value is not None}
            now.usage.update(counted)  # each event reports totals
        return self._keep(event)

    def _begin(self, index: int, block: Mapping[str, Any]) -> ReplyPart:
        if self._round.stop in self.complete_at and self.streams:
            raise BrokenReply(WENT_ON)
        part = self._round.parts[index] = ReplyPart(dict(block))
        part.ours = block.get("type") == _CALLED and self._call(part)[1] in self._names.ours
        if not part.ours:
            part.shown, self._shown = self._shown, self._shown + 1
        return part

    def _fill(self, part: ReplyPart, delta: Mapping[str, Any]) -> None:
        kind, value = str(delta.get("type")), part.value
        if kind == "input_json_delta":
            return self._write_on(part, delta["partial_json"])
        self._hold(weigh(dump(delta).encode("ascii")))
        if kind in _GROWS:
            part.texts.add(_GROWS[kind], delta[_GROWS[kind]] or "")
        elif kind == "citations_delta":
            if value.get("citations") is None:
                value["citations"] = []
            value["citations"].append(delta["citation"])
        else:  # signatures and unknown kinds
            value.update({key: each for key, each in delta.items() if key != "type"})
        return None

    def _rename(self, block: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**block, "name": self._names.down(block["name"])} if block.get("type") == _CALLED else block

    def _write_end(self, event: StreamEvent) -> bytes:
        data = event.data
        if data["type"] == "message_delta":
            delta = {**data["delta"], **self._reason(data["delta"])}
            data = {**data, "delta": delta}
            if len(self._all_rounds()) > 1:
                total = self._sum()
                counted = {key: total[key] for key in _COUNTED if total.get(key) is not None}
                data["usage"] = {**(data.get("usage") or {}), **counted}
        return event.with_data(data).raw

    def _reason(self, ending: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the stop reason to set in the client's message: C{end_turn} if it has no calls, else no change."""
        called = any(part.value.get("type") == _CALLED for part in self._round.parts.values())
        return {"stop_reason": _STOPPED} if ending.get("stop_reason") == _CALLED and not called else {}

    def _read_document(self, data: Mapping[str, Any]) -> None:
        now = self._round
        self._first = self._first or {"id": data.get("id")}
        now.notes, now.usage = dict(data), data.get("usage") or {}
        now.message = {"container": data.get("container")}
        now.stop = "error" if data.get("error") else str(data.get("stop_reason") or _STOPPED)
        for index, block in enumerate(data.get("content") or ()):
            part = self._begin(index, block)
            if part.ours:
                self._write_on(part, dump(block["input"]))

    def _write_document(self) -> Mapping[str, Any]:
        rounds, data = self._all_rounds(), self._round.notes
        shown = [part.value for each in rounds for part in each.list_shown()]
        usage = {"usage": self._sum()} if data.get("usage") else {}
        return {**data, **self._first, "content": [*map(self._rename, shown)], **self._reason(data), **usage}

    def _history(self, part: ReplyPart) -> dict[str, Any]:
        texts = part.texts.joined()
        written = texts.pop(ARGUMENTS, "")
        whole = {name: (part.value.get(name) or "") + text for name, text in texts.items()}
        return {**part.value, **whole, **({"input": _object(written)} if written else {})}

    def _result(self, part: ReplyPart, result: CallResult) -> dict[str, Any]:
        said = {"type": "tool_result", "tool_use_id": part.value["id"], "content": result.text}
        return said | ({"is_error": True} if result.is_error else {})

    def _append_round(self, now: Round) -> None:
        blocks = [block for _, block in self._remember(now)["parts"] if not _is_empty(block)]
        self._document.append("messages", _message("assistant", blocks), _message("user", self._results(now)))
        container = now.message.get("container")
        if container and self._document.get("container") is None:
            self._document.write("container", dump(container["id"]))

    def _choose(self, kind: str) -> None:
        before = self._document.get("tool_choice") or {}
        kept = {key: before[key] for key in ("disable_parallel_tool_use",) if key in before and kind == "auto"}
        self._document.write("tool_choice", dump({"type": kind, **kept}))

    def _keys(self, part: ReplyPart) -> Iterable[str]:
        return _block_keys(self._history(part))


class MessagesRequest(ClientRequest):
    """A request in the protocol Messages."""

    tool_names = (("tools", EACH, "name"),)
    other_names = (("messages", EACH, "content", EACH, "name"), ("tool_choice", "name"))
    exchange = MessagesExchange

    def _describe(self, name: str, tool: OfferedTool) -> JSON:
        return {"name": name, "description": tool.description, "input_schema": tool.input_schema}

    def _why_not(self) -> str:
        if self._document.get("thread") is not None:
            # On this error the SDK sends the request again with the whole history.
            unsupported: JSON = {"error_code": "thread_unsupported_request", "unsupported": ["in_band_mode"]}
            raise InvalidRequest("In-band mode needs the whole history: send no thread.", {"details": unsupported})
        return ""

    def _entry_keys(self, entry: Any) -> Iterable[str]:
        content = entry.get("content") if isinstance(entry, dict) else None
        if isinstance(content, list) and entry.get("role") == "assistant":
            yield from (key for block in content for key in _block_keys(block))

    def _restore(self, rounds: Sequence[dict[str, Any]], keys: Sequence[str]) -> None:
        message, following = self._find_last(keys)
        if message is None:
            return
        content = next(self._document.within(message, "content"))
        stored = [block for each in rounds for ours, block in each["parts"] if not ours]
        whole = [block.get("type") for block in stored] == [block.get("type") for block in content.value]
        groups = [[dump(block) if ours else None for ours, block in each["parts"]] for each in rounds]
        if not whole:  # the client changed its message, so use the provider's blocks
            groups = [[dump(block) for _, block in each["parts"] if not _is_empty(block)] for each in rounds]
        if not groups[-1]:
            return
        between = [f"{_END},{_message('user', each['results'])},{_BEGIN}" for each in rounds[:-1]]
        interleave(self._document, content, groups, between=between, keep=whole)
        if rounds[-1]["results"]:
            self._place([message, *following[:1]], rounds[-1])

    def _place(self, messages: Sequence[Span], last: Mapping[str, Any]) -> None:
        """Insert the results of our calls in the last response among the client's results, or as their own message."""
        order = [block.get("id") for _, block in last["parts"]]
        mine = [(each["tool_use_id"], dump(each)) for each in last["results"]]
        blocks = self._document.within(messages[-1], "content", EACH)
        theirs = [(span.value.get("tool_use_id"), span) for span in blocks if span.value.get("type") == "tool_result"]
        if theirs and len(messages) > 1:
            place_results(self._document, order, theirs, mine, after=theirs[-1][1].end)
        else:
            self._document.insert(messages[0].end, "," + _message("user", last["results"]))


def _message(role: str, content: Sequence[JSON]) -> str:
    return dump({"role": role, "content": content})


def _is_empty(block: Mapping[str, Any]) -> bool:
    """Return whether the block is an empty text. The provider sends such blocks, but does not accept them."""
    return block.get("type") == "text" and not block.get("text")


def _object(text: str) -> Mapping[str, Any]:
    """Parse the input of a call for the history. If it is not an object, return an empty one."""
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        value = {}
    return value if isinstance(value, dict) else {}


def _block_keys(block: Any) -> Iterator[str]:
    """Yield the identifiers of a content block, which are unique at the provider."""
    kind = block.get("type") if isinstance(block, dict) else None
    if kind in _CALLS and isinstance(block.get("id"), str):
        yield block["id"]
    elif kind == "thinking" and block.get("signature"):
        yield digest_of_bytes(str(block["signature"]).encode())
