"""Stops responses that return the key of their request, and delays other bytes as little as possible."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from aileron.model.errors import ExternalApiError

from ._scanner import SecretScanner


class BodyPart(NamedTuple):
    """A piece of a message body.

    :ivar said: True for content, False for chunk framing.
    """

    data: bytes
    said: bool


class BodyFraming:
    """An incremental splitter of one valid body into content and chunk framing.

    A trailer counts as content (RFC 9112, section 7.1), and so does everything in a body that is not chunked.
    """

    __slots__ = ("_left", "_line", "_unframed")

    def __init__(self, *, chunked: bool) -> None:
        self._left = 0
        self._line = b""
        self._unframed = not chunked

    def take(self, data: bytes) -> list[BodyPart]:
        """Return the content and framing in C{data}.

        An incomplete line of framing is held back until the next call.
        """
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
        """Return the incomplete line of framing that is held back, or empty bytes."""
        return self._line

    def _measure(self, line: bytes) -> None:
        size = line.partition(b";")[0].strip()
        if size:  # an empty line ends a chunk
            self._left = int(size, 16)
            self._unframed = not self._left


_CODED = re.compile(rb"\r\ncontent-encoding:(?![ \t]*+(?:identity[ \t]*+)?\r)", re.IGNORECASE).search


class SecretFilter:
    """A filter that relays one response until the key appears in it, in any common form, across pieces and chunks.

    Only bytes that may begin a form of the key, and incomplete framing, are held back.  A provider can leak the key in
    an uncommon encoding, but the provider has the key anyway.

    :param provider: the provider's name, for messages.
    :param told: called once if the key appears, with the kind of its form.
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
        """Return C{head}, the head of an interim or final response, if it may be relayed to the client.

        :param chunked: whether a chunked body follows.
        :raises ExternalApiError: if the head holds the key, or the body is compressed and cannot be inspected.
        """
        self._refuse_echo(head)
        if _CODED(head):
            raise ExternalApiError(f"{self._provider} compressed its answer though it was asked not to: it was cut.")
        self._pieces = BodyFraming(chunked=chunked)
        return head

    def body(self, data: bytes) -> bytes:
        """Accept C{data} of the body, including framing, and return the bytes that may be relayed to the client now.

        :param data: the next bytes of a valid body.
        :raises ExternalApiError: if the body holds the key. Relay nothing more and close the client's connection.
        """
        self._held += self._pieces.take(data)
        said = b"".join([piece.data for piece in self._held if piece.said])
        self._refuse_echo(said)
        for piece in self._held:
            if not piece.said and b";" in piece.data:  # a chunk extension
                self._refuse_echo(piece.data)
        return self._let_go(self._scanner.unfinished(said))

    def rest(self) -> bytes:
        """Return the bytes that are still held back after the end of the response.

        :raises ExternalApiError: if the response held the key.
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
        """Return the bytes that are held back, except for the last C{keep} bytes of content."""
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
        """Return a representation without the key."""
        return f"<SecretFilter of {self._provider}>"
