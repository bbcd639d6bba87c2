"""What a scripted model answers, before a provider's format gives it bytes."""

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

import attrs


@attrs.frozen
class ToolCall:
    """One call as it goes over the wire.

    :param arguments: JSON text.
    """

    id: str
    name: str
    arguments: str

    @property
    def halves(self) -> tuple[str, str]:
        """The arguments in two pieces, as a stream brings them."""
        half = len(self.arguments) // 2
        return self.arguments[:half], self.arguments[half:]


@attrs.frozen
class Answer:
    """Text, tool calls, or both.

    :param pause_seconds: between events, if it is streamed.
    :param cut_after: so many events are sent, then the connection is closed.
    """

    model: str
    text: str = ""
    calls: Sequence[ToolCall] = ()
    pause_seconds: float = 0.0
    cut_after: int | None = None

    @property
    def words(self) -> list[str]:
        """The text word by word, spaces included, as a stream brings it."""
        return re.findall(r"\s*\S+\s*$|\s*\S+", self.text)


class WireFormat(Protocol):
    """How one provider writes an answer."""

    def whole(self, answer: Answer) -> bytes:
        """The answer as one JSON document."""

    def stream(self, answer: Answer) -> Iterator[bytes]:
        """The answer as server-sent events."""

    def refusal(self, message: str, status: int) -> bytes:
        """An error as one JSON document."""

    def models(self, names: Sequence[str]) -> bytes:
        """The list of models."""
