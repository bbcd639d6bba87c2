"""How fast a record is verified, beside hashing the same bytes and nothing else: C{python -m bench audit}."""

from __future__ import annotations

import json
import sqlite3
import tempfile
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from hashlib import sha256
from pathlib import Path
from resource import RUSAGE_CHILDREN, RUSAGE_SELF, getrusage
from statistics import median

from twisted.internet.defer import Deferred

from aileron.audit import GENESIS, Exporting, payload_digest, record_line, seal
from aileron.audit._seal import KEYS, sealed
from aileron.audit.verify import processes_at_hand
from aileron.cli.records.look import look_at
from aileron.store.copy import opened
from aileron.testing import unopened_store
from aileron.values import DAEMON, JSON, Event, Link, compact, timestamp, utc
from bench.table import ROUNDS, row

RECORDS = 200_000
PAYLOAD: Mapping[str, JSON] = {
    "effect_key": "01JABCDEFGHJKMNPQRSTVWXYZ0",
    "attempts": [{"step": "post", "state": "succeeded"}],
}


def report(seconds: float) -> None:
    """The rates of the hashing and of verification, on one core and on all, of a database and of an export."""
    processes = processes_at_hand()
    with tempfile.TemporaryDirectory() as directory:
        path, lines = Path(directory, "aileron.db"), Path(directory, "record.ndjson")
        hashed = _filled(path)
        _export(path, lines)
        bare = [_took(lambda: _hash(hashed), time.process_time) for _ in range(ROUNDS)]
        row("the record: its bytes through hashlib", f"{RECORDS / median(bare):.0f} /s", "by processor time")
        for what, file in (("a database", path), ("an export", lines)):
            alone, waited, shared = zip(*(_looks(file, processes) for _ in range(ROUNDS)), strict=True)
            told = f"by processor time; {median(bare) / median(alone):.2f} of the hashing"
            row(f"{what}: verified, one core", f"{RECORDS / median(alone):.0f} /s", told)
            free = RECORDS * processes / median(shared)
            told = f"by the wall clock; {free:.0f} /s by processor time, were all cores ours; target 100 000 /s"
            row(f"{what}: verified, all {processes} cores", f"{RECORDS / median(waited):.0f} /s", told)


def _looks(path: Path, processes: int) -> tuple[float, float, float]:
    """What a look takes: alone by processor time; shared by the wall clock, and by that of all its processes."""
    alone = _took(lambda: _verify(path, 1), _processor_seconds)
    before = _processor_seconds()
    waited = _took(lambda: _verify(path, processes), time.perf_counter)
    return alone, waited, _processor_seconds() - before


def _processor_seconds() -> float:
    """Of this process and of those that it waited for."""
    used = [getrusage(whose) for whose in (RUSAGE_SELF, RUSAGE_CHILDREN)]
    return sum(each.ru_utime + each.ru_stime for each in used)


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
        link = Link(number, event, payload_digest("5" * 32, text))
        own = seal(previous, link)
        about = (None, link.payload_digest, previous, own)
        actor = event.actor
        columns = (id_, event.type, timestamp(event.at), actor.type, actor.id, id_, id_, event.action, event.connector)
        events.append((number, *columns, *about))
        payloads.append((number, "5" * 32, text))
        line = json.dumps(dict(zip(KEYS, sealed(previous, link), strict=True)), separators=(",", ":"))
        hashed.append((line.encode(), f"{'5' * 32}\n{text}".encode()))
        previous = own
    with closing(sqlite3.connect(path)) as connection:
        connection.executemany(f"INSERT INTO audit_events VALUES ({', '.join('?' * 14)})", events)
        connection.executemany("INSERT INTO audit_payloads VALUES (?, ?, ?)", payloads)
        connection.commit()
    return hashed


def _export(path: Path, lines: Path) -> None:
    with opened(path) as copy, lines.open("w", encoding="utf-8") as file:
        exporting = Exporting(0, GENESIS, RECORDS, ())
        file.writelines(exporting.head("bench"))
        for rows in copy.rows():
            file.writelines(map(record_line, rows))
        file.write(exporting.end())


def _verify(path: Path, processes: int) -> None:
    found = look_at(path, processes=processes)
    if (found.sound, found.last) != (True, RECORDS):
        raise AssertionError(found)


def _hash(texts: list[tuple[bytes, bytes]]) -> None:
    for one, other in texts:
        sha256(one).hexdigest()
        sha256(other).hexdigest()


def _took(work: Callable[[], None], clock: Callable[[], float]) -> float:
    before = clock()
    work()
    return clock() - before
