"""The record as a whole: read along, signed, and its old contents deleted."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from zope.interface import Interface

from aileron.values import Checkpoint, Maced, Row


class IArchive(Interface):
    """What is done with the whole record rather than with one event of it.

    Every method raises L{aileron.errors.StoreUnavailable} where the database refuses.
    """

    async def rows(after: int, limit: int, until: int | None = None) -> Sequence[Row]:
        """Records above the sequence C{after}, up to C{until}, oldest first, at most C{limit}."""

    async def bounds(since: datetime | None, until: datetime | None) -> tuple[int, int]:
        """The sequence before the first record at or after C{since}, and of the last before C{until}."""

    async def checkpoints(after: int = 0, until: int | None = None) -> Sequence[Checkpoint]:
        """Those about records above C{after}, up to C{until}, in their order."""

    async def latest_checkpoint() -> Checkpoint | None:
        """The newest, or L{None}."""

    async def put_checkpoint(checkpoint: Checkpoint) -> None:
        """Keep C{checkpoint} after all others; durable when it returns."""

    async def first_of(period: str) -> int | None:
        """The sequence of the first record of a locked period, or L{None}: there is none."""

    async def count_of(period: str) -> int:
        """How many records of a locked period there are."""

    async def macs(after: int, limit: int) -> Sequence[Maced]:
        """Records above the sequence C{after}, oldest first, at most C{limit}, with their MACs."""

    async def oldest_contents() -> int | None:
        """The sequence of the oldest record that has its contents, or L{None}: none has."""

    async def prune(up_to: int, limit: int) -> int:
        """Delete the contents of at most C{limit} of the oldest records up to the sequence C{up_to}, for good.

        :return: how many; 0: none is left.
        """
