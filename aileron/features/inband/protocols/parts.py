"""One response of a provider as it arrives: its parts, its other fields, and its held size."""

from __future__ import annotations

from typing import Any

from attrs import Factory, define

from aileron.features.inband._turns import CallResult

from .events import StreamEvent

ARGUMENTS = "arguments"
EVENT_BYTES = 512
"""The bytes of memory that a part of a reply or a held event needs in addition to its content."""


class Texts:
    """Collects texts that arrive in pieces, each under a name.

    :ivar size: the number of characters of all texts.
    """

    def __init__(self) -> None:
        self._pieces: dict[str, list[str]] = {}
        self.size = 0

    def add(self, name: str, piece: str) -> None:
        """Append a piece to the text called C{name}."""
        self._pieces.setdefault(name, []).append(piece)
        self.size += len(piece)

    def joined(self) -> dict[str, str]:
        """Return the texts received so far, each joined from its pieces, by name."""
        return {name: "".join(pieces) for name, pieces in self._pieces.items()}


@define
class ReplyPart:
    """A part of a response: a tool call, a content block or an output item.

    :ivar value: the JSON of the part as it started. L{texts} contain what arrived later.
    :ivar shown: the index in the client's reply, or -1 if the part is not shown.
    :ivar ours: True if the part is a call of our tools.
    :ivar done: True if the provider marked the part as complete, in protocols that do so.
    """

    value: dict[str, Any]
    ours: bool = False
    texts: Texts = Factory(Texts)
    shown: int = -1
    done: bool = False

    @property
    def decided(self) -> bool:
        """Return True if it is known whether the part is a call of one of our tools, or is for the client."""
        return self.ours or self.shown >= 0

    @property
    def written(self) -> str:
        """The arguments of a call, as text."""
        return self.texts.joined().get(ARGUMENTS, "")


@define
class Round:
    """One response of the provider, of the one or several that make up the reply to a client.

    :ivar message: the fields outside of parts. C{texts} are the texts outside of parts.
    :ivar stop: the stop reason, or empty.
    :ivar held: the final events, which the client gets if this is the last response.
    :ivar results: the results of our calls, in order.
    :ivar notes: private data of the protocol's parser.
    """

    parts: dict[int, ReplyPart] = Factory(dict)
    message: dict[str, Any] = Factory(dict)
    texts: Texts = Factory(Texts)
    stop: str = ""
    usage: dict[str, Any] = Factory(dict)
    held: list[StreamEvent] = Factory(list)
    results: list[CallResult] = Factory(list)
    notes: dict[str, Any] = Factory(dict)

    def calls(self) -> list[ReplyPart]:
        """Return the calls of Aileron's own tools in this response."""
        return [part for part in self.parts.values() if part.ours]

    def list_shown(self) -> list[ReplyPart]:
        """Return the parts that are sent to the client: all except the calls of Aileron's own tools."""
        return [part for part in self.parts.values() if not part.ours]
