"""The record: appended to, read, seen while it is written, kept as a whole, and signed."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Sequence
from datetime import datetime

from zope.interface import Attribute, Interface

from aileron.values import AuditQuery, Checkpoint, Event, Maced, Page, Record, Row, Verdict


class IAudit(Interface):
    """An append-only, hash-chained record.

    What changes a run is recorded with the change, by L{IRuns}; this is for the rest.
    """

    async def append(*events: Event) -> None:
        """Keep C{events}, in order, in one transaction; durable when it returns.

        What it records has happened: cancelling ends the wait, and never takes them back.

        :raises StoreUnavailable: nothing of it was kept.
        """

    async def head() -> tuple[int, str] | None:
        """Sequence and hash of the newest record, or L{None}."""

    async def at(sequence: int) -> str | None:
        """Return the hash of the record of that number, or L{None}: there is none."""

    async def get(audit_id: str) -> Record | None:
        """One record, or L{None}."""

    async def news(sequence: int, seconds: float) -> tuple[Record, ...]:
        """Wait for records after that one, oldest first, at most 256; after C{seconds}, none.

        Many may wait.  Cancelling ends the wait.
        """

    async def list(query: AuditQuery) -> Page[Record]:
        """List records, newest first.

        :raises InvalidRequest: a cursor that this list did not give.
        """


class IArchive(Interface):
    """The whole record, as opposed to one event of it.

    Every method raises L{aileron.errors.StoreUnavailable} where the database refuses.
    """

    async def rows(after: int, limit: int, until: int | None = None) -> Sequence[Row]:
        """List records above the sequence C{after}, up to C{until}, oldest first, at most C{limit}."""

    async def bounds(since: datetime | None, until: datetime | None) -> tuple[int, int]:
        """Find the sequence before the first record at or after C{since}, and of the last before C{until}."""

    async def checkpoints(after: int = 0, until: int | None = None) -> Sequence[Checkpoint]:
        """Those about records above C{after}, up to C{until}, in their order."""

    async def latest_checkpoint() -> Checkpoint | None:
        """Return the newest, or L{None}."""

    async def put_checkpoint(checkpoint: Checkpoint) -> None:
        """Keep C{checkpoint} after all others; durable when it returns."""

    async def first_of(period: str) -> int | None:
        """Find the sequence of the first record of a locked period; L{None}: there is none."""

    async def count_of(period: str) -> int:
        """Count the records of a locked period."""

    async def macs(after: int, limit: int) -> Sequence[Maced]:
        """List records above the sequence C{after}, oldest first, at most C{limit}, with their MACs."""

    async def oldest_contents() -> int | None:
        """Return the sequence of the oldest record that has its contents, or L{None}: none has."""

    async def prune(up_to: int, limit: int) -> int:
        """Delete the contents of at most C{limit} of the oldest records up to the sequence C{up_to}, for good.

        :return: how many; 0: none is left.
        """


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


class ICheckpointSigner(Interface):
    """Signs how far the record came, and tells whether it is what it was.

    Its attributes are for showing.
    """

    fingerprint = Attribute("Of the public key, or None: there is none yet.")
    public_key = Attribute("By which checkpoints are signed, in hexadecimal, or None: there is none yet.")
    latest = Attribute("The newest L{Checkpoint}, or None.")
    head = Attribute(
        "Sequence and hash of the newest record that this life wrote, or else found when it began; None: there is none."
    )
    tampered = Attribute("How many signs of tampering were put on record in this life.")

    async def tell_locked() -> None:
        """Hand the record over to the time in which nothing can be signed; before the vault is locked.  Twice is safe.

        :raises StoreUnavailable: some of it could not be written.
        """

    async def verify() -> Verdict:
        """Look at the whole record, slice by slice: others are served meanwhile.

        :raises StoreUnavailable: it cannot be read.
        """

    def export(since: datetime | None, until: datetime | None) -> AsyncIterator[bytes]:
        """Export the record of a time as lines of JSON, read as they are taken; in constant memory.

        :raises StoreUnavailable: (while it is taken) it cannot be read.
        """
