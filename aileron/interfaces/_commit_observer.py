"""How the store lets others see what is put on record."""

from __future__ import annotations

from collections.abc import Iterable

from zope.interface import Attribute, Interface

from aileron.values import Event


class ICommitObserver(Interface):
    """Sees each event in the transaction that keeps it, and learns when that was committed.

    Everything here is called in the thread that writes, one call at a time; nothing of it may raise.
    """

    wants_commit = Attribute("Whether L{note_commit} has to be called after the next commit.")

    def compare_end(end: tuple[int, str]) -> None:
        """Compare the end of the record, sequence and hash, before more is put there: nobody else may write."""

    def expect_end(end: tuple[int, str]) -> None:
        """Expect this end from now on.  That may still be undone."""

    def note_events(events: Iterable[Event]) -> None:
        """Note that C{events} are being kept.  They may still be undone, and seen again."""

    def make_mac(sequence: int, sealed: str) -> tuple[str, bytes] | None:
        """Make the MAC over a record's hash while the vault is locked; it comes with the locked period it belongs to.

        Asked twice for one sequence, because the first was undone, it answers under the same key.
        """

    def note_commit(end: tuple[int, str]) -> None:
        """Note that all records up to this one, sequence and hash, are durable."""
