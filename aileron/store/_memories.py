"""What is remembered beside the runs, over SQLite: texts that were trusted, watermarks, flags of bindings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from attrs import frozen
from zope.interface import implementer

from aileron.interfaces import IBindingFlags, IContents, IWatermarks
from aileron.values import BindingFlag, Event, digest_of_bytes

from . import _binding_flags_table as flags_table
from . import _trusted_texts_table as texts_table
from . import _watermarks_table as watermarks_table
from ._batch import Batch
from ._chain import Seals, keep
from ._readers import Readers
from ._shield import shielded
from ._writer import Writer


@implementer(IContents)
@frozen
class SQLiteContents:
    """See L{IContents}."""

    _writer: Writer
    _readers: Readers

    async def put(self, text: str) -> str:
        """See L{IContents.put}."""
        digest = _digest_of(text)
        await shielded(self._writer.write(texts_table.put, digest, text))
        return digest

    async def get(self, digest: str) -> str | None:
        """See L{IContents.get}."""
        text = await self._readers.read(texts_table.get, digest)
        return text if text is not None and _digest_of(text) == digest else None


@implementer(IWatermarks)
@frozen
class SQLiteWatermarks:
    """See L{IWatermarks}."""

    _writer: Writer
    _readers: Readers

    async def all(self) -> dict[str, str]:
        """See L{IWatermarks.all}."""
        return await self._readers.read(watermarks_table.select)

    async def put(self, name: str, value: str) -> None:
        """See L{IWatermarks.put}."""
        await shielded(self._writer.write(watermarks_table.put, name, value))


@implementer(IBindingFlags)
@frozen
class SQLiteBindingFlags:
    """See L{IBindingFlags}."""

    _writer: Writer
    _readers: Readers
    _seals: Seals

    async def all(self) -> Mapping[str, BindingFlag]:
        """See L{IBindingFlags.all}."""
        return await self._readers.read(flags_table.select)

    async def put(self, flag: BindingFlag, events: Sequence[Event]) -> None:
        """See L{IBindingFlags.put}."""
        await shielded(self._writer.write(_raise_flag, self._seals, flag, tuple(events)))


def _raise_flag(batch: Batch, seals: Seals, flag: BindingFlag, events: Sequence[Event]) -> None:
    flags_table.put(batch, (flag,))
    keep(batch, seals, events)


def _digest_of(text: str) -> str:
    return digest_of_bytes(text.encode("utf-8"))
