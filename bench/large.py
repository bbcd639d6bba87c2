"""A large store: C{python -m bench.large WHAT NUMBER [URL]}.

With the URL of an empty database, the store uses that in place of a file. WHAT is one of

  - C{pending}: so many requests wait, among twice as many runs that have ended. Prints how long lists take.
  - C{audit}: so many records, verified as C{aileron audit verify} does, first a tenth of them. Prints the time of each
    record, and the most memory of that process.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Mapping
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import react

from aileron.audit import GENESIS, payload_digest, seal
from aileron.base.json import compact, utc
from aileron.cli.records.look import look_at, look_at_copy
from aileron.model.audit import ChainLink, Event, Record
from aileron.model.queries import RunQuery
from aileron.model.runs import Approval, RunState
from aileron.store import Store, _approvals_table, _audit_tables, _runs_table, read_address
from aileron.store._dialect import Cursor
from aileron.store._table import make_page
from aileron.store.moving import open_server_copy
from aileron.testing import example_ask
from bench.store import event, make, received
from bench.table import ROUNDS

SLICE = 500
_PENDING = RunQuery(states=(RunState.PENDING,))
_SALT = "5" * 32


def put_runs(cursor: Cursor, first: int, end: int) -> None:
    """Insert runs, of which every third waits for a decision."""
    ask = example_ask()
    for number in range(first, end):
        state = RunState.COMPLETED if number % 3 else RunState.PENDING
        run = evolve(received(f"{number:026}"), state=state, gated=True)
        _runs_table.RUNS.insert(cursor, [run])
        approval = Approval(run, ask.digest, ask.review, ask.requested_at, ask.expires_at, ask.stale)
        _approvals_table.put(cursor, approval)


async def measure_lists(store: Store, number: int) -> Mapping[str, float]:
    """Return the milliseconds of each list."""
    middle = make_page("approvals", [(number * 3 // 2, None), (0, None)], 1).cursor
    lists: Mapping[str, Callable[[], Awaitable[object]]] = {
        "first_page_ms": lambda: store.runs.approvals(_PENDING),
        "later_page_ms": lambda: store.runs.approvals(evolve(_PENDING, cursor=middle)),
        "oldest_runs_ms": lambda: store.runs.list(evolve(_PENDING, oldest_first=True)),
        "newest_runs_ms": lambda: store.runs.list(RunQuery()),
        "count_ms": lambda: store.runs.count(_PENDING),
        "unshown_page_ms": lambda: store.runs.unshown(number // 2, 500),
    }
    found = {}
    for name, read in lists.items():
        took = []
        for _ in range(ROUNDS):
            began = time.perf_counter()
            await read()
            took.append(time.perf_counter() - began)
        found[name] = median(took) * 1e3
    return found


def put_records(cursor: Cursor, first: int, end: int) -> None:
    """Append records to the audit log."""
    previous = (_audit_tables.head(cursor) or (0, GENESIS))[1]
    records, payloads = [], []
    for number in range(first, end):
        new: Event = evolve(event(f"{number:026}", "execution.succeeded"), at=utc(number))
        text = compact(new.payload)
        link = ChainLink(number, new, payload_digest(_SALT, text))
        records.append(Record(number, new, previous, seal(previous, link), link.payload_digest, _SALT))
        payloads.append((number, _SALT, text))
        previous = records[-1].hash
    _audit_tables.insert(cursor, records, payloads)


def verify(place: str, number: int) -> None:
    """Verify the record, and print the processor time, the seconds and the memory of this process."""
    began, cpu = time.perf_counter(), time.process_time()
    if os.path.exists(place):
        found = look_at(Path(place))
    else:
        with open_server_copy(read_address(place)) as copy:
            found = look_at_copy(copy)
    if (found.sound, found.last) != (True, number):
        raise AssertionError(found)
    figures = {
        "records": number,
        "seconds": time.perf_counter() - began,
        "cpu_us": (time.process_time() - cpu) / number * 1e6,
        "most_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }
    print(json.dumps(figures), flush=True)


async def fill(store: Store, put: Callable[[Cursor, int, int], None], first: int, end: int) -> None:
    """Call C{put} in transactions with slices of the numbers from C{first} to C{end}."""
    for begin, stop in pairwise((*range(first, end, SLICE), end)):
        await store._writer.write(put, begin, stop)  # noqa: SLF001 - faster than one call for each


async def main(reactor: Any, what: str, number: int, url: str = "") -> None:
    with tempfile.TemporaryDirectory() as directory:
        place = url or f"{directory}/bench.db"
        store = make(reactor, place)
        await store.open()
        if what == "pending":
            await fill(store, put_runs, 0, 3 * number)
            print(json.dumps(await measure_lists(store, number)))
        else:
            for first, end in ((0, number // 10), (number // 10, number)):
                await fill(store, put_records, first + 1, end + 1)
                subprocess.run([sys.executable, "-m", "bench.large", "verify", place, str(end)], check=True)
        await store.close()


if __name__ == "__main__":
    if sys.argv[1] == "verify":
        verify(sys.argv[2], int(sys.argv[3]))
    else:
        _what, _number, *_url = sys.argv[1:]
        react(lambda reactor: Deferred.fromCoroutine(main(reactor, _what, int(_number), *_url)))
