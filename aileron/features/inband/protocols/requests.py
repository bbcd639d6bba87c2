"""A client's request, to which our tools are added and into whose history hidden parts are restored."""

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
"""The most tools in a client's request."""

_NO_DETAILS: Mapping[str, JSON] = {}
_MALFORMED = "The request's body is not what this protocol says."


class ClientRequest(ABC):
    """A client's request, parsed once, with a subclass for each protocol.

    :ivar keys: the keys in the history by which memories of earlier replies are found (see L{Memory.keys}).
    :cvar tool_names: the paths of the names of the client's tools.
    :cvar other_names: the other paths at which names of tools occur.
    :cvar history: the member that contains the history.
    :cvar exchange: the class of the exchange.
    """

    tool_names: ClassVar[tuple[Path, ...]]
    other_names: ClassVar[tuple[Path, ...]]
    history: ClassVar[str] = "messages"
    exchange: ClassVar[type[Exchange]]

    def __init__(self, body: bytes) -> None:
        """Parse a body without content coding.

        :raises InvalidRequest: if the body is not a JSON object, or has an unexpected shape.
        """
        self._document = Document(body)
        self._places: dict[str, list[int]] = {}  # the numbers of the history's entries that contain each key
        with expecting(InvalidRequest, _MALFORMED):
            self.keys = tuple(dict.fromkeys(self._find_keys()))

    @expecting(InvalidRequest, _MALFORMED)
    def open(self, offered: Sequence[OfferedTool], memories: Sequence[Memory] = ()) -> Exchange:
        """Add our tools to the client's own, and restore hidden parts into the history.

        :param memories: the memories found by C{keys}, each once.
        :raises InvalidRequest: if the request uses a feature that in-band mode does not support.
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
        if names.ours or document.get("tools"):  # a history with calls requires tools
            for memory in newest(memories, self.keys):
                self._restore(recall(memory), memory.keys)
        unoffered = (f"No action is offered: {why_not}",) if why_not else ()
        return self.exchange(document.settle(), names, (*names.warnings(), *unoffered))

    @classmethod
    def error(cls, message: str, status: int, details: Mapping[str, JSON] = _NO_DETAILS) -> bytes:
        """Return an error document of this protocol. It includes C{details["details"]} if there are any."""
        document = cls.exchange.dialect.describe_error(message, status)
        if "details" in details:
            document["error"]["details"] = plain(details["details"])
        return dump(document).encode("ascii")

    @abstractmethod
    def _describe(self, name: str, tool: OfferedTool) -> JSON:
        """Return the declaration of a tool for the model."""

    @abstractmethod
    def _why_not(self) -> str:
        """Return why none of our tools can be offered in this request, or an empty text if they can.

        :raises InvalidRequest: if the request cannot be served at all.
        """

    @abstractmethod
    def _entry_keys(self, entry: Any) -> Iterable[str]:
        """Yield the identifiers of the earlier reply to which an entry of the client's history belongs."""

    @abstractmethod
    def _restore(self, rounds: Sequence[dict[str, Any]], keys: Sequence[str]) -> None:
        """Restore the hidden parts of an earlier reply into the history.

        :param rounds: the stored responses of the provider that made up the reply.
        :param keys: the identifiers of the reply, which its entries in the history have.
        """

    def _find_keys(self) -> Iterable[str]:
        """Yield the identifiers of earlier replies in the history that the client sent."""
        entries = self._document.get(self.history)
        for number, entry in enumerate(entries if isinstance(entries, list) else ()):
            for key in self._entry_keys(entry):
                self._places.setdefault(key, []).append(number)
        yield from self._places

    def _find_last(self, keys: Sequence[str]) -> tuple[Span | None, list[Span]]:
        """Return the last entry of the history that has one of the identifiers C{keys}, and the entries after it.

        Return None instead of the entry if there is none, or if it also has other identifiers: the client merged
        several replies into it.
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
    """Return an error text if a request forces a call but has no tools of its own, else an empty text."""
    choice = document.get("tool_choice")
    kind = choice.get("type") if isinstance(choice, dict) else choice
    if kind in ("required", "any") and not document.get("tools"):
        return "the client requires a call, and has no tools of its own."
    return ""


def newest(memories: Sequence[Memory], keys: Iterable[str]) -> list[Memory]:
    """Return the memories; of several that share a key, only the newest. Some providers reuse identifiers.

    :param keys: the keys of the history. Other keys of the memories, such as that of a whole response, are ignored.
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
    """Insert texts between the elements of an array.

    :param groups: the new contents of the array, in order. None stands for the array's next present element.
    :param between: for each boundary between two groups, a text that closes the array and opens another one for the
        next group.
    :param keep: True to keep the present elements. If False, the groups contain no None.
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
    """Insert the results of our calls among the client's results, in the order of the calls.

    :param theirs: the client's results by the calls' identifiers.
    :param mine: the texts of our results by the calls' identifiers.
    :param after: the position for results at the end.
    """
    first = {call: place for place, call in reversed([*enumerate(order)])}
    last = {call: place for place, call in enumerate(order)}
    # For each of the client's results, the latest call up to it. Ours goes before the first result with a later call.
    reached = [*accumulate((last.get(call, -1) for call, _ in theirs), max)]
    for call, text in mine:
        at = bisect_right(reached, first[call])
        if at == len(theirs):
            document.insert(after, f",{text}")
        else:
            document.insert(theirs[at][1].start, f"{text},")
