"""Searches a long answer for secrets, piece by piece, and passes on what certainly holds no part of one."""

from __future__ import annotations

from collections.abc import Sequence

from ._escapes import MOST_LAYERS, Undone, find_unfinished, may_be_escaped, undone
from ._scanner import SecretScanner

_MOST_HELD = 64 * 1024
_CONTROL = bytes({*range(0x20), 0x7F} - set(b"\t\n\r"))


class SecretFound(Exception):
    """The error for an answer that holds a secret.

    :ivar kind: the kind of the form that was found.
    """

    def __init__(self, kind: str) -> None:
        super().__init__(kind)
        self.kind = kind


class SecretStream:
    """The body of one answer, which is passed on in pieces until it holds a secret.

    The judgement is that of L{Redactor<aileron.redaction.Redactor>}: in a text, escapes are decoded in up to three
    layers, which may be mixed. In content with control characters, secrets are searched for plain, in UTF-16, in
    hexadecimal and in base64. A text becomes such content at its first control character.

    Bytes that may be the beginning of a secret are held back, at most 64 KiB.

    :param secrets: the secrets.
    """

    __slots__ = ("_held", "_is_text", "_scanner")

    def __init__(self, *secrets: str) -> None:
        self._scanner = SecretScanner(*(each.encode("utf-8") for each in secrets), has_escapes=False)
        self._held = b""
        self._is_text = True

    def take(self, data: bytes) -> bytes:
        """Accept a piece of the body, and return the bytes that may be passed on now.

        :raises SecretFound: if the body holds a secret. Pass on nothing more.
        """
        self._is_text = self._is_text and len(data) == len(data.translate(None, _CONTROL))
        data = self._held + data if self._held else data
        held = min(self._search_text(data) if self._is_text else self._search_binary(data), _MOST_HELD)
        self._held = data[len(data) - held :]
        return data[: len(data) - held]

    def rest(self) -> bytes:
        """Return the bytes that are still held back after the end of the body."""
        held, self._held = self._held, b""
        return held

    def _search_binary(self, data: bytes) -> int:
        """Return how many bytes at the end of C{data} may be the beginning of a secret.

        :raises SecretFound: if there is a secret.
        """
        without = data.replace(b"\0", b"")
        self._refuse(without)
        return _find_length(data, self._scanner.unfinished(without))

    def _search_text(self, data: bytes) -> int:
        """Return how many bytes at the end of C{data} may be the beginning of a secret, in any layer of escapes.

        :raises SecretFound: if there is a secret.
        """
        text = data.decode("latin-1")  # so that a character is a byte
        first, layers = len(data), list[Undone]()
        while True:
            content = text.encode(
                "latin-1", "replace"
            )  # an escape may stand for a character that Latin-1 does not have
            self._refuse(content)
            end = find_unfinished(text)
            start = end - self._scanner.unfinished(content[:end])
            if start < len(text):
                first = min(first, _find_source(start, layers))
            deeper = undone(text[:end]) if len(layers) < MOST_LAYERS and may_be_escaped(text) else None
            if deeper is None:
                return len(data) - first
            layers.append(deeper)
            text = deeper.text

    def _refuse(self, content: bytes) -> None:
        kind = self._scanner.kind_in(content)
        if kind is not None:
            raise SecretFound(kind)

    def __repr__(self) -> str:
        """Return a representation without the secrets."""
        return "<SecretStream>"


def _find_source(index: int, layers: Sequence[Undone]) -> int:
    for each in reversed(layers):
        index = each.source(index)
    return index


def _find_length(data: bytes, count: int) -> int:
    """Return how many bytes at the end of C{data} hold its last C{count} bytes that are not NUL."""
    at = len(data)
    while count:
        at = len(data[:at].rstrip(b"\0")) - 1
        count -= 1
    return len(data) - at
