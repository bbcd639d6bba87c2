"""How fast a record is verified, beside hashing the same bytes and nothing else: C{python -m bench audit}."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from hashlib import sha256
from pathlib import Path
from statistics import median

from twisted.internet.defer import Deferred

from aileron.audit import GENESIS, Exporting, payload_digest, record_line, seal
from aileron.audit._chain import KEYS
from aileron.base.json import JSON, compact, timestamp, utc
from aileron.cli.records.look import look_at
from aileron.model.audit import DAEMON, ROW, ChainLink, Event
from aileron.store.copy import open_copy
from aileron.testing import unopened_store
from bench.table import ROUNDS, row

RECORDS = 200_000
TARGET = "60 000"
PAYLOAD: Mapping[str, JSON] = {
    "effect_key": "01JABCDEFGHJKMNPQRSTVWXYZ0",
    "attempts": [{"step": "post", "state": "succeeded"}],
}


def report(seconds: float) -> None:
    """The rates of the hashing and of verification, of a database and of an export."""
    with tempfile.TemporaryDirectory() as directory:
        path, lines = Path(directory, "aileron.db"), Path(directory, "record.ndjson")
        hashed = _filled(path)
        _export(path, lines)
        bare = median(_took(lambda: _hash(hashed)) for _ in range(ROUNDS))
        row("the record: its bytes through hashlib", f"{RECORDS / bare:.0f} /s", "by processor time")
        for what, file in (("a database", path), ("an export", lines)):
            verified = median(_took(partial(_verify, file)) for _ in range(ROUNDS))
            told = f"by processor time; {bare / verified:.2f} of the hashing; target {TARGET} /s"
            row(f"{what}: verified", f"{RECORDS / verified:.0f} /s", told)


def _filled(path: Path) -> list[tuple[bytes, bytes]]:
    """A database of many records, written at once, and what was hashed for each."""
    store = unopened_store(path)
    Deferred.fromCoroutine(store.open())
    Deferred.fromCoroutine(store.close())
    previous, text = GENESIS, compact(PAYLOAD)
    events, payloads, hashed = [], [], []
    for number in range(1, RECORDS + 1):
        id_ = f"{number:026}"
        event = Event(
            id_, "execution.succeeded", utc(number), DAEMON, PAYLOAD, id_, id_, "ship-update", "builtin://slack"
        )
        link = ChainLink(number, event, payload_digest("5" * 32, text))
        own = seal(previous, link)
        about = (None, link.payload_digest, previous, own)
        actor = event.actor
        columns = (id_, event.type, timestamp(event.at), actor.type, actor.id, id_, id_, event.action, event.connector)
        events.append((number, *columns, *about))
        payloads.append((number, "5" * 32, text))
        named = {**dict(zip(ROW, events[-1], strict=False)), "form": "aileron.audit.v1"}
        line = json.dumps({key: named[key] for key in KEYS}, separators=(",", ":"))
        hashed.append((line.encode(), f"{'5' * 32}\n{text}".encode()))
        previous = own
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(f"INSERT INTO audit_events VALUES ({', '.join('?' * 14)})", events)
        connection.executemany("INSERT INTO audit_payloads VALUES (?, ?, ?)", payloads)
        connection.commit()
    return hashed


def _export(path: Path, lines: Path) -> None:
    with open_copy(path) as copy, lines.open("w", encoding="utf-8") as file:
        exporting = Exporting(0, GENESIS, RECORDS, ())
        file.writelines(exporting.head("bench"))
        for rows in copy.rows():
            file.writelines(map(record_line, rows))
        file.write(exporting.end())


def _verify(path: Path) -> None:
    found = look_at(path)
    if (found.sound, found.last) != (True, RECORDS):
        raise AssertionError(found)


def _hash(texts: list[tuple[bytes, bytes]]) -> None:
    for one, other in texts:
        sha256(one).hexdigest()
        sha256(other).hexdigest()


def _took(work: Callable[[], None]) -> float:
    before = time.process_time()
    work()
    return time.process_time() - before
