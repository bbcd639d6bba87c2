"""OpenAI's Chat Completions: one message in deltas, whose calls are identified by their index."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

from aileron.base.json import JSON
from aileron.features.inband._turns import BrokenReply, CallResult, OfferedTool, Turn

from .deltas import accumulate, join_deltas
from .document import EACH, dump
from .events import StreamEvent, write_event
from .exchange import Exchange
from .parts import ARGUMENTS, ReplyPart, Round
from .requests import ClientRequest, interleave, place_results
from .weight import weigh

_SAME = ("id", "created", "model", "system_fingerprint")  # identical in all chunks of one reply
_CALLED, _STOPPED = "tool_calls", "stop"
_WRITTEN = {"function": ARGUMENTS, "custom": "input"}  # the fields of a call that the model writes, by its kind
_A_PART = 1024  # the bytes of a call, beside its arguments


class ChatExchange(Exchange):
    """The reply to a request in the protocol Chat Completions."""

    # If the request forces a call, the response ends with "stop".
    complete_at = frozenset({_CALLED, _STOPPED})
    _text = ""  # the last text that was shown
    _begins = False

    def __init__(self, *request: Any) -> None:
        super().__init__(*request)
        self._undecided: dict[int, ReplyPart] = {}  # calls that may be ours or the client's

    def _event(self, event: StreamEvent) -> bytes:
        now, data = self._round, event.data
        if data.get("error"):
            self._stop("error")
        if not data or data.get("error"):
            return self._keep(event) if b"[DONE]" in event.raw else event.raw
        self._note(data)
        choice = next(iter(data.get("choices") or ()), None)
        if choice is None:
            return self._keep(event) if now.stop or now.usage or self._rounds else event.raw
        delta, ended = choice.get("delta") or {}, choice.get("finish_reason")
        shown = self._show(delta, ended=bool(ended))
        says = any(value not in (None, "", []) for key, value in shown.items() if key != "role")
        if not ended:
            written = event.with_data(self._same({**data, "choices": [{**choice, "delta": shown}]}))
            return written.raw if says or shown == delta or "role" in shown else b""
        self._stop(str(ended))
        self._keep(event.with_data({**data, "choices": [{**choice, "delta": {} if says else shown}]}))
        told = {**data, "choices": [{**choice, "delta": shown, "finish_reason": None}], "usage": None}
        return write_event(event.name, self._same(told)) if says else b""

    def end(self) -> Turn:
        late = [part for part in self._undecided.values() if not part.decided]
        if late and self._round.stop in self.complete_at:
            raise BrokenReply("The provider began a call after the end of its response.")
        self._undecided.clear()
        return super().end()

    def _note(self, data: Mapping[str, Any]) -> None:
        for key in _SAME:
            if key in data:
                self._first.setdefault(key, data[key])
        if isinstance(data.get("usage"), dict):
            self._round.usage = data["usage"]

    def _same(self, data: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a chunk or completion with the id, other constant fields and summed usage of the client's reply."""
        if not self._rounds:
            return data
        usage = {"usage": self._sum()} if isinstance(data.get("usage"), dict) else {}
        return {**data, **{key: value for key, value in self._first.items() if key in data}, **usage}

    def _show(self, delta: Mapping[str, Any], *, ended: bool) -> dict[str, Any]:
        """Store a delta (a piece of the message) for the history. Return the part of the delta that the client may see.

        :raises BrokenReply: if too much is held.
        """
        rest = {key: value for key, value in delta.items() if key != "tool_calls"}
        for key, value in rest.items():
            self._note_field(key, value)
        shown = {key: value for key, value in rest.items() if key != "role" or not self._rounds}
        if text := rest.get("content"):
            shown["content"] = break_between(self._text, text) if self._begins else text
            self._text, self._begins = text, False
        calls = [call for piece in delta.get("tool_calls") or () for call in self._fragment(piece)]
        while ended and self._undecided:  # calls without arguments: their names could have continued
            part = self._undecided.pop(next(iter(self._undecided)))
            if not part.decided:
                part.ours = self._call(part)[1] in self._names.ours
                calls += [] if part.ours else [self._deliver(part)]
        return shown | {"tool_calls": calls} if calls or delta.get("tool_calls", True) in (None, []) else shown

    def _note_field(self, key: str, value: Any) -> None:
        """Store a field of the message, to be sent back to the provider as history in the next turn.

        :raises BrokenReply: if too much is held.
        """
        if isinstance(value, str) and key != "role":
            self._hold(len(value))
            self._round.texts.add(key, value)
        elif value:
            self._hold(_weigh(value))
            accumulate(self._round.message, {key: value} if key != "role" else {})

    def _fragment(self, piece: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
        """Process a fragment of a tool call.

        If the tool is known to be one of the client's, yield the fragment for the client.

        Fragments of calls of our tools, and of calls whose tool is not known yet, are only stored.

        :raises BrokenReply: if too much is held.
        """
        part = self._find(piece)
        more = {key: value for key, value in piece.items() if key not in ("index", "id")}
        for kind, text in _WRITTEN.items():
            inner = dict(more.pop(kind, None) or {})
            self._write_on(part, inner.pop(text, None))
            if part.ours or part.shown >= 0 or inner.get("name") == self._call(part)[1]:
                inner.pop("name", None)  # some providers repeat it
            more |= {kind: inner} if inner else {}
        if more:
            self._hold(_weigh(more))
            accumulate(part.value, more)
        if part.shown >= 0:
            yield self._rename({**piece, "index": part.shown})
            return
        name = self._call(part)[1]
        if name in self._names.ours:
            part.ours = part.texts.size > 0
        elif name and (part.texts.size or not self._names.may_become_ours(name)):
            yield self._deliver(part)

    def _find(self, piece: Mapping[str, Any]) -> ReplyPart:
        """Return the tool call to which a fragment belongs, or a new one.

        Some providers use one index for all calls, with distinct identifiers.

        :raises BrokenReply: if too much is held.
        """
        parts, known = self._round.parts, self._round.notes
        identifier, index = piece.get("id") or "", str(piece.get("index", ""))
        found = parts.get(known.get(index, -1))
        named = identifier and (piece.get("function") or {}).get("name")
        if found is None or (named and found.value["id"] not in ("", identifier)):
            self._hold(_A_PART + len(index) + len(str(identifier)))
            known[index] = len(parts)
            found = self._undecided[len(parts)] = parts[len(parts)] = ReplyPart({"id": "", "type": "function"})
        found.value["id"] = found.value["id"] or identifier
        return found

    def _deliver(self, part: ReplyPart) -> dict[str, Any]:
        """Start to pass a call of the client's own tool to the client: return everything received of the call so far.

        Until then the fragments of the call were held back, because the name of its tool was incomplete.
        """
        part.shown = self._shown
        self._shown += 1
        return {"index": part.shown, **self._rename(self._history(part))}

    def _rename(self, call: dict[str, Any]) -> dict[str, Any]:
        renamed = {
            kind: {**call[kind], "name": self._names.down(call[kind]["name"])}
            for kind in ("function", "custom")
            if isinstance(call.get(kind), dict) and "name" in call[kind]
        }
        return call | renamed

    def _write_end(self, event: StreamEvent) -> bytes:
        choices = [self._ending(choice) for choice in event.data.get("choices") or ()]
        return event.with_data(self._same({**event.data, **({"choices": choices} if choices else {})})).raw

    def _ending(self, choice: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the last chunk's choice for the client. If it has no calls, its finish reason is not C{tool_calls}."""
        called = choice.get("finish_reason") == _CALLED and not self._round.parts
        return {**choice, "finish_reason": _STOPPED} if called else choice

    def _read_document(self, data: Mapping[str, Any]) -> None:
        self._note(data)
        choice: Mapping[str, Any] = next(iter(data.get("choices") or ()), {})
        self._round.notes.update(data)
        self._round.stop = "error" if data.get("error") else str(choice.get("finish_reason") or "")
        message = choice.get("message") or {}
        self._round.message = {key: value for key, value in message.items() if key != "tool_calls"}
        for number, call in enumerate(message.get("tool_calls") or ()):
            part = self._round.parts[number] = ReplyPart(dict(call))
            part.ours = self._call(part)[1] in self._names.ours
            for kind, text in _WRITTEN.items():
                self._write_on(part, (call.get(kind) or {}).get(text))

    def _write_document(self) -> Mapping[str, Any]:
        message: dict[str, Any] = {}
        for each in self._all_rounds():
            accumulate(message, {key: value for key, value in each.message.items() if key != "content"})
        content = join_texts([each.message.get("content") for each in self._all_rounds()])
        calls = [self._rename(self._history(part)) for part in self._round.list_shown()]
        choice = self._ending(self._round.notes["choices"][0])
        message = join_deltas(message) | {"content": content} | ({"tool_calls": calls} if calls else {})
        return self._same({**self._round.notes, "choices": [{**choice, "message": message}]})

    def _call(self, part: ReplyPart) -> tuple[str, str]:
        inner = part.value.get("function") or part.value.get("custom") or {}
        return str(part.value.get("id") or ""), str(inner.get("name") or "")

    def _is_call(self, part: ReplyPart) -> bool:
        return True

    def _history(self, part: ReplyPart) -> dict[str, Any]:
        value: dict[str, Any] = join_deltas(part.value)
        kinds = [kind for kind in _WRITTEN if value.get(kind)]
        return value | {kind: {**value[kind], _WRITTEN[kind]: part.written} for kind in kinds}

    def _remember(self, each: Round) -> dict[str, Any]:
        remembered: dict[str, Any] = join_deltas(super()._remember(each))
        return remembered

    def _result(self, part: ReplyPart, result: CallResult) -> dict[str, Any]:
        return {"role": "tool", "tool_call_id": part.value.get("id") or "", "content": result.text}

    def _append_round(self, now: Round) -> None:
        self._document.append("messages", *messages_of(self._remember(now)))
        self._begins = bool(self._text)

    def _keys(self, part: ReplyPart) -> Iterable[str]:
        return filter(None, [self._call(part)[0]])


class ChatRequest(ClientRequest):
    """A request in the protocol Chat Completions."""

    tool_names = (("tools", EACH, "function", "name"), ("tools", EACH, "custom", "name"))
    other_names = (
        ("messages", EACH, "tool_calls", EACH, "function", "name"),
        ("messages", EACH, "tool_calls", EACH, "custom", "name"),
        ("messages", EACH, "name"),
        ("tool_choice", "function", "name"),
        ("tool_choice", "custom", "name"),
        ("tool_choice", "allowed_tools", "tools", EACH, "function", "name"),
    )
    exchange = ChatExchange

    def _describe(self, name: str, tool: OfferedTool) -> JSON:
        function: JSON = {"name": name, "description": tool.description, "parameters": tool.input_schema}
        return {"type": "function", "function": function}

    def _why_not(self) -> str:
        if self._document.get("n") not in (None, 1):
            return "the client asks for several choices."
        return "the client uses the older field functions." if self._document.get("functions") else ""

    def _entry_keys(self, entry: Any) -> Iterable[str]:
        calls = entry.get("tool_calls") if isinstance(entry, dict) else None
        return [call["id"] for call in calls or () if isinstance(call, dict) and isinstance(call.get("id"), str)]

    def _restore(self, rounds: Sequence[dict[str, Any]], keys: Sequence[str]) -> None:
        message, following = self._find_last(keys)
        if message is None:
            return
        *earlier, last = rounds
        self._restore_content(message, rounds)
        before = [text for each in earlier for text in messages_of(each)]
        self._document.insert(message.start, "".join(f"{text}," for text in before))
        calls = next(self._document.within(message, "tool_calls"))
        entries = [dump(call) if ours else None for ours, call in last["parts"]]
        if entries.count(None) != len(calls.value):  # the client's message has other calls than the reply
            entries = [*filter(None, entries), *[None] * len(calls.value)]
        interleave(self._document, calls, [entries])
        results = []
        for span in following:
            if not isinstance(span.value, dict) or span.value.get("role") != "tool":
                break
            results.append((span.value.get("tool_call_id"), span))
        order = [call["id"] for _, call in last["parts"]]
        mine = [(each["tool_call_id"], dump(each)) for each in last["results"]]
        place_results(self._document, order, results, mine, after=(results[-1][1] if results else message).end)

    def _restore_content(self, message: Any, rounds: Sequence[dict[str, Any]]) -> None:
        """Restore the texts of an earlier reply, which the client stores joined into one, as separate messages.

        If the client's message is not the joined text, drop all texts but the last.

        :param rounds: the stored responses of the provider that made up the reply.
        """
        texts = [each["message"].get("content") for each in rounds]
        if len(rounds) > 1 and message.value.get("content") == join_texts(texts):
            self._document.replace(next(self._document.within(message, "content")), dump(texts[-1]))
        else:
            for each in rounds[:-1]:
                each["message"].pop("content", None)


def _weigh(value: Any) -> int:
    return weigh(dump(value).encode("ascii"))


def messages_of(remembered: Any) -> list[str]:
    """Return one stored response as messages in JSON: the model's message, then the results of our tools."""
    calls = [call for _, call in remembered["parts"]]
    said = {key: value for key, value in remembered["message"].items() if value is not None and key != "role"}
    message = {"role": "assistant", "content": None, **said, "tool_calls": calls}
    return [dump(message), *map(dump, remembered["results"])]


def break_between(before: str, after: str) -> str:
    """Return C{after} with an empty line before it, to append it to C{before}.

    Return it unchanged if C{before} is empty or a line ends between the two texts.
    """
    apart = not before or before.endswith("\n") or after.startswith("\n")
    return after if apart else f"\n\n{after}"


def join_texts(texts: Iterable[str | None]) -> str | None:
    """Return the texts of several responses, joined as the client was sent them, or None if all are empty."""
    found = [text for text in texts if text]
    return "".join(break_between(before, text) for before, text in pairwise(["", *found])) if found else None
