"""Looks for a secret in bytes that come in pieces and are to be passed on at once."""

from __future__ import annotations

from ._forms import written_forms


class SecretScanner:
    """Finds the forms of one secret as they are written.

    It does not undo escapes as L{Redactor<aileron.redaction.Redactor>} does.  That would have to hold back every text
    that might go on as an escape, and takes several times the search itself: what is streamed would come late, and each
    piece of it cost as much as relaying it.  So each usual writing is looked for by itself, and a mixture of escapes
    passes.

    :param secret: UTF-8.
    """

    __slots__ = ("_ending", "_forms")

    def __init__(self, secret: bytes) -> None:
        found = [(_bytes(form.text), form.kind) for form in written_forms(secret.decode("utf-8"))]
        self._forms = sorted(found, key=lambda form: len(form[0]))
        self._ending: dict[int, tuple[bytes, ...]] = {}

    def kind_in(self, data: bytes) -> str | None:
        """Return the kind of a form that is in C{data}; L{None}: there is none."""
        most = len(data)
        for text, kind in self._forms:
            if len(text) > most:
                break
            if text in data:
                return kind
        return None

    def unfinished(self, data: bytes) -> int:
        """Count the bytes at the end of C{data} that may be the beginning of a form."""
        if not data:
            return 0
        last = data[-1]
        if last not in self._ending:
            self._ending[last] = tuple([text for text, _ in self._forms if last in text[:-1]])
        return max((_overlap(data, text) for text in self._ending[last]), default=0)

    def __repr__(self) -> str:
        """Nothing of the secret."""
        return "<SecretScanner>"


def _bytes(text: str) -> bytes:
    """Return a form as it is sent: what undoing an escape leaves may be a byte of its own, or a character."""
    try:
        return text.encode("latin-1")
    except UnicodeEncodeError:
        return text.encode("utf-8")


def _overlap(data: bytes, text: bytes) -> int:
    """Measure the longest end of C{data} with which C{text} begins, but for the whole of it."""
    start = data.find(text[:1], max(0, len(data) - len(text) + 1))
    while start >= 0:
        if text.startswith(data[start:]):
            return len(data) - start
        start = data.find(text[:1], start + 1)
    return 0
