"""The database as a whole, and what it remembers beside runs, sessions and the record."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from zope.interface import Attribute, Interface

from aileron.values import BindingFlag, Event

from ._audit import IArchive, IAudit
from ._runs import IRuns
from ._sessions import ISessions


class IStore(Interface):
    """One database, by what is kept in it.  Another database is another implementation of this and of what it names.

    What is written through one of its parts is one transaction, and the parts see what the others committed.
    """

    runs: IRuns = Attribute("Runs, their approvals, steps and attempts: L{IRuns}.")
    audit: IAudit = Attribute("The record, event by event: L{IAudit}.")
    archive: IArchive = Attribute("The record as a whole: L{IArchive}.")
    sessions: ISessions = Attribute("Agents' sessions: L{ISessions}.")
    contents: IContents = Attribute("Texts that were trusted once: L{IContents}.")
    watermarks: IWatermarks = Attribute("How far other things had come: L{IWatermarks}.")
    flags: IBindingFlags = Attribute("Flags of bindings: L{IBindingFlags}.")

    async def open() -> None:
        """Make the database, or bring it up to this version's schema; before anything else is used.

        :raises NewerDatabase: a newer version wrote it; it is untouched.
        :raises ForeignDatabase: it is no database of Aileron's; it is untouched.
        :raises StoreUnavailable: it cannot be used now.
        """

    async def close() -> None:
        """Take no more, let what was taken become durable, and let go of the database.  Twice is safe."""


class IContents(Interface):
    """Texts by their digest, to show what changed.  Nothing follows from what lies here."""

    async def put(text: str) -> str:
        """Keep C{text}; its digest.  Twice is safe.

        :raises StoreUnavailable: it was not kept.
        """

    async def get(digest: str) -> str | None:
        """The text of exactly this digest, or L{None}: unknown, or altered."""


class IWatermarks(Interface):
    """Short texts by name: how far something had come that could be put back behind our back."""

    async def all() -> dict[str, str]:
        """Every one that was put."""

    async def put(name: str, value: str) -> None:
        """Keep C{value}, in the place of an earlier one; durable when it returns.

        :raises StoreUnavailable: it was not kept.
        """


class IBindingFlags(Interface):
    """Flags of bindings; L{IRuns} raises those of runs, with the events that say why."""

    async def all() -> Mapping[str, BindingFlag]:
        """By the binding's name.  One of an earlier revision says nothing of the present one."""

    async def put(flag: BindingFlag, events: Sequence[Event]) -> None:
        """Raise a flag that no run did, and keep the events that say why, in one transaction.

        The first flag of a revision stays.  Cancelling ends the wait, and never takes it back.

        :raises StoreUnavailable: nothing of it was kept.
        """
