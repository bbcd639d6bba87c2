"""One reply to a client, made of one or several responses ("rounds") of the provider. The three protocols share it."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar

from aileron.base.json import JSON, loads_strict
from aileron.features.gateway.values import Dialect
from aileron.features.inband._turns import (
    MOST_ARGUMENTS,
    MOST_CALLS,
    MOST_HELD,
    BrokenReply,
    CallResult,
    Memory,
    ModelCall,
    Turn,
)

from .document import dump, expecting
from .events import EventReader, StreamEvent, read_object, write_event
from .names import ToolNames
from .parts import ARGUMENTS, EVENT_BYTES, ReplyPart, Round
from .prepared import Piece, PreparedRequest
from .weight import weigh

WENT_ON = "The provider went on after the end of its response."
_sound = expecting(BrokenReply, "The provider's response is not what its protocol says.")


class Exchange(ABC):
    """One request of a client until the end of its reply. Subclasses read and write the parts of their protocol.

    A server calls, in this order: send L{pieces}, then L{feed} for each piece of the answer, then L{end}. If the turn
    has calls, the server runs them and calls L{answer}. Then, unless the turn is mixed, it starts again with the new
    L{pieces}. At the end it stores L{memory} if there is one, and writes the result of L{finish}. At any time it may
    write L{keep_alive}, and end the reply with L{fail}. An exchange uses no clock, no sockets and no state outside
    itself.

    :ivar streams: True if the client reads events. Else an answer is one document, and L{feed} returns nothing.
    :ivar warnings: the warnings to record. They contain no content of the client but names of tools.
    :cvar complete_at: the stop reasons of a response whose calls are complete.
    :cvar error_event: the name of an error event.
    :cvar alive: an event without content.
    :cvar calls_of_clients: the types of parts that a client must answer with a result.
    :cvar call_id: the member that identifies a call.
    """

    complete_at: ClassVar[frozenset[str]]
    dialect: ClassVar[Dialect] = Dialect.OPENAI
    error_event: ClassVar[str] = ""
    alive: ClassVar[bytes] = b": keep-alive\n\n"
    calls_of_clients: ClassVar[frozenset[str]]
    call_id: ClassVar[str] = "id"

    def __init__(self, document: PreparedRequest, names: ToolNames, warnings: Sequence[str]) -> None:
        self.streams = document.get("stream") is True
        self.warnings = tuple(warnings)
        self._document = document
        self._names = names
        self._reader = EventReader()
        self._rounds: list[Round] = []
        self._round = Round()
        self._turn = Turn()
        self._kept = bytearray()
        self._late = b""
        self._held = 0
        self._shown = 0
        self._first: dict[str, Any] = {}

    @property
    def pieces(self) -> list[Piece]:
        """The next request to the provider, as a list of pieces. The client's part of it is not copied."""
        return self._document.pieces()

    @property
    def body(self) -> bytes:
        """The next request to the provider as one text."""
        return b"".join(self.pieces)

    @property
    def held_bytes(self) -> int:
        """The bytes held of the request, and of the reply as received and as parsed."""
        return self._document.size + 2 * self._held + self._reader.held_bytes

    @_sound
    def feed(self, data: bytes) -> bytes:
        """Process a piece of a successful answer's body, and return the bytes to send to the client.

        :raises BrokenReply: if the answer violates the protocol, or too much is held.
        """
        if self.streams and not self._names.ours:
            return data
        if self.streams:
            return b"".join(map(self._event, self._reader.feed(data)))
        self._hold(len(data))
        self._kept += data
        return b""

    @_sound
    def end(self) -> Turn:
        """Process the end of the answer's body, and return the turn.

        :raises BrokenReply: if the answer is incomplete, malformed or too long, or has too many calls.
        """
        now = self._round
        if not self._names.ours:
            return self._turn
        if self.streams:
            self._late = b"".join(map(self._event, self._reader.end()))
        else:
            data = bytes(self._kept)
            self._hold(weigh(data) - len(data))
            self._read_document(read_object(data))
        if not now.stop:
            raise BrokenReply("The provider's response is not complete.")
        if now.stop not in self.complete_at:
            # Parts that the model did not finish are neither run nor stored.
            now.parts = {index: part for index, part in now.parts.items() if not part.ours}
        if len(now.calls()) > MOST_CALLS:
            raise BrokenReply(f"The model called more than {MOST_CALLS} actions at once. None of these was run.")
        calls = [self._model_call(number, part) for number, part in enumerate(now.calls(), 1)]
        self._turn = Turn(tuple(calls), mixed=bool(calls) and any(map(self._is_call, now.list_shown())))
        return self._turn

    @_sound
    def answer(self, results: Sequence[CallResult], *, last: bool = False) -> None:
        """Store the results of the turn's calls, one for each, in any order. Afterwards L{body} is the next request.

        :param last: True to offer our tools no more.
        :raises BrokenReply: if too much is held.
        """
        self._hold(sum(len(result.text) for result in results))
        found = {result.id: result for result in results}
        self._round.results = [found[call.id] for call in self._turn.calls]
        self._rounds.append(self._round)
        if self._turn.mixed:
            return
        if last:
            self._withdraw_tools()
        elif forced_tool(self._document) in self._names.ours:
            self._choose("auto")
        self._append_round(self._round)
        self._round, self._reader = Round(), EventReader()
        self._kept.clear()

    def _withdraw_tools(self) -> None:
        """Stop offering our tools. If the client has no tools of its own, keep ours, but forbid the model to call them.

        In that case our tools are still declared, because the history contains calls of them.
        """
        if self._document.has_items("tools"):
            self._document.withdraw("tools")
        else:
            self._choose("none")

    def memory(self) -> Memory | None:
        """Return the part of the reply that the client did not get, to restore it into its next request, or None.

        Call it before L{finish}.
        """
        rounds = self._all_rounds()
        shown = (part for each in rounds for part in each.list_shown())
        keys = tuple(dict.fromkeys([*self._own_keys(), *(key for part in shown for key in self._keys(part))]))
        return Memory(keys, dump([self._remember(each) for each in rounds])) if self._rounds and keys else None

    @_sound
    def finish(self) -> bytes:
        """Return the end of the client's response: the last events, or the whole document."""
        if not self._names.ours:
            return bytes(self._kept)
        if self.streams:
            return self._late + b"".join(map(self._write_end, self._round.held))
        new = self._write_document()
        return bytes(self._kept) if new == self._round.notes else dump(new).encode("ascii")

    def _own_keys(self) -> Iterable[str]:
        """Yield the identifiers of the whole reply by which L{Memory} is found later.

        Those of the reply's parts are not included.
        """
        return ()

    def _remember(self, each: Round) -> dict[str, Any]:
        return {
            "message": each.message | each.texts.joined(),
            "parts": [[part.ours, self._history(part)] for part in each.parts.values()],
            "results": self._results(each),
        }

    def _results(self, each: Round) -> list[dict[str, Any]]:
        return [self._result(part, result) for part, result in zip(each.calls(), each.results, strict=True)]

    def _model_call(self, number: int, part: ReplyPart) -> ModelCall:
        identifier, name = self._call(part)
        arguments, problem = read_arguments(part.written)
        unique = f"{identifier}.{len(self._rounds) + 1}.{number}"  # not every provider sends integers
        return ModelCall(unique, self._names.ours[name].name, arguments, problem)

    def _sum(self) -> Mapping[str, Any]:
        """Return the sum of the token counts that the provider reported in all of its responses."""
        total: Mapping[str, Any] = {}
        for each in self._all_rounds():
            total = add_usage(total, each.usage)
        return total

    def _all_rounds(self) -> list[Round]:
        return self._rounds if self._turn.mixed and self._rounds else [*self._rounds, self._round]

    def _keep(self, event: StreamEvent) -> bytes:
        """Store an event for the end of the reply, and return no bytes for the client.

        :raises BrokenReply: if too much is held.
        """
        self._hold(EVENT_BYTES + weigh(event.raw))
        self._round.held.append(event)
        return b""

    def _hold(self, size: int) -> None:
        """Count bytes that are held in memory for the reply.

        :raises BrokenReply: if more than L{MOST_HELD} bytes are held.
        """
        self._held += size
        if self._held > MOST_HELD:
            raise BrokenReply("The provider's response is too long.")

    def _stop(self, why: str) -> None:
        """Record the stop reason of the response, unless a reason that is not in C{complete_at} was recorded before."""
        if not self._round.stop or self._round.stop in self.complete_at:
            self._round.stop = why

    def _write_on(self, part: ReplyPart, text: Any) -> None:
        """Append text to the arguments of a call.

        Arguments above the limit are truncated just past it, so that they are refused.

        :raises BrokenReply: if too much is held.
        """
        if isinstance(text, str) and not (part.ours and part.texts.size > MOST_ARGUMENTS):
            self._hold(len(text))
            part.texts.add(ARGUMENTS, text)

    def fail(self, message: str, status: int = 502) -> bytes:
        """Return the bytes that end the response visibly: the protocol's error event, or its error document.

        :param status: the HTTP status that selects the error's type. After the first byte the client does not see the
            status.
        """
        error = self.dialect.describe_error(message, status)
        return write_event(self.error_event, error) if self.streams else dump(error).encode("ascii")

    def keep_alive(self) -> bytes:
        """Return an event without content, or nothing if the reply has no events."""
        return self.alive if self.streams else b""

    @abstractmethod
    def _event(self, event: StreamEvent) -> bytes:
        """Process one event of the provider, and return the bytes to send to the client."""

    @abstractmethod
    def _write_end(self, event: StreamEvent) -> bytes:
        """Return the bytes to send for an event that was stored until the end of the client's response."""

    @abstractmethod
    def _read_document(self, data: Mapping[str, Any]) -> None:
        """Process a complete response of the provider that is one JSON document and not a stream."""

    @abstractmethod
    def _write_document(self) -> Mapping[str, Any]:
        """Return the client's response as a JSON document, built from all responses of the provider."""

    def _call(self, part: ReplyPart) -> tuple[str, str]:
        """Return a call's identifier and name."""
        return str(part.value.get(self.call_id) or ""), str(part.value.get("name") or "")

    def _is_call(self, part: ReplyPart) -> bool:
        return part.value.get("type") in self.calls_of_clients

    @abstractmethod
    def _history(self, part: ReplyPart) -> dict[str, Any]:
        """Convert a part of a response to the JSON that repeats it in the next request's list of messages."""

    @abstractmethod
    def _result(self, part: ReplyPart, result: CallResult) -> dict[str, Any]:
        """Convert the result of a tool call to the JSON that reports it in the next request's list of messages."""

    @abstractmethod
    def _append_round(self, now: Round) -> None:
        """Append one response of the provider, with the results of its calls, to the request's history."""

    @abstractmethod
    def _keys(self, part: ReplyPart) -> Iterable[str]:
        """Yield the identifiers that a part of the reply will have in the client's history.

        L{Memory} is found by them.
        """

    def _choose(self, kind: str) -> None:
        """Set the request's choice of tools, such as C{auto} or C{none}."""
        self._document.write("tool_choice", dump(kind))


def forced_tool(document: PreparedRequest) -> object:
    """Return the name of the one tool that a request forces, or None."""
    choice = document.get("tool_choice")
    if not isinstance(choice, dict):
        return None
    inner = choice.get("function")
    return inner.get("name") if isinstance(inner, dict) else choice.get("name")


def read_arguments(text: str) -> tuple[Mapping[str, JSON], str]:
    """Return a call's parsed arguments and an empty text, or no arguments and an error text for the model."""
    if len(text) > MOST_ARGUMENTS:
        return {}, f"The arguments are longer than {MOST_ARGUMENTS} characters. Nothing was run."
    try:
        value = loads_strict(text.encode("utf-8", "surrogatepass")) if text.strip() else {}
    except ValueError as error:
        return {}, f"The arguments cannot be read: {str(error).replace('the body', 'the text')}. Nothing was run."
    if not isinstance(value, dict):
        return {}, "The arguments are not a JSON object. Nothing was run."
    return value, ""


def add_usage(one: Mapping[str, Any], other: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the sum of two usages. Numbers are added at any depth, and other values are taken from C{other}."""
    total = dict(one)
    for key, value in other.items():
        before = total.get(key)
        if isinstance(before, dict) and isinstance(value, dict):
            total[key] = add_usage(before, value)
        elif _is_number(before) and _is_number(value):
            total[key] = before + value
        elif value is not None or key not in total:
            total[key] = value
    return total


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def recall(memory: Memory) -> list[dict[str, Any]]:
    """Return the earlier responses of the provider that C{memory} contains, as JSON objects."""
    rounds: list[dict[str, Any]] = json.loads(memory.content)
    return rounds
