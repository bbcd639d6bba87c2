"""Whether the daemon stays as it is: after 100,000 requests of 1,000 sessions, and while 10,000 approvals wait."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from statistics import median
from time import perf_counter
from typing import Any

from attrs import define, field

from bench.commands import resident
from bench.connection import Connection, RefusedError, opened
from bench.table import row

SESSIONS = 1_000
REQUESTS = 100  # of each session
TOGETHER = 16
_RUN = "/v1/actions/noop/run"
_AGAIN_SECONDS = 0.5
_TENTH = SESSIONS * REQUESTS // 10


def report(seconds: float) -> None:
    """The rows of both; how long it takes is what it takes."""
    _flat()
    _held()


def _flat() -> None:
    """Memory and latency after a tenth of the requests, and after all."""
    command = [sys.executable, "-m", "bench.serving", "noop"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin and process.stdout
        at = json.loads(process.stdout.readline())
        crowd = Crowd(at["port"], at["key"], process.pid)
        asyncio.run(crowd.work())
        process.communicate()
    early, late = crowd.resident[0], crowd.resident[-1]
    what = f"resident after {SESSIONS * REQUESTS} requests of {SESSIONS} sessions"
    row(what, f"{late:.1f} MB", f"{late / early:.2f} x after a tenth of them")
    early, late = (median(part) * 1e3 for part in (crowd.took[_TENTH : 2 * _TENTH], crowd.took[-_TENTH:]))
    what = f"p50 of the last tenth of them, at most {TOGETHER} in flight"
    row(what, f"{late:.1f} ms", f"{late / early:.2f} x that of the second tenth")


@define
class Crowd:
    """Sessions that are opened, used and ended in turn, some of them at once.

    :ivar took: seconds of each run, in the order they were answered.
    :ivar resident: megabytes of the server's process at the end of each tenth.
    """

    port: int
    key: str
    pid: int
    took: list[float] = field(factory=list)
    resident: list[float] = field(factory=list)

    async def work(self) -> None:
        """All of it."""
        left = iter(range(SESSIONS))
        await asyncio.gather(*(self._agent(left) for _ in range(TOGETHER)))

    async def _agent(self, left: Any) -> None:
        connection = await opened(self.port)
        for _ in left:
            session = await self._session(connection)
            for _ in range(REQUESTS):
                began = perf_counter()
                await connection.post(_RUN, session["token"], {"args": {"text": "hello"}})
                self._note(perf_counter() - began)
            await connection.post(f"/v1/sessions/{session['id']}/end", session["token"], {})
        connection.close()

    async def _session(self, connection: Connection) -> dict[str, Any]:
        """Another one, as soon as the daemon opens it: so many a minute, and no more."""
        while True:
            try:
                return await connection.post("/v1/sessions", self.key, {"agent": "bench", "working_dir": "/"})
            except RefusedError as refused:
                if refused.kind != "limit_exceeded":
                    raise
            await asyncio.sleep(_AGAIN_SECONDS)

    def _note(self, seconds: float) -> None:
        self.took.append(seconds)
        if len(self.took) % _TENTH == 0:
            self.resident.append(resident(self.pid))


def _held() -> None:
    """What the operator meets while many approvals wait."""
    done = subprocess.run([sys.executable, "-m", "bench.approvals"], capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    held = figures["held"]
    row(f"{held} approvals wait: a page of 100", f"{figures['page_ms']:.0f} ms", "at most 200")
    row(f"{held} approvals wait: from a stopped runner to a started", f"{figures['restart_s']:.2f} s", "at most 2")
    row(f"{held} approvals wait: a decision reaches its waiter", f"{figures['p99_ms']:.1f} ms", "p99, at most 50")
