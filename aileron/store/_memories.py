"""Stores in the database data that does not belong to runs: trusted texts, watermarks, flags of bindings, LLM usage."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import date, timedelta
from typing import TypeAlias

from attrs import astuple, define, field, frozen
from twisted.internet.defer import Deferred, succeed
from twisted.internet.interfaces import IReactorTime
from twisted.logger import Logger
from twisted.python.failure import Failure
from zope.interface import implementer

from aileron.base.json import digest_of_bytes
from aileron.model.audit import Event
from aileron.model.errors import StoreUnavailable
from aileron.model.interfaces.store import IBindingFlags, IWatermarks
from aileron.model.usage import Usage, UsageSum
from aileron.model.vault import BindingFlag

from ._audit import Seals
from ._connections import Readers, shielded
from ._dialect import Cursor
from ._table import MOMENT, PLAIN, Table, conditions
from ._writer import Writer

FLAGS = Table("binding_flags", BindingFlag, {"binding": PLAIN, "revision": PLAIN, "since": MOMENT, "reason": PLAIN})
# The first flag of a revision stays, because its time is that of the problem's start.
_OTHER_REVISION = FLAGS.overwriting("binding", only="excluded.revision <> binding_flags.revision")
WRITE_SECONDS, _DAY_SECONDS = 10.0, 86_400
_FIRST_DAY = date(1970, 1, 1)
_NO_USAGE = Usage()
_Key: TypeAlias = tuple[int, str, str]  # the day since 1970 in UTC, the session or "", and the provider
_COST = "cost_microdollars"  # NULL if unknown, as is a sum of unknown costs
_KEPT_COST = f"llm_usage.{_COST}"
_ADD_USAGE = f"""
    INSERT INTO llm_usage (day, session_id, provider, input, output, cached, {_COST}, calls)
    VALUES (?, ?, ?, ?, ?, ?, ?, ?)
    ON CONFLICT (session_id, day, provider) DO UPDATE SET
        input = llm_usage.input + excluded.input, output = llm_usage.output + excluded.output,
        cached = llm_usage.cached + excluded.cached, calls = llm_usage.calls + excluded.calls,
        {_COST} = coalesce({_KEPT_COST} + excluded.{_COST}, excluded.{_COST}, {_KEPT_COST})
"""
_SUMS = ", ".join(f"CAST(sum({column}) AS bigint)" for column in ("input", "output", "cached", _COST, "calls"))

_PUT_TEXT = """
    INSERT INTO trusted_texts (digest, text) VALUES (?, ?) ON CONFLICT (digest) DO UPDATE SET text = excluded.text
"""
_PUT_WATERMARK = """
    INSERT INTO watermarks (name, value) VALUES (?, ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value
"""

_log = Logger()


def put_flags(cursor: Cursor, flags: Iterable[BindingFlag]) -> None:
    """Insert flags of bindings, each replacing a flag of another revision.

    An earlier flag of the same revision stays.
    """
    FLAGS.insert(cursor, flags, _OTHER_REVISION)


@frozen
class SQLContents:
    """Stores C{trusted_texts}: trusted texts by digest."""

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
class SQLWatermarks:
    """Stores C{watermarks}: named positions in data stored elsewhere."""

    _writer: Writer
    _readers: Readers

    async def all(self) -> dict[str, str]:
        return await self._readers.read(_select_watermarks)

    async def put(self, name: str, value: str) -> None:
        await shielded(self._writer.write(_put_watermark, name, value))

    async def swap(self, name: str, before: str | None, value: str) -> bool:
        return await shielded(self._writer.write(_swap_watermark, name, before, value))


def _swap_watermark(cursor: Cursor, name: str, before: str | None, value: str) -> bool:
    found = cursor.execute("SELECT value FROM watermarks WHERE name = ?", (name,)).fetchone()
    # guard of several daemons: a pause is not lost because two daemons write at once
    #    -> store.test_memories.MemoriesTests.test_swap
    if (None if found is None else found[0]) != before:
        return False
    _put_watermark(cursor, name, value)
    return True


@implementer(IBindingFlags)
@frozen
class SQLBindingFlags:
    """Stores C{binding_flags}: at most one flag for each binding, which describes a problem of the binding."""

    _writer: Writer
    _readers: Readers
    _seals: Seals

    async def all(self) -> Mapping[str, BindingFlag]:
        flags = await self._readers.read(FLAGS.select, "ORDER BY binding")
        return {flag.binding: flag for flag in flags}

    async def put(self, flag: BindingFlag, events: Sequence[Event]) -> None:
        await shielded(self._writer.write(_raise_flag, self._seals, flag, tuple(events)))


@define(eq=False)
class SQLUsage:
    """Stores C{llm_usage}: the summed usage of language model calls by day in UTC, session and provider.

    The sums of a session are deleted with the session. Calls recorded by L{note} are written together: within ten
    seconds, before sums are read, and when the store is closed.
    """

    _writer: Writer
    _readers: Readers
    _clock: IReactorTime
    _noted: dict[_Key, tuple[Usage, int]] = field(factory=dict, init=False)

    def note(self, provider: str, session_id: str | None, usage: Usage | None) -> None:
        """Record one finished call in memory, which takes a microsecond.

        :param session_id: the session, or None if the call belongs to none.
        :param usage: the usage, or None if the response did not state it.
        """
        self._put((int(self._clock.seconds() // _DAY_SECONDS), session_id or "", provider), usage, 1)

    async def of_sessions(self, session_ids: Sequence[str]) -> Mapping[str, UsageSum]:
        await shielded(self.flush())
        return await self._readers.read(_sum_by_session, tuple(session_ids))

    async def daily(self, since: date) -> Mapping[date, UsageSum]:
        await shielded(self.flush())
        sums = await self._readers.read(_sum_usage, "day", ("day >= ?", since.isoformat()))
        return {date.fromisoformat(day): used for day, used in sums.items()}

    def flush(self) -> Deferred[None]:
        """Write the recorded calls. If the database fails, they are written at the next flush."""
        noted, self._noted = self._noted, {}
        if not noted:
            return succeed(None)
        rows = [
            (_name_day(day), session_id, provider, *astuple(usage), calls)
            for (day, session_id, provider), (usage, calls) in noted.items()
        ]
        return self._writer.write(_add_usage, rows).addErrback(self._keep, noted)

    def _put(self, key: _Key, usage: Usage | None, calls: int) -> None:
        if not self._noted:
            self._clock.callLater(WRITE_SECONDS, self.flush)
        before, counted = self._noted.get(key, (_NO_USAGE, 0))
        self._noted[key] = (before if usage is None else before + usage, counted + calls)

    def _keep(self, failure: Failure, noted: Mapping[_Key, tuple[Usage, int]]) -> None:
        failure.trap(StoreUnavailable)  # none of it was written
        for key, used in noted.items():
            self._put(key, *used)
        _log.warn("the usage of LLM calls is not written yet")


def _add_usage(cursor: Cursor, rows: Sequence[tuple[object, ...]]) -> None:
    cursor.executemany(_ADD_USAGE, rows)


def _name_day(day: int) -> str:
    """Return the ISO date of the day with this number since 1970."""
    return (_FIRST_DAY + timedelta(days=day)).isoformat()


def _sum_by_session(cursor: Cursor, session_ids: Sequence[str]) -> dict[str, UsageSum]:
    if not session_ids:
        return {}
    return _sum_usage(cursor, "session_id", cursor.dialect.among("session_id", session_ids))


def _sum_usage(cursor: Cursor, key: str, term: tuple[str, object]) -> dict[str, UsageSum]:
    """Return the sums of the rows that meet the condition C{term}, by the column C{key}."""
    where, values = conditions(term)
    rows = cursor.execute(f"SELECT {key}, {_SUMS} FROM llm_usage {where} GROUP BY {key}", values)
    return {key: UsageSum(Usage(*numbers), calls) for key, *numbers, calls in rows}


def _raise_flag(cursor: Cursor, seals: Seals, flag: BindingFlag, events: Sequence[Event]) -> None:
    put_flags(cursor, (flag,))
    seals.append(cursor, events)


def _put_text(cursor: Cursor, digest: str, text: str) -> None:
    cursor.execute(_PUT_TEXT, (digest, text))


def _get_text(cursor: Cursor, digest: str) -> str | None:
    row = cursor.execute("SELECT text FROM trusted_texts WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else str(row["text"])


def _put_watermark(cursor: Cursor, name: str, value: str) -> None:
    cursor.execute(_PUT_WATERMARK, (name, value))


def _select_watermarks(cursor: Cursor) -> dict[str, str]:
    return {row["name"]: row["value"] for row in cursor.execute("SELECT name, value FROM watermarks")}


def _digest_of(text: str) -> str:
    return digest_of_bytes(text.encode("utf-8"))
