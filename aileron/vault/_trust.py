"""The operator's word about files, as it lies in the vault's file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import evolve
from zope.interface import implementer

from aileron.interfaces import ITrust
from aileron.values import Trusted, TrustKind

from ._document import Document, trust_key
from ._open_file import OpenFile


@implementer(ITrust)
class FileTrust:
    """Trust.  It answers from what was verified, so neither locking nor an altered file changes an answer."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file
        self._words: tuple[Trusted, ...] = ()
        self._by_name: Mapping[tuple[TrustKind, str], Trusted] = {}
        self._generation = 0

    def generation(self) -> int:
        """See L{ITrust}."""
        self._refresh()
        return self._generation

    def find(self, kind: TrustKind, name: str) -> Trusted | None:
        """See L{ITrust}."""
        self._refresh()
        return self._by_name.get((kind, name))

    def trusted(self) -> tuple[Trusted, ...]:
        """See L{ITrust}."""
        self._refresh()
        return self._words

    def put(self, words: Sequence[Trusted]) -> None:
        """See L{ITrust}."""
        _key, document = self._file.opened()
        self._become(document, document.trusting(words))

    def remove(self, kind: TrustKind, name: str) -> None:
        """See L{ITrust}."""
        _key, document = self._file.opened()
        self._become(document, document.distrusting(kind, name))

    def void(self) -> None:
        """See L{ITrust}."""
        _key, document = self._file.opened()
        self._become(document, evolve(document, trust=()))

    def _become(self, document: Document, changed: Document) -> None:
        if changed.trust != document.trust:
            self._file.write(changed)

    def _refresh(self) -> None:
        words = self._file.known.trust if self._file.known is not None else ()
        if words is self._words:
            return
        if words != self._words:
            self._generation += 1
            self._by_name = {trust_key(word): word for word in words}
        self._words = words
