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

    def saw(events: Iterable[Event]) -> None:
        """C{events} are being kept.  They may still be undone, and seen again."""

    def mac(sequence: int, sealed: str) -> tuple[str, bytes] | None:
        """While the vault is locked: the stretch that a record belongs to, and the MAC over its hash.

        Asked twice for one sequence, because the first was undone, it answers under the same key.
        """

    def kept(last: int) -> None:
        """All records up to the sequence C{last} are durable."""
