"""A client's request: our tools offered beside its own, and what was hidden from it put back into its history."""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar, TypeAlias

from aileron.base.json import JSON, compact, plain
from aileron.features.inband._turns import Memory, OfferedTool
from aileron.model.errors import InvalidRequest

from .document import Document, Span, dump, expecting
from .exchange import Exchange, recall
from .names import ToolNames, choose_names

Path: TypeAlias = tuple[str, ...]

MOST_TOOLS = 2048
"""Most tools that a client's request may have."""

_NO_DETAILS: Mapping[str, JSON] = {}
_MALFORMED = "The request's body is not what this protocol says."


class ClientRequest(ABC):
    """A client's request, read once; there is a class for each protocol of a provider's.

    :ivar keys: of all that the store may remember of this history: L{Memory.keys} of earlier replies.
    :cvar tool_names: where the names of the client's tools are.
    :cvar other_names: where else one of these stands.
    :cvar history: the member that holds it.
    :cvar exchange: carries a reply.
    """

    tool_names: ClassVar[tuple[Path, ...]]
    other_names: ClassVar[tuple[Path, ...]]
    history: ClassVar[str] = "messages"
    exchange: ClassVar[type[Exchange]]

    def __init__(self, body: bytes) -> None:
        """Read a body, which has no content coding.

        :raises InvalidRequest: it is no JSON object, or has another shape.
        """
        self._document = Document(body)
        self._places: dict[str, list[int]] = {}  # the numbers of the history's entries that each key stands in
        with expecting(InvalidRequest, _MALFORMED):
            self.keys = tuple(dict.fromkeys(self._find_keys()))

    @expecting(InvalidRequest, _MALFORMED)
    def open(self, offered: Sequence[OfferedTool], memories: Sequence[Memory] = ()) -> Exchange:
        """Offer our tools beside the client's own, and put back into the history what was hidden.

        :param memories: those found by C{keys}, each once.
        :raises InvalidRequest: this request asks for what in-band mode has not.
        """
        document = self._document
        _check_tools(document.get("tools") or [])
        why_not = (self._why_not() or _only_required(document)) if offered else ""
        names = self._name(() if why_not else offered)
        for path in (*self.tool_names, *self.other_names) if names.up else ():
            for span in document.find(*path):
                if isinstance(span.value, str) and span.value in names.up:
                    document.replace(span, dump(names.up[span.value]))
        if names.ours:
            document.append("tools", *(compact(self._describe(*pair)) for pair in names.ours.items()))
        if names.ours or document.get("tools"):  # a history with calls needs tools
            for memory in newest(memories, self.keys):
                self._restore(recall(memory), memory.keys)
        unoffered = (f"No action is offered: {why_not}",) if why_not else ()
        return self.exchange(document.settle(), names, (*names.warnings(), *unoffered))

    @classmethod
    def error(cls, message: str, status: int, details: Mapping[str, JSON] = _NO_DETAILS) -> bytes:
        """Write an error document of this protocol, with what programs read of it: its C{details}, if it has some."""
        document = cls.exchange.dialect.describe_error(message, status)
        if "details" in details:
            document["error"]["details"] = plain(details["details"])
        return dump(document).encode("ascii")

    @abstractmethod
    def _describe(self, name: str, tool: OfferedTool) -> JSON:
        """Describe a tool to the model."""

    @abstractmethod
    def _why_not(self) -> str:
        """Return why this request gets none of our tools; empty: it does.

        :raises InvalidRequest: it cannot be served at all.
        """

    @abstractmethod
    def _entry_keys(self, entry: Any) -> Iterable[str]:
        """Yield what identifies the reply that an entry of the history is of."""

    @abstractmethod
    def _restore(self, rounds: Sequence[dict[str, Any]], keys: Sequence[str]) -> None:
        """Put back what an earlier reply hid, where its keys stand in the history."""

    def _find_keys(self) -> Iterable[str]:
        """Yield what identifies earlier replies in the history."""
        entries = self._document.get(self.history)
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            for key in self._entry_keys(entry):
                self._places.setdefault(key, []).append(number)
        yield from self._places

    def _find_last(self, keys: Sequence[str]) -> tuple[Span | None, list[Span]]:
        """Find the last entry of the history that has one of the keys, and those after it.

        An entry that has others as well is not found: the client made it of several replies.
        """
        at = max((self._places[key][-1] for key in keys if key in self._places), default=None)
        if at is None:
            return None, []
        entries = self._document.elements(next(self._document.find(self.history)))
        whole = {*keys}.issuperset(self._entry_keys(entries[at].value))
        return (entries[at], entries[at + 1 :]) if whole else (None, [])

    def _name(self, offered: Sequence[OfferedTool]) -> ToolNames:
        if not offered:
            return ToolNames({}, {})
        found = (span.value for path in self.tool_names for span in self._document.find(*path))
        return choose_names(offered, [name for name in found if isinstance(name, str)])


def _check_tools(tools: object) -> None:
    if not isinstance(tools, list):
        raise InvalidRequest(_MALFORMED)
    if len(tools) > MOST_TOOLS:
        raise InvalidRequest(f"The request has more than {MOST_TOOLS} tools. In-band mode takes no more.")


def _only_required(document: Document) -> str:
    """Tell of a request that insists on a call and has no tools: it would be a call of ours, whatever it is."""
    choice = document.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if kind in ("required", "any") and not document.get("tools"):
        return "the client requires a call, and has no tools of its own."
    return ""


def newest(memories: Sequence[Memory], keys: Iterable[str]) -> list[Memory]:
    """Leave out those of which a newer one has an identifier: some providers give them anew in each reply.

    :param keys: of the history; what stands elsewhere, such as the identifier of a whole response, tells nothing.
    """
    present, taken = set(keys), set[str]()
    found = []
    for memory in reversed(memories):
        own = present.intersection(memory.keys)
        if taken.isdisjoint(own):
            found.append(memory)
        taken |= own
    return found[::-1]


def interleave(
    document: Document,
    array: Span,
    groups: Sequence[Sequence[str | None]],
    *,
    between: Sequence[str] = (),
    keep: bool = True,
) -> None:
    """Put texts between the elements of an array.

    :param groups: what the array is to hold, in order; L{None} is its next element.
    :param between: what ends the array after a group, and begins one for the next.
    :param keep: whether the elements stay; else the groups name none.
    """
    elements, text, at = iter(document.elements(array) if keep else ()), "", array.start + 1
    for number, group in enumerate(groups):
        text += between[number - 1] if number else ""
        for position, entry in enumerate(group):
            text += "," if position else ""
            if entry is None:
                element = next(elements)
                document.insert(at, text, until=element.start)
                text, at = "", element.end
            else:
                text += entry
    if keep:
        document.insert(at, text, until=array.end - 1)
    else:
        document.replace(array, f"[{text}]")


def place_results(
    document: Document,
    order: Sequence[str],
    theirs: Sequence[tuple[Any, Span]],
    mine: Sequence[tuple[str, str]],
    *,
    after: int,
) -> None:
    """Put the results of our calls among the client's, in the order of the calls.

    :param theirs: the client's results, by the calls' identifiers.
    :param mine: likewise, as texts.
    :param after: where those go that come last.
    """
    first = {call: place for place, call in reversed([*enumerate(order)])}
    last = {call: place for place, call in enumerate(order)}
    # How far the calls of the client's results go, up to each: one of ours goes before the first that goes further.
    reached = [*accumulate((last.get(call, -1) for call, _ in theirs), max)]
    for call, text in mine:
        at = bisect_right(reached, first[call])
        if at == len(theirs):
            document.insert(after, f",{text}")
        else:
            document.insert(theirs[at][1].start, f"{text},")
