"""How the record is signed, verified and exported."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import datetime

from zope.interface import Attribute, Interface

from aileron.values import Verdict


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
        """The record of a time as lines of JSON, read as they are taken; in constant memory.

        :raises StoreUnavailable: (while it is taken) it cannot be read.
        """
