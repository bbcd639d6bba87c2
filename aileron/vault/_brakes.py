"""The operator's brakes, as they lie in the vault's file."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import evolve
from zope.interface import implementer

from aileron.interfaces import IBrakes
from aileron.values import OwnCap, Pause

from ._document import Document
from ._open_file import OpenFile


@implementer(IBrakes)
class FileBrakes:
    """Pauses and caps.  It answers from what was verified, so neither locking nor an altered file changes an answer."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file

    def pauses(self) -> tuple[Pause, ...]:
        """See L{IBrakes}."""
        return self._file.known.pauses if self._file.known is not None else ()

    def keep_pauses(self, pauses: Sequence[Pause]) -> None:
        """See L{IBrakes}."""
        _key, document = self._file.opened()
        self._replace(document, evolve(document, pauses=tuple(pauses)))

    def caps(self) -> tuple[OwnCap, ...]:
        """See L{IBrakes}."""
        return self._file.known.caps if self._file.known is not None else ()

    def keep_caps(self, caps: Sequence[OwnCap]) -> None:
        """See L{IBrakes}."""
        _key, document = self._file.opened()
        self._replace(document, evolve(document, caps=tuple(sorted(caps, key=lambda each: each.name))))

    def _replace(self, document: Document, changed: Document) -> None:
        if changed != document:
            self._file.write(changed)
