"""C{audit_events}: the chain."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any, TypeAlias

from aileron.values import Actor, AuditQuery, Event, Link, Record, Row, from_timestamp, timestamp

from ._batch import insert_all
from ._columns import among, conditions, of_moment, one_of

Digest: TypeAlias = Callable[[str, str], str]
"""Of a salt and a payload's text."""

_INSERT = """
    INSERT INTO audit_events (
        seq, id, type, at, actor_type, actor_id, run_id, session_id, action, connector, failure_class,
        payload_digest, prev_hash, hash
    )
"""
_SELECT = """
    SELECT
        seq, id, type, at, actor_type, actor_id, run_id, session_id, action, connector, failure_class,
        payload_digest, prev_hash, hash, salt, payload
    FROM audit_events LEFT JOIN audit_payloads USING (seq)
"""

_MOST = 2**63 - 1


def head(cursor: sqlite3.Cursor) -> tuple[int, str] | None:
    """Sequence and hash of the newest record, or L{None}."""
    row: tuple[int, str] | None = cursor.execute(
        "SELECT seq, hash FROM audit_events ORDER BY seq DESC LIMIT 1"
    ).fetchone()
    return row


def hash_at(cursor: sqlite3.Cursor, sequence: int) -> str | None:
    """The hash of one record, or L{None}."""
    row = cursor.execute("SELECT hash FROM audit_events WHERE seq = ?", (sequence,)).fetchone()
    return None if row is None else str(row[0])


def insert(cursor: sqlite3.Cursor, links: Iterable[tuple[Link, str, str]]) -> None:
    """Add links to the chain, each with the hash before it and its own."""
    insert_all(cursor, _INSERT, [_row(*link) for link in links])


def get(cursor: sqlite3.Cursor, digest: Digest, audit_id: str) -> Record | None:
    """One record, or L{None}."""
    row = cursor.execute(" ".join((_SELECT, "WHERE id = ?")), (audit_id,)).fetchone()
    return None if row is None else _record(row, digest)


def select(cursor: sqlite3.Cursor, digest: Digest, query: AuditQuery, before: int | None) -> list[tuple[int, Record]]:
    """Records below the sequence C{before}, newest first, one more than the limit if there are more."""
    where, values = conditions(
        ("seq < ?", before),
        ("at >= ?", of_moment(query.since)),
        ("at < ?", of_moment(query.until)),
        ("type = ?", query.type),
        (among("type", query.types), one_of(query.types)),
        ("action = ?", query.action),
        ("connector = ?", query.connector),
        ("session_id = ?", query.session_id),
        ("run_id = ?", query.run_id),
        ("failure_class = ?", query.failure_class),
    )
    rows = cursor.execute(" ".join((_SELECT, where, "ORDER BY seq DESC LIMIT ?")), (*values, query.limit + 1))
    return [(row[0], _record(row, digest)) for row in rows]


def after(cursor: sqlite3.Cursor, digest: Digest, sequence: int, limit: int) -> tuple[Record, ...]:
    """Records above C{sequence}, oldest first."""
    return tuple(_record(row, digest) for row in rows(cursor, sequence, limit))


def rows(cursor: sqlite3.Cursor, after: int, limit: int, until: int | None = None) -> list[Row]:
    """Records above the sequence C{after}, up to C{until}, oldest first, as columns."""
    most = _MOST if until is None else until
    if after >= most:
        return []
    where = "WHERE seq >= ? AND seq <= ? ORDER BY seq LIMIT ?"
    return cursor.execute(" ".join((_SELECT, where)), (after + 1, most, limit)).fetchall()


def bounds(cursor: sqlite3.Cursor, since: datetime | None, until: datetime | None) -> tuple[int, int]:
    """The sequence before the first record at or after C{since}, and of the last before C{until}.

    Where the clock went back meanwhile, there are others between.
    """
    last, _ = head(cursor) or (0, "")
    first = _first(cursor, "at >= ? ORDER BY seq", since)
    end = _first(cursor, "at < ? ORDER BY seq DESC", until)
    return (0 if since is None else last if first is None else first - 1), (last if until is None else end or 0)


def _first(cursor: sqlite3.Cursor, where: str, moment: datetime | None) -> int | None:
    row = cursor.execute(f"SELECT seq FROM audit_events WHERE {where} LIMIT 1", (of_moment(moment),)).fetchone()
    return None if row is None else int(row[0])


def _record(row: tuple[Any, ...], digest: Digest) -> Record:
    sequence, id_, type_, at, actor_type, actor_id, *about, payload_digest, previous, sealed, salt, payload = row
    contents = {} if payload is None else json.loads(payload)
    event = Event(id_, type_, from_timestamp(at), Actor(actor_type, actor_id), contents, *about)
    altered = payload is not None and digest(salt, payload) != payload_digest
    return Record(sequence, event, previous, sealed, payload_digest, salt, altered)


def _row(link: Link, previous_hash: str, sealed: str) -> tuple[object, ...]:
    event = link.event
    return (
        link.sequence,
        event.id,
        event.type,
        timestamp(event.at),
        event.actor.type,
        event.actor.id,
        event.run_id,
        event.session_id,
        event.action,
        event.connector,
        event.failure_class,
        link.payload_digest,
        previous_hash,
        sealed,
    )
