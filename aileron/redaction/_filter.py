"""Sees that no answer brings the key back that was put into its request, and holds back almost nothing for that."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from aileron.model.errors import ExternalApiError

from ._scanner import SecretScanner


class BodyPart(NamedTuple):
    """Bytes of a body.

    :ivar said: whether they are of what it says, and not of its framing.
    """

    data: bytes
    said: bool


class BodyFraming:
    """Takes one body apart as it comes.  It was found to be sound before.

    A trailer counts as what the body says (RFC 9112, section 7.1), and so does all of one that is not chunked.
    """

    __slots__ = ("_left", "_line", "_unframed")

    def __init__(self, *, chunked: bool) -> None:
        self._left = 0
        self._line = b""
        self._unframed = not chunked

    def take(self, data: bytes) -> list[BodyPart]:
        """Return what came of it so far and was not returned yet, but for an unfinished line of its framing."""
        data, self._line, found, position = self._line + data, b"", list[BodyPart](), 0
        while position < len(data):
            end = len(data) if self._unframed else min(len(data), position + self._left)
            said = end > position
            if said:
                self._left -= end - position
            else:
                end = data.find(b"\n", position) + 1
                if not end:
                    self._line = data[position:]
                    break
                self._measure(data[position:end])
            found.append(BodyPart(data[position:end], said))
            position = end
        return found

    def rest(self) -> bytes:
        """Return the line of its framing that was left unfinished, or nothing."""
        return self._line

    def _measure(self, line: bytes) -> None:
        size = line.partition(b";")[0].strip()
        if size:  # else it is the line end that closes a chunk
            self._left = int(size, 16)
            self._unframed = not self._left


_CODED = re.compile(rb"\r\ncontent-encoding:(?![ \t]*+(?:identity[ \t]*+)?\r)", re.IGNORECASE).search


class SecretFilter:
    """Passes one answer on until the key is in it, in any of its usual forms, however it is cut or chunked.

    Held back is only what may yet become a form of the key, and framing that is unfinished.  A provider that wants to
    give the key away can write it in a way that is not usual; it has it anyway.

    :param provider: its name, for messages.
    :param told: called once if the key comes back, with the kind of form that it has then.
    """

    __slots__ = ("_held", "_pieces", "_provider", "_refused", "_scanner", "_told")

    def __init__(self, secret: bytes, provider: str, told: Callable[[str], None]) -> None:
        self._scanner = SecretScanner(secret)
        self._provider = provider
        self._told = told
        self._pieces = BodyFraming(chunked=False)
        self._held: list[BodyPart] = []
        self._refused: ExternalApiError | None = None

    def head(self, head: bytes, *, chunked: bool) -> bytes:
        """Filter the same head, interim or final: it may go on to the client.

        :param chunked: whether a chunked body follows.
        :raises ExternalApiError: it holds the key; or the body is coded, so that nobody could tell what it holds.
        """
        self._refuse_echo(head)
        if _CODED(head):
            raise ExternalApiError(f"{self._provider} compressed its answer though it was asked not to: it was cut.")
        self._pieces = BodyFraming(chunked=chunked)
        return head

    def body(self, data: bytes) -> bytes:
        """Return what may go on to the client of the body, now that C{data} of it came, framing included.

        :param data: of a body that is sound so far.
        :raises ExternalApiError: it holds the key: nothing more goes on, and the client's connection is to be cut.
        """
        self._held += self._pieces.take(data)
        said = b"".join([piece.data for piece in self._held if piece.said])
        self._refuse_echo(said)
        for piece in self._held:
            if not piece.said and b";" in piece.data:  # an extension of a chunk
                self._refuse_echo(piece.data)
        return self._let_go(self._scanner.unfinished(said))

    def rest(self) -> bytes:
        """Return what is still held, once the answer has ended.

        :raises ExternalApiError: the key was in it.
        """
        self._refuse_echo(b"")
        return self._let_go(0) + self._pieces.rest()

    def _refuse_echo(self, data: bytes) -> None:
        if self._refused is None:
            kind = self._scanner.kind_in(data)
            if kind is None:
                return
            self._refused = ExternalApiError(
                f"The answer of {self._provider} held the key that Aileron had put in: it was cut."
            )
            self._told(kind)
        raise self._refused

    def _let_go(self, keep: int) -> bytes:
        """All that is held before the last C{keep} bytes of what the body says."""
        held, kept = self._held, list[BodyPart]()
        while keep:
            piece = held.pop()
            if piece.said and len(piece.data) > keep:
                held.append(BodyPart(piece.data[:-keep], said=True))
                piece = BodyPart(piece.data[-keep:], said=True)
            keep -= len(piece.data) if piece.said else 0
            kept.append(piece)
        self._held = kept[::-1]
        return b"".join([piece.data for piece in held])

    def __repr__(self) -> str:
        """Nothing of the key."""
        return f"<SecretFilter of {self._provider}>"
