"""Who looks on while events are put on record."""

from __future__ import annotations

from collections.abc import Iterable

from zope.interface import Attribute, Interface

from aileron.values import Event


class IWitness(Interface):
    """Sees each event in the transaction that keeps it, and learns when that was committed.

    Everything here is called in the thread that writes, one call at a time; nothing of it may raise.
    """

    attentive = Attribute("Whether L{kept} has to be called after the next commit.")

    def found(end: tuple[int, str]) -> None:
        """The record ends with this, sequence and hash, before more is put behind it: nobody else may write there."""

    def put(end: tuple[int, str]) -> None:
        """It now ends with this.  That may still be undone."""

    def saw(events: Iterable[Event]) -> None:
        """C{events} are being kept.  They may still be undone, and seen again."""

    def mac(sequence: int, sealed: str) -> tuple[str, bytes] | None:
        """While the vault is locked: the stretch that a record belongs to, and the MAC over its hash.

        Asked twice for one sequence, because the first was undone, it answers under the same key.
        """

    def kept(end: tuple[int, str]) -> None:
        """All records up to this one, sequence and hash, are durable."""
