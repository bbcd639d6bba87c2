"""What a body says, told from its framing; the bytes of both stay as they are."""

from __future__ import annotations

from typing import NamedTuple, Protocol


class Piece(NamedTuple):
    """Bytes of a body.

    :ivar said: whether they are of what it says, and not of its framing.
    """

    data: bytes
    said: bool


class Pieces(Protocol):
    """Takes one body apart as it comes.  It was found to be sound before."""

    def take(self, data: bytes) -> list[Piece]:
        """What came of it so far and was not returned yet, but for an unfinished line of its framing."""

    def rest(self) -> bytes:
        """The line of its framing that was left unfinished, or nothing."""


class Whole:
    """A body without framing of its own."""

    __slots__ = ()

    def take(self, data: bytes) -> list[Piece]:
        """See L{Pieces}."""
        return [Piece(data, said=True)]

    def rest(self) -> bytes:
        """See L{Pieces}."""
        return b""


class Chunks:
    """A chunked body; its trailer counts as what it says (RFC 9112, section 7.1)."""

    __slots__ = ("_in_trailer", "_left", "_line")

    def __init__(self) -> None:
        self._left = 0
        self._line = b""
        self._in_trailer = False

    def take(self, data: bytes) -> list[Piece]:
        """See L{Pieces}."""
        data, self._line, found, position = self._line + data, b"", list[Piece](), 0
        while position < len(data):
            end = len(data) if self._in_trailer else min(len(data), position + self._left)
            said = end > position
            if said:
                self._left -= end - position
            else:
                end = data.find(b"\n", position) + 1
                if not end:
                    self._line = data[position:]
                    break
                self._measure(data[position:end])
            found.append(Piece(data[position:end], said))
            position = end
        return found

    def rest(self) -> bytes:
        """See L{Pieces}."""
        return self._line

    def _measure(self, line: bytes) -> None:
        size = line.partition(b";")[0].strip()
        if size:  # else it is the line end that closes a chunk
            self._left = int(size, 16)
            self._in_trailer = not self._left
