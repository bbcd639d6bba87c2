"""C{audit_checkpoints}: signed statements of how far the record had come."""

from __future__ import annotations

import sqlite3

from aileron.values import Checkpoint

_COLUMNS = "vault, seq, head, at, previous, key, signature"


def insert(cursor: sqlite3.Cursor, checkpoint: Checkpoint) -> None:
    """Keep one, after all others."""
    values = (
        checkpoint.vault,
        checkpoint.sequence,
        checkpoint.head,
        checkpoint.at,
        checkpoint.previous,
        checkpoint.key,
        checkpoint.signature,
    )
    cursor.execute(f"INSERT INTO audit_checkpoints ({_COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?)", values)


def latest(cursor: sqlite3.Cursor) -> Checkpoint | None:
    """The newest, or L{None}."""
    row = cursor.execute(f"SELECT {_COLUMNS} FROM audit_checkpoints ORDER BY number DESC LIMIT 1").fetchone()
    return None if row is None else Checkpoint(*row)


def between(cursor: sqlite3.Cursor, after: int, until: int | None = None) -> tuple[Checkpoint, ...]:
    """Those about records after the sequence C{after}, up to C{until}, oldest first."""
    most = 2**63 - 1 if until is None else until
    where = "WHERE seq > ? AND seq <= ? ORDER BY number"
    rows = cursor.execute(f"SELECT {_COLUMNS} FROM audit_checkpoints {where}", (after, most))
    return tuple(Checkpoint(*row) for row in rows)
