"""Puts events on record: numbered, salted, sealed to the one before, in the transaction of what they record."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterable, Sequence

from attrs import frozen

from aileron.interfaces import ICommitObserver
from aileron.values import Event, Link, compact

from . import _audit_events_table as events_table
from . import _audit_macs_table as macs_table
from . import _audit_payloads_table as payloads_table
from ._batch import Batch


@frozen
class Seals:
    """How the record is sealed; the store only applies it.

    :ivar genesis: the previous hash of the first record.
    :ivar seal: the hash of a record from the previous one's and its own link.
    :ivar payload_digest: of a salt and a payload's text.
    :ivar salt: a fresh one at each call, from a source that nobody can guess.
    :ivar observer: sees what is kept, if anybody does.
    """

    genesis: str
    seal: Callable[[str, Link], str]
    payload_digest: Callable[[str, str], str]
    salt: Callable[[], str]
    observer: ICommitObserver | None = None

    def append(self, cursor: sqlite3.Cursor, events: Iterable[Event]) -> None:
        """Write C{events} at the chain's end, in order."""
        sequence, previous = events_table.head(cursor) or (0, self.genesis)
        if self.observer is not None:
            self.observer.compare_end((sequence, previous))
        links, payloads = [], []
        for event in events:
            sequence += 1
            salt, payload = self.salt(), compact(event.payload)
            link = Link(sequence, event, self.payload_digest(salt, payload))
            sealed = self.seal(previous, link)
            links.append((link, previous, sealed))
            payloads.append((sequence, salt, payload))
            previous = sealed
        events_table.insert(cursor, links)
        payloads_table.insert(cursor, payloads)
        if self.observer is not None and links:
            _show(cursor, self.observer, links)


def keep(batch: Batch, seals: Seals, events: Iterable[Event]) -> None:
    """Have C{events} at the chain's end when C{batch} is committed, after those that were kept in it before."""
    batch.owe(seals.append, events)


def _show(cursor: sqlite3.Cursor, observer: ICommitObserver, links: Sequence[tuple[Link, str, str]]) -> None:
    last, _, end = links[-1]
    observer.expect_end((last.sequence, end))
    observer.note_events(link.event for link, _, _ in links)
    macs = [(link.sequence, observer.make_mac(link.sequence, sealed)) for link, _, sealed in links]
    macs_table.insert(cursor, [(sequence, *mac) for sequence, mac in macs if mac is not None])


def after_commit(seals: Seals) -> Callable[[sqlite3.Cursor], Callable[[], None] | None]:
    """What a transaction asks at its end: what to call once it is durable, or L{None}."""
    observer = seals.observer

    def ask(cursor: sqlite3.Cursor) -> Callable[[], None] | None:
        if observer is None or not observer.wants_commit:
            return None
        end = events_table.head(cursor) or (0, seals.genesis)
        return lambda: observer.note_commit(end)

    return ask
