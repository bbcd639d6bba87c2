"""C{trusted_texts}: texts that were trusted once, by digest."""

from __future__ import annotations

import sqlite3


def put(cursor: sqlite3.Cursor, digest: str, text: str) -> None:
    """Keep a text, in the place of what lies under its digest."""
    cursor.execute("INSERT OR REPLACE INTO trusted_texts (digest, text) VALUES (?, ?)", (digest, text))


def get(cursor: sqlite3.Cursor, digest: str) -> str | None:
    """What lies under a digest, or L{None}."""
    row = cursor.execute("SELECT text FROM trusted_texts WHERE digest = ?", (digest,)).fetchone()
    return None if row is None else str(row[0])
