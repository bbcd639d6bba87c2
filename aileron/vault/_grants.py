"""Standing grants, as they lie in the vault's file."""

from __future__ import annotations

from datetime import datetime

from attrs import evolve
from twisted.internet.interfaces import IReactorTime
from zope.interface import implementer

from aileron.interfaces import IGrants
from aileron.values import Grant, utc

from ._document import Document
from ._grant_book import found, with_end, with_new, with_use
from ._open_file import OpenFile


@implementer(IGrants)
class FileGrants:
    """Grants.  They are told from what was verified, so neither locking nor an altered file changes an answer."""

    def __init__(self, file: OpenFile, clock: IReactorTime) -> None:
        self._file = file
        self._clock = clock

    def all(self) -> tuple[Grant, ...]:
        """See L{IGrants}."""
        return self._file.known.grants if self._file.known is not None else ()

    def get(self, grant_id: str) -> Grant | None:
        """See L{IGrants}."""
        return next((grant for grant in self.all() if grant.id == grant_id), None)

    def put(self, grant: Grant) -> None:
        """See L{IGrants}."""
        _key, document = self._file.opened()
        self._become(document, with_new(document.grants, grant, self._now()))

    def use(self, grant_id: str, sequence: int, head: str) -> Grant:
        """See L{IGrants}."""
        _key, document = self._file.opened()
        used = with_use(document.grants, grant_id, self._now())
        self._file.write(evolve(document, grants=used, sealed=(sequence, head)))
        return found(used, grant_id)

    def revoke(self, grant_id: str, at: datetime) -> Grant:
        """See L{IGrants}."""
        _key, document = self._file.opened()
        ended = with_end(document.grants, grant_id, at)
        self._become(document, ended)
        return found(ended, grant_id)

    def void(self) -> None:
        """See L{IGrants}."""
        _key, document = self._file.opened()
        self._become(document, ())

    def _become(self, document: Document, grants: tuple[Grant, ...]) -> None:
        if grants != document.grants:
            self._file.write(evolve(document, grants=grants))

    def _now(self) -> datetime:
        return utc(self._clock.seconds())
