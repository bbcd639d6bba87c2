"""Searches for a secret in bytes that arrive in pieces and are relayed at once."""

from __future__ import annotations

from ._escapes import undone
from ._forms import forms, written_forms


class SecretScanner:
    """A search for the encoded forms of secrets in a stream.

    Unlike L{Redactor<aileron.redaction.Redactor>}, it does not decode escapes.  Decoding would hold back all bytes that
    might continue an escape, and takes several times as long as the search itself, so that streams would arrive late.
    Each common encoding is searched for instead, and a mixture of escapes is not found.

    :param secrets: the secrets in UTF-8.
    :param has_escapes: False if escapes in the searched bytes are decoded. Then they are searched for only in secrets
        that look escaped themselves.
    """

    __slots__ = ("_ending", "_forms")

    def __init__(self, *secrets: bytes, has_escapes: bool = True) -> None:
        found: dict[bytes, str] = {}
        for secret in (each.decode("utf-8") for each in secrets):
            for form in written_forms(secret) if has_escapes or undone(secret) is not None else forms(secret):
                found.setdefault(_bytes(form.text), form.kind)
        self._forms = sorted(found.items(), key=lambda form: len(form[0]))
        self._ending: dict[int, tuple[bytes, ...]] = {}

    def kind_in(self, data: bytes) -> str | None:
        """Return the kind of a form in C{data}, or None if C{data} holds no form."""
        most = len(data)
        for text, kind in self._forms:
            if len(text) > most:
                break
            if text in data:
                return kind
        return None

    def unfinished(self, data: bytes) -> int:
        """Return the number of bytes at the end of C{data} that may be the beginning of a form."""
        if not data:
            return 0
        last = data[-1]
        if last not in self._ending:
            self._ending[last] = tuple([text for text, _ in self._forms if last in text[:-1]])
        return max((_overlap(data, text) for text in self._ending[last]), default=0)

    def __repr__(self) -> str:
        """Return a representation without the secret."""
        return "<SecretScanner>"


def _bytes(text: str) -> bytes:
    """Encode a form as it is sent.

    In Latin-1 if possible, because a decoded escape may be a single byte, else in UTF-8.
    """
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8")


def _overlap(data: bytes, text: bytes) -> int:
    """Return the length of the longest end of C{data} that C{text} begins with, excluding the complete C{text}."""
    start = data.find(text[:1], max(0, len(data) - len(text) + 1))
    while start >= 0:
        if text.startswith(data[start:]):
            return len(data) - start
        start = data.find(text[:1], start + 1)
    return 0
