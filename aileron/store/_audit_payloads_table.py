"""C{audit_payloads}: what an event says beside its link, with the salt of its digest."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence

from ._batch import insert_all


def insert(cursor: sqlite3.Cursor, payloads: Sequence[tuple[int, str, str]]) -> None:
    """Keep payloads: the sequence of the event, the salt, the text."""
    insert_all(cursor, "INSERT INTO audit_payloads (seq, salt, payload)", payloads)
