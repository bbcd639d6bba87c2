"""The control key, and what was done with it, as it lies in the vault's file."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime
from hashlib import sha256

from attrs import evolve
from zope.interface import implementer

from aileron.errors import Conflict
from aileron.interfaces import IControl
from aileron.values import JSON, Mark

from ._control_key import ControlKey
from ._document import Document
from ._open_file import OpenFile


@implementer(IControl)
class FileControl:
    """The control key, derived anew at each use: the data key alone is kept, so that it can be wiped."""

    def __init__(self, file: OpenFile) -> None:
        self._file = file

    def sign(self, statement: Mapping[str, JSON]) -> bytes:
        """See L{IControl}."""
        return self._control_key().sign(statement)

    def verifier(self) -> Callable[[Mapping[str, JSON], bytes | None], Mark]:
        """See L{IControl}.  It holds the control key for as long as its caller holds it."""
        return self._control_key().verify

    def revision(self) -> tuple[str, int]:
        """See L{IControl}."""
        _key, document = self._file.opened()
        return document.vault, document.revision

    def sealed(self) -> tuple[int, str] | None:
        """See L{IControl}."""
        _key, document = self._file.opened()
        return document.sealed

    def seal(self, sequence: int, head: str) -> None:
        """See L{IControl}."""
        _key, document = self._file.opened()
        if document.sealed != (sequence, head):
            self._file.write(evolve(document, sealed=(sequence, head)))

    def spent(self, mark: bytes) -> bool:
        """See L{IControl}."""
        _key, document = self._file.opened()
        return mark.hex() in document.spent

    def spend(self, mark: bytes, until: datetime, sequence: int, head: str) -> None:
        """See L{IControl}.  One that has ended already is remembered until the next write."""
        _key, document = self._file.opened()
        if mark.hex() in document.spent:
            raise Conflict("This decision was used.")
        self._use(document, mark.hex(), until, (sequence, head))

    def outdate(self, run: str, until: datetime, sequence: int, head: str) -> None:
        """See L{IControl}."""
        _key, document = self._file.opened()
        used = _name_of(run)
        self._use(document, used, max(until, document.spent.get(used, until)), (sequence, head))

    def outdated(self, run: str) -> datetime | None:
        """See L{IControl}."""
        _key, document = self._file.opened()
        return document.spent.get(_name_of(run))

    def forgotten(self) -> datetime | None:
        """See L{IControl}."""
        _key, document = self._file.opened()
        return document.forgotten

    def _use(self, document: Document, used: str, until: datetime, sealed: tuple[int, str]) -> None:
        self._file.write(evolve(document, spent={**document.spent, used: until}, sealed=sealed))

    def _control_key(self) -> ControlKey:
        key, _document = self._file.opened()
        return ControlKey.of(key)


def _name_of(run: str) -> str:
    """What a run is remembered by: short and plain, whatever another program may have written for an id."""
    return "run " + sha256(run.encode("utf-8", "surrogatepass")).hexdigest()
