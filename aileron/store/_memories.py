"""Keeps over SQLite what is remembered beside the runs: texts that were trusted, watermarks, flags of bindings."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Mapping, Sequence

from attrs import frozen
from zope.interface import implementer

from aileron.interfaces import IBindingFlags, IWatermarks
from aileron.values import BindingFlag, Event, digest_of_bytes

from ._audit import Seals
from ._readers import Readers, shielded
from ._table import MOMENT, PLAIN, Table
from ._writer import Writer

FLAGS = Table("binding_flags", BindingFlag, {"binding": PLAIN, "revision": PLAIN, "since": MOMENT, "reason": PLAIN})
# The first flag of a revision stays: since when it is so is what counts.
_OTHER_REVISION = f"{FLAGS.overwriting('binding')} WHERE excluded.revision <> binding_flags.revision"


def put_flags(cursor: sqlite3.Cursor, flags: Iterable[BindingFlag]) -> None:
    """Raise flags of bindings, each in the place of one of another revision."""
    FLAGS.insert(cursor, flags, _OTHER_REVISION)


@frozen
class SQLiteContents:
    """Keeps C{trusted_texts}: texts that were trusted once, by digest."""

    _writer: Writer
    _readers: Readers

    async def put(self, text: str) -> str:
        digest = _digest_of(text)
        await shielded(self._writer.write(_put_text, digest, text))
        return digest

    async def get(self, digest: str) -> str | None:
        text = await self._readers.read(_get_text, digest)
        return text if text is not None and _digest_of(text) == digest else None


@implementer(IWatermarks)
@frozen
class SQLiteWatermarks:
    """Keeps C{watermarks}: how far something had come that is kept elsewhere."""

    _writer: Writer
    _readers: Readers

    async def all(self) -> dict[str, str]:
        return await self._readers.read(_select_watermarks)

    async def put(self, name: str, value: str) -> None:
        await shielded(self._writer.write(_put_watermark, name, value))


@implementer(IBindingFlags)
@frozen
class SQLiteBindingFlags:
    """Keeps C{binding_flags}: what must be known of a binding, one flag each."""

    _writer: Writer
    _readers: Readers
    _seals: Seals

    async def all(self) -> Mapping[str, BindingFlag]:
        flags = await self._readers.read(FLAGS.select, "ORDER BY binding")
        return {flag.binding: flag for flag in flags}

    async def put(self, flag: BindingFlag, events: Sequence[Event]) -> None:
        await shielded(self._writer.write(_raise_flag, self._seals, flag, tuple(events)))


def _raise_flag(cursor: sqlite3.Cursor, seals: Seals, flag: BindingFlag, events: Sequence[Event]) -> None:
    put_flags(cursor, (flag,))
    seals.append(cursor, events)


def _put_text(cursor: sqlite3.Cursor, digest: str, text: str) -> None:
    cursor.execute("INSERT OR REPLACE INTO trusted_texts (digest, text) VALUES (?, ?)", (digest, text))


def _get_text(cursor: sqlite3.Cursor, digest: str) -> str | None:
    row = cursor.execute("SELECT text FROM trusted_texts WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else str(row["text"])


def _put_watermark(cursor: sqlite3.Cursor, name: str, value: str) -> None:
    cursor.execute("INSERT OR REPLACE INTO watermarks (name, value) VALUES (?, ?)", (name, value))


def _select_watermarks(cursor: sqlite3.Cursor) -> dict[str, str]:
    return {row["name"]: row["value"] for row in cursor.execute("SELECT name, value FROM watermarks")}


def _digest_of(text: str) -> str:
    return digest_of_bytes(text.encode("utf-8"))
