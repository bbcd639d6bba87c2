"""Puts events on record: numbered, salted, sealed to the one before, in the transaction of what they record."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable

from attrs import frozen

from aileron.values import Event, Link, compact

from . import _audit_events_table as events_table
from . import _audit_payloads_table as payloads_table


@frozen
class Seals:
    """How the record is sealed; the store only applies it.

    :ivar genesis: the previous hash of the first record.
    :ivar seal: the hash of a record from the previous one's and its own link.
    :ivar payload_digest: of a salt and a payload's text.
    :ivar salt: a fresh one at each call, from a source that nobody can guess.
    """

    genesis: str
    seal: Callable[[str, Link], str]
    payload_digest: Callable[[str, str], str]
    salt: Callable[[], str]


def keep(cursor: sqlite3.Cursor, seals: Seals, events: Iterable[Event]) -> None:
    """Put C{events} at the chain's end, in order."""
    sequence, previous = events_table.head(cursor) or (0, seals.genesis)
    for event in events:
        sequence += 1
        previous = _keep_one(cursor, seals, event, sequence, previous)


def _keep_one(cursor: sqlite3.Cursor, seals: Seals, event: Event, sequence: int, previous: str) -> str:
    salt, payload = seals.salt(), compact(event.payload)
    link = Link(sequence, event, seals.payload_digest(salt, payload))
    sealed = seals.seal(previous, link)
    events_table.insert(cursor, link, previous, sealed)
    payloads_table.insert(cursor, sequence, salt, payload)
    return sealed
