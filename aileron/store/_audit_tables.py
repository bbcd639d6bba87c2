"""The tables of the audit record: C{audit_events} is the chain, and C{audit_payloads} has the contents of its events.

C{audit_checkpoints} has the signed statements of the chain's end, and C{audit_macs} the MACs of records written while
nothing could be signed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import date, datetime
from typing import TypeAlias

from aileron.model.audit import Actor, Checkpoint, Event, Maced, Record, Row
from aileron.model.queries import MOST_PAGE_BYTES, AuditQuery, DailyWait

from ._dialect import FALSE, Cursor, Insertion, ResultRow, SQLDialect
from ._table import MOMENT, PLAIN, Table, conditions, fit, moment, take_fitting

Digest: TypeAlias = Callable[[str, str], str]
"""A function that returns the digest of a salt and a payload's text."""

EVENTS = Table(
    "audit_events",
    Record,
    {
        "seq": PLAIN,
        "id": PLAIN,
        "type": PLAIN,
        "at": MOMENT,
        "actor_type": PLAIN,
        "actor_id": PLAIN,
        "run_id": PLAIN,
        "session_id": PLAIN,
        "action": PLAIN,
        "connector": PLAIN,
        "failure_class": PLAIN,
        "payload_digest": PLAIN,
        "prev_hash": PLAIN,
        "hash": PLAIN,
    },
    {
        "seq": "sequence",
        "id": "event.id",
        "type": "event.type",
        "at": "event.at",
        "actor_type": "event.actor.type",
        "actor_id": "event.actor.id",
        "run_id": "event.run_id",
        "session_id": "event.session_id",
        "action": "event.action",
        "connector": "event.connector",
        "failure_class": "event.failure_class",
        "prev_hash": "previous_hash",
    },
)
CHECKPOINTS = Table(
    "audit_checkpoints",
    Checkpoint,
    {
        "vault": PLAIN,
        "seq": PLAIN,
        "head": PLAIN,
        "at": PLAIN,
        "previous": PLAIN,
        "key": PLAIN,
        "signature": PLAIN,
    },
    {"seq": "sequence"},
)
_WITH_PAYLOAD = f"SELECT {EVENTS.selection}, salt, payload FROM audit_events LEFT JOIN audit_payloads USING (seq)"
_WITH_MAC = """
    SELECT seq, hash, stretch, mac FROM audit_events LEFT JOIN audit_macs USING (seq)
    WHERE seq > ? ORDER BY seq LIMIT ?
"""
_WAITS = """
    WITH waits AS (
        SELECT substr(ended.at, 1, 10) AS day,
            {seconds} AS seconds
        FROM audit_events AS ended JOIN audit_events AS begun ON begun.run_id = ended.run_id AND begun.type = ?
        {where} GROUP BY ended.seq
    ), ranked AS (
        SELECT day, seconds, row_number() OVER (PARTITION BY day ORDER BY seconds) AS place,
            count(*) OVER (PARTITION BY day) AS number
        FROM waits
    )
    SELECT day, number, max(seconds) FILTER (WHERE place <= (number + 1) / 2) AS median_seconds,
        max(seconds) FILTER (WHERE place <= (number * 9 + 9) / 10) AS slow_seconds
    FROM ranked GROUP BY day, number ORDER BY day
"""
# 0 for a login by a command, and for a logout that ends its own login. 1 for all other events.
_NOT_OF_A_COMMAND = """
    CASE WHEN CASE type
        WHEN 'operator.login' THEN {browser} IN {false}
        WHEN 'operator.logout' THEN {session} = actor_id
    END THEN 0 ELSE 1 END
"""
_PUT_PAYLOAD = Insertion("audit_payloads", ("seq", "salt", "payload"))
_PUT_MAC = Insertion("audit_macs", ("seq", "stretch", "mac"))
_OLDEST_PAYLOADS = "SELECT seq FROM audit_payloads WHERE seq <= ? ORDER BY seq LIMIT ?"
_MOST = 2**63 - 1


def head(cursor: Cursor) -> tuple[int, str] | None:
    """Return the sequence and hash of the newest record, or None if there is none."""
    row = cursor.last_pending("audit_events")
    if row is None:
        cursor.settle("audit_events", "seq", None)  # no record waits
        row = cursor.execute("SELECT seq, hash FROM audit_events ORDER BY seq DESC LIMIT 1").fetchone()
    return None if row is None else (row["seq"], row["hash"])


def hash_at(cursor: Cursor, sequence: int) -> str | None:
    """Return the hash of one record, or None if there is no such record."""
    row = cursor.execute("SELECT hash FROM audit_events WHERE seq = ?", (sequence,)).fetchone()
    return None if row is None else str(row["hash"])


def insert(cursor: Cursor, records: Iterable[Record], payloads: Iterable[tuple[int, str, str]]) -> None:
    """Append records to the chain, and their payloads as sequence, salt and text."""
    EVENTS.insert(cursor, records)
    cursor.insert(_PUT_PAYLOAD, payloads)


def get(cursor: Cursor, digest: Digest, audit_id: str) -> Record | None:
    """Return one record, or None if there is no such record."""
    row = cursor.execute(f"{_WITH_PAYLOAD} WHERE id = ?", (audit_id,)).fetchone()
    return None if row is None else _record(row, digest)


def select(
    cursor: Cursor, digest: Digest, query: AuditQuery, before: int | None
) -> tuple[list[tuple[int, Record]], int]:
    """Return records below the sequence C{before}, newest first, with one more if there is a next page.

    :return: pairs of sequence and record, and the number of records on the page.
    """
    where, values = conditions(
        ("seq < ?", before),
        ("at >= ?", moment(query.since)),
        ("at < ?", moment(query.until)),
        ("type = ?", query.type),
        cursor.dialect.among("type", query.types),
        (f"{_not_of_a_command(cursor.dialect)} = ?", None if query.commands else 1),
        ("action = ?", query.action),
        ("connector = ?", query.connector),
        ("session_id = ?", query.session_id),
        ("run_id = ?", query.run_id),
        ("failure_class = ?", query.failure_class),
    )
    statement = f"{_WITH_PAYLOAD} {where} ORDER BY seq DESC LIMIT ?"
    rows = cursor.execute(statement, (*values, query.limit + 1))
    found = list(take_fitting(rows, _size, query.most_bytes))
    records = [_record(row, digest) for row in found]
    return [(record.sequence, record) for record in records], fit(map(_size, found), query.limit, query.most_bytes)


def _not_of_a_command(dialect: SQLDialect) -> str:
    return _NOT_OF_A_COMMAND.format(
        browser=dialect.text_at("payload", "browser"), session=dialect.text_at("payload", "session"), false=FALSE
    )


def count_daily(cursor: Cursor, since: datetime, types: Sequence[str]) -> list[tuple[date, str, int]]:
    """Return the number of records of these types since then, by day and type, oldest day first."""
    where, values = conditions(("at >= ?", moment(since)), cursor.dialect.among("type", types))
    statement = (
        f"SELECT substr(at, 1, 10) AS day, type, count(*) AS number FROM audit_events {where} "
        "GROUP BY day, type ORDER BY day, type"
    )
    rows = cursor.execute(statement, values)
    return [(date.fromisoformat(row["day"]), row["type"], row["number"]) for row in rows]


def time_daily(cursor: Cursor, since: datetime, begin: str, ends: Sequence[str]) -> list[DailyWait]:
    """Return statistics of how long runs waited for a person, one for each day in UTC since C{since}, oldest day first.

    A wait lasts from a run's first record of type C{begin} to a record by a person with a type in C{ends}. It belongs
    to the day of its end.
    """
    dialect = cursor.dialect
    where, values = conditions(
        ("ended.at >= ?", moment(since)), ("ended.actor_type = ?", "human"), dialect.among("ended.type", ends)
    )
    seconds = dialect.elapsed_seconds("min(begun.at)", "ended.at")
    rows = cursor.execute(_WAITS.format(where=where, seconds=seconds), (begin, *values))
    return [DailyWait(date.fromisoformat(row["day"]), *tuple(row)[1:]) for row in rows]


def after(cursor: Cursor, digest: Digest, sequence: int, limit: int) -> tuple[Record, ...]:
    """Return at most C{limit} records above C{sequence}, oldest first, and no more than fit into a page."""
    return tuple(_record(row, digest) for row in _select_between(cursor, sequence, limit))


def rows(cursor: Cursor, after: int, limit: int, until: int | None = None) -> list[Row]:
    """Return at most C{limit} rows of records above C{after}, up to C{until}, oldest first.

    No more are returned than fit into a page, so there may be fewer.
    """
    return [tuple(row) for row in _select_between(cursor, after, limit, until)]


def _select_between(cursor: Cursor, after: int, limit: int, until: int | None = None) -> list[ResultRow]:
    most = _MOST if until is None else until
    if after >= most:
        return []
    rows = cursor.execute(f"{_WITH_PAYLOAD} WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?", (after + 1, most, limit))
    found = list(take_fitting(rows, _size, MOST_PAGE_BYTES))
    return found[: fit(map(_size, found), limit, MOST_PAGE_BYTES)]


def _size(row: ResultRow) -> int:
    """Return the size of a record's contents in bytes: JSON in ASCII."""
    payload: str | None = row["payload"]
    return 0 if payload is None else len(payload)


def bounds(cursor: Cursor, since: datetime | None, until: datetime | None) -> tuple[int, int]:
    """Return the sequence before the first record at or after C{since}, and that of the last record before C{until}.

    If the clock was set back, records in between may have other times.
    """
    last, _ = head(cursor) or (0, "")
    first = _first(cursor, "at >= ? ORDER BY seq", since)
    end = _first(cursor, "at < ? ORDER BY seq DESC", until)
    return (0 if since is None else last if first is None else first - 1), (last if until is None else end or 0)


def _first(cursor: Cursor, where: str, at: datetime | None) -> int | None:
    row = cursor.execute(f"SELECT seq FROM audit_events WHERE {where} LIMIT 1", (moment(at),)).fetchone()
    return None if row is None else int(row["seq"])


def _record(row: ResultRow, digest: Digest) -> Record:
    kept, salt, payload = EVENTS.read(row), row["salt"], row["payload"]
    event = Event(
        id=kept["id"],
        type=kept["type"],
        at=kept["at"],
        actor=Actor(kept["actor_type"], kept["actor_id"]),
        payload={} if payload is None else json.loads(payload),
        run_id=kept["run_id"],
        session_id=kept["session_id"],
        action=kept["action"],
        connector=kept["connector"],
        failure_class=kept["failure_class"],
    )
    sealed = kept["payload_digest"]
    altered = payload is not None and digest(salt, payload) != sealed
    return Record(kept["seq"], event, kept["prev_hash"], kept["hash"], sealed, salt, altered)


def oldest_payload(cursor: Cursor) -> int | None:
    """Return the sequence of the oldest event that has its payload, or None if there is none."""
    oldest: int | None = cursor.execute("SELECT min(seq) FROM audit_payloads").fetchone()[0]
    return oldest


def delete_payloads(cursor: Cursor, up_to: int, limit: int) -> int:
    """Delete at most C{limit} of the oldest payloads up to C{up_to}, overwrite their bytes, and return their number."""
    with _erasing(cursor):
        return cursor.execute(f"DELETE FROM audit_payloads WHERE seq IN ({_OLDEST_PAYLOADS})", (up_to, limit)).rowcount


@contextmanager
def _erasing(cursor: Cursor) -> Iterator[None]:
    """Overwrite the bytes of rows that the body deletes, if the database can do so at once."""
    if not cursor.dialect.erasing:
        yield
        return
    before, after = cursor.dialect.erasing
    cursor.execute(before)
    try:
        yield
    finally:
        cursor.execute(after)


def checkpoints(cursor: Cursor, after: int, until: int | None = None) -> tuple[Checkpoint, ...]:
    """Return checkpoints of records after the sequence C{after}, up to C{until}, oldest first."""
    most = _MOST if until is None else until
    return CHECKPOINTS.select(cursor, "WHERE seq > ? AND seq <= ? ORDER BY number", after, most)


def insert_macs(cursor: Cursor, macs: Iterable[tuple[int, str, bytes]]) -> None:
    """Insert MACs: the sequence of the record, its locked period, the MAC."""
    cursor.insert(_PUT_MAC, macs)


def first_mac(cursor: Cursor, period: str) -> int | None:
    """Return the sequence of the first record of a locked period, or None if there is none."""
    first: int | None = cursor.execute("SELECT min(seq) FROM audit_macs WHERE stretch = ?", (period,)).fetchone()[0]
    return first


def count_macs(cursor: Cursor, period: str) -> int:
    """Return the number of records of a locked period."""
    return int(cursor.execute("SELECT count(*) FROM audit_macs WHERE stretch = ?", (period,)).fetchone()[0])


def macs_along(cursor: Cursor, after: int, limit: int) -> list[Maced]:
    """Return at most C{limit} records above the sequence C{after}, oldest first, with their MACs if they have one."""
    rows = cursor.execute(_WITH_MAC, (after, limit))
    return [Maced(row["seq"], row["hash"], row["stretch"], row["mac"]) for row in rows]
