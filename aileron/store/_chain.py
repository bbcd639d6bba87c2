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
    links, payloads = [], []
    for event in events:
        sequence += 1
        salt, payload = seals.salt(), compact(event.payload)
        link = Link(sequence, event, seals.payload_digest(salt, payload))
        sealed = seals.seal(previous, link)
        links.append((link, previous, sealed))
        payloads.append((sequence, salt, payload))
        previous = sealed
    events_table.insert(cursor, links)
    payloads_table.insert(cursor, payloads)
