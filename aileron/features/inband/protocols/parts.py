"""One response of a provider as it comes: its parts, what belongs to none, and what is held of it."""

from __future__ import annotations

from typing import Any

from attrs import Factory, define

from aileron.features.inband._turns import CallResult

from .events import StreamEvent

ARGUMENTS = "arguments"
EVENT_BYTES = 512
"""The bytes that a part of a reply takes, or an event that is held, beside its content."""


class Texts:
    """Texts that come in pieces, each by its name.

    :ivar size: the characters of all.
    """

    def __init__(self) -> None:
        self._pieces: dict[str, list[str]] = {}
        self.size = 0

    def add(self, name: str, piece: str) -> None:
        """Add a piece."""
        self._pieces.setdefault(name, []).append(piece)
        self.size += len(piece)

    def joined(self) -> dict[str, str]:
        """Return the texts as far as they came."""
        return {name: "".join(pieces) for name, pieces in self._pieces.items()}


@define
class ReplyPart:
    """A part of a response: a tool call, a content block or an output item.

    :ivar value: its JSON as it began; L{texts} are what came since.
    :ivar shown: its place in what the client is sent.
    :ivar done: whether the provider said that it is complete, where the protocol says that.
    """

    value: dict[str, Any]
    ours: bool = False
    texts: Texts = Factory(Texts)
    shown: int = -1
    done: bool = False

    @property
    def decided(self) -> bool:
        """True once it is known to be ours or the client's."""
        return self.ours or self.shown >= 0

    @property
    def written(self) -> str:
        """The arguments of a call."""
        return self.texts.joined().get(ARGUMENTS, "")


@define
class Round:
    """One response of the provider.

    :ivar message: what belongs to no part; L{texts} likewise.
    :ivar stop: why the model stopped; empty: it has not.
    :ivar held: the events of its end, which the client gets if this is the last round.
    :ivar results: of the calls of ours, in order.
    :ivar notes: of the protocol, while it reads.
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
        """List the calls of ours."""
        return [part for part in self.parts.values() if part.ours]

    def list_shown(self) -> list[ReplyPart]:
        """List the others."""
        return [part for part in self.parts.values() if not part.ours]
