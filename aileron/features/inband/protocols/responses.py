"""OpenAI's Responses: output items by index, and a history that the provider may store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from aileron.base.json import JSON, digest_of_bytes
from aileron.features.inband._turns import BrokenReply, CallResult, OfferedTool, Turn
from aileron.model.errors import InvalidRequest

from .document import EACH, Document, Span, dump
from .events import StreamEvent, write_event
from .exchange import WENT_ON, Exchange
from .parts import ARGUMENTS, EVENT_BYTES, ReplyPart, Round, Texts
from .requests import ClientRequest
from .weight import weigh

_BEGUN = frozenset({"response.created", "response.queued", "response.in_progress"})
_ENDED = {"response.completed": "completed", "response.incomplete": "incomplete", "response.failed": "failed"}
_DONE = "response.output_item.done"
_CALL = "function_call"


class ResponsesExchange(Exchange):
    """The reply to a request in the protocol Responses."""

    complete_at = frozenset({"completed"})
    call_id = "call_id"
    calls_of_clients = frozenset(
        {
            _CALL,
            "apply_patch_call",
            "computer_call",
            "custom_tool_call",
            "local_shell_call",
            "mcp_approval_request",
            "shell_call",
            "tool_search_call",
        }
    )
    _next_number: int | None = None
    _begun: Mapping[str, Any] = {}

    def _event(self, event: StreamEvent) -> bytes:
        data, now = event.data, self._round
        kind = data.get("type")
        if not data or kind == "error":
            if kind:
                self._stop(kind)
            return self._keep(event) if b"[DONE]" in event.raw else event.raw
        if kind in _BEGUN:
            return self._begin(event)
        if kind in _ENDED:
            self._stop(_ENDED[kind])
            now.notes, now.usage = data["response"], data["response"].get("usage") or {}
            return self._keep(event)
        index = data.get("output_index")
        if "item" in data:
            self._hold(EVENT_BYTES + weigh(event.raw))
            self._take(int(index or 0), data["item"], done=kind == _DONE)
        part = None if index is None else now.parts.get(index)
        if part is None:
            return self._number(event, data)
        item = {"item": self._rename(data["item"])} if "item" in data else {}
        return b"" if part.ours else self._number(event, {**self._rename(data), "output_index": part.shown, **item})

    def _begin(self, event: StreamEvent) -> bytes:
        response = event.data["response"]
        self._round.message["id"] = response.get("id")
        self._first.setdefault("id", response.get("id"))
        if self._rounds:
            return b""
        self._begun = self._reply(response)
        return self._number(event, {**event.data, "response": self._begun})

    def _number(self, event: StreamEvent, data: Mapping[str, Any]) -> bytes:
        """Return an event with another sequence number, since the client does not get all events of the provider."""
        if "sequence_number" not in data:
            return event.with_data(data).raw
        number = data["sequence_number"] if self._next_number is None else self._next_number
        self._next_number = number + 1
        return event.with_data({**data, "sequence_number": number}).raw

    def end(self) -> Turn:
        if self._round.stop in self.complete_at and not all(part.done for part in self._round.calls()):
            raise BrokenReply("The provider's response ended within a call.")
        return super().end()

    def _take(self, index: int, item: Mapping[str, Any], *, done: bool) -> None:
        """Process an item that was started or completed.

        :param done: True if the item is complete.
        :raises BrokenReply: if a stream goes on after its stop reason.
        """
        if self._round.stop in self.complete_at and self.streams:
            raise BrokenReply(WENT_ON)
        part = self._round.parts.setdefault(index, ReplyPart({}))
        part.value, part.texts, part.done = dict(item), Texts(), done
        if not part.ours and part.shown < 0:
            part.ours = self._is_ours(item)
            part.shown, self._shown = self._shown, self._shown + (not part.ours)
        part.texts.add(ARGUMENTS, str(item.get(ARGUMENTS) or ""))

    def _is_ours(self, item: Mapping[str, Any]) -> bool:
        called = item.get("type") == _CALL and not item.get("namespace")
        return called and item.get("name") in self._names.ours

    def _rename(self, item: Mapping[str, Any]) -> Mapping[str, Any]:
        return {**item, **{key: self._names.down(item[key]) for key in ("name", "namespace") if item.get(key)}}

    def _reply(self, response: Mapping[str, Any]) -> dict[str, Any]:
        """Return the fields of the provider's response for the client: without our tools, and with the client's id."""
        ours = [*self._names.ours]
        tools = [
            tool for tool in response.get("tools") or () if tool.get("type") != "function" or tool["name"] not in ours
        ]
        own = {"tools": [*map(self._rename, tools)]} if "tools" in response else {}
        for key in ("previous_response_id", "tool_choice"):
            if response.get(key) is not None and self._document.get(key) is not None:
                own[key] = self._document.get(key)
        return {**response, **own, **self._first}

    def _write_end(self, event: StreamEvent) -> bytes:
        return self._number(event, {**event.data, "response": self._write_document()}) if event.data else event.raw

    def _read_document(self, data: Mapping[str, Any]) -> None:
        self._round.message["id"] = data.get("id")
        self._first.setdefault("id", data.get("id"))
        self._round.stop = "failed" if data.get("error") else str(data.get("status") or "completed")
        self._round.notes, self._round.usage = dict(data), data.get("usage") or {}
        for index, item in enumerate(data.get("output") or ()):
            self._take(index, item, done=True)

    def _write_document(self) -> Mapping[str, Any]:
        last = self._round.notes
        output, now = last.get("output"), self._round.list_shown()
        final = self._reply(last) | ({"usage": self._sum()} if last.get("usage") else {})
        if output is None or (not output and now):  # some providers list the output in the events only
            return final
        earlier = [part.value for each in self._all_rounds()[:-1] for part in each.list_shown()]
        shown = [item for item in output if not self._is_ours(item)]
        return final | {"output": [*map(self._rename, [*earlier, *shown])]}

    def _history(self, part: ReplyPart) -> dict[str, Any]:
        return part.value

    def _result(self, part: ReplyPart, result: CallResult) -> dict[str, Any]:
        return {"type": "function_call_output", "call_id": part.value.get("call_id"), "output": result.text}

    def _append_round(self, now: Round) -> None:
        results = [*map(dump, self._results(now))]
        if self._document.get("conversation") is not None:  # the provider stores all other items
            self._document.write("input", f"[{','.join(results)}]")
            return
        text = self._document.raw("input")
        if text.startswith(b'"'):
            self._document.write("input", f"[{_write_message(text.decode())}]")
        stored = self._document.get("store") is not False
        items = (part.value for part in now.parts.values())
        usable = (item for item in items if stored or item.get("type") != "reasoning" or item.get("encrypted_content"))
        self._document.append("input", *map(dump, usable), *results)

    def _own_keys(self) -> Iterable[str]:
        return [str(self._first.get("id"))]

    def _keys(self, part: ReplyPart) -> Iterable[str]:
        return _item_keys(part.value)

    def fail(self, message: str, status: int = 502) -> bytes:
        if not self.streams:
            return super().fail(message, status)
        error = {"code": "server_error", "message": message}
        number = {"sequence_number": self._next_number or 0}
        if not self._begun:
            return write_event("error", {"type": "error", **error, "param": None, **number})
        response = {**self._begun, "status": "failed", "error": error}
        return write_event("response.failed", {"type": "response.failed", "response": response, **number})


class ResponsesRequest(ClientRequest):
    """A request in the protocol Responses."""

    tool_names = (("tools", EACH, "name"),)
    other_names = (
        ("input", EACH, "name"),
        ("input", EACH, "namespace"),
        ("tool_choice", "name"),
        ("tool_choice", "tools", EACH, "name"),
    )
    history = "input"
    exchange = ResponsesExchange

    def _describe(self, name: str, tool: OfferedTool) -> JSON:
        # The default is strict, which not every action's schema satisfies.
        described: dict[str, JSON] = {"name": name, "description": tool.description, "parameters": tool.input_schema}
        return {"type": "function", **described, "strict": False}

    def _why_not(self) -> str:
        if self._document.get("background") is True:
            raise InvalidRequest("In-band mode does not run responses in the background: send background: false.")
        stored = self._document.get("prompt") is not None and self._document.get("tools") is None
        return "the request uses a stored prompt, which may have tools of its own." if stored else ""

    def _find_keys(self) -> Iterable[str]:
        if isinstance(previous := self._document.get("previous_response_id"), str):
            yield previous
        yield from super()._find_keys()

    def _entry_keys(self, entry: Any) -> Iterable[str]:
        return _item_keys(entry)

    def _restore(self, rounds: Sequence[dict[str, Any]], keys: Sequence[str]) -> None:
        previous, last = self._document.get("previous_response_id"), rounds[-1]
        if previous in keys:
            self._document.write("previous_response_id", dump(last["message"]["id"]))
        if previous in keys or self._document.get("conversation") is not None:
            make_array(self._document, [*map(dump, last["results"])])
            return
        items = [span for found in self._document.find("input") for span in self._document.elements(found)]
        place: Span | None = None
        early: list[str] = []
        ids = any("id" in items[self._places[key][0]].value for key in keys if key in self._places)
        for ours, item in _flatten(rounds):
            if ours:
                text = dump(item if ids else {key: value for key, value in item.items() if key != "id"})
                if place is None:
                    early.append(f"{text},")
                else:
                    self._document.insert(place.end, f",{text}")
            elif known := next((key for key in _item_keys(item) if key in self._places), None):
                span = items[self._places[known][0]]
                if place is None:
                    self._document.insert(span.start, "".join(early))
                place = span


def _flatten(rounds: Sequence[dict[str, Any]]) -> Iterator[tuple[bool, dict[str, Any]]]:
    """Yield the output items of all responses in order, each with True if the item was hidden from the client.

    :param rounds: the stored responses of the provider that made up one reply.
    """
    for each in rounds:
        yield from each["parts"]
        yield from ((True, result) for result in each["results"])


def make_array(document: Document, before: Sequence[str] = ()) -> None:
    """Convert a text input to an array, and insert the items C{before} at its beginning."""
    start = "".join(f"{text}," for text in before)
    for span in document.find("input"):
        if isinstance(span.value, str) and not document.is_written("input"):
            document.write("input", f"[{start}{_write_message(document.raw(span))}]")
        elif span.value and before:
            document.insert(span.start + 1, start)
        elif before:
            document.append("input", *before)


def _write_message(text: str) -> str:
    """Return the message item that is equivalent to a text input, as JSON."""
    return f'{{"role":"user","content":{text}}}'


def _item_keys(item: Any) -> Iterator[str]:
    """Yield the identifiers of an output item, which are unique at the provider.

    The output of a call has that of the call.
    """
    if isinstance(item, dict):
        yield from (item[key] for key in ("id", "call_id") if isinstance(item.get(key), str))
        if isinstance(secret := item.get("encrypted_content"), str):
            yield digest_of_bytes(secret.encode())
