"""Whether the daemon stays as it is: after 100,000 requests of 1,000 sessions, and while 10,000 approvals wait."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from typing import Any

from attrs import define, field

from bench.commands import resident
from bench.connection import Connection, RefusedError, opened
from bench.table import row
from bench.turns import Server, standing, take_turns

SESSIONS = 1_000
REQUESTS = 100  # of each session
TOGETHER = 16
BESIDE_SECONDS = 20.0
_RUN = "/v1/actions/noop/run"
_OPENING = {"agent": "bench", "working_dir": "/"}
_AGAIN_SECONDS = 0.5
_TENTH = SESSIONS * REQUESTS // 10


def report(seconds: float) -> None:
    """The rows of both; how long it takes is what it takes."""
    _flat()
    _held()


def _flat() -> None:
    """Memory after a tenth of the requests and after all; latency then, beside a server that had only a tenth."""
    with standing("noop") as served, standing("noop") as young:
        crowd = Crowd(served)
        asyncio.run(crowd.work(SESSIONS))
        asyncio.run(Crowd(young).work(SESSIONS // 10))
        take_turns([served, young], BESIDE_SECONDS, TOGETHER)
    early, late = crowd.resident[0], crowd.resident[-1]
    what = f"resident after {SESSIONS * REQUESTS} requests of {SESSIONS} sessions"
    row(what, f"{late:.1f} MB", f"{late / early:.2f} x after a tenth of them")
    times = served.times("p50_ms", young)
    took = f"{served.middle('p50_ms'):.1f} ms"
    row(f"p50 after them, {TOGETHER} in flight", took, f"{times:.2f} x that of a server after a tenth of them")


@define
class Crowd:
    """Sessions that are opened, used and ended in turn, some of them at once.

    :ivar answered: how many runs.
    :ivar resident: megabytes of the server's process after each so many runs as are a tenth of all.
    """

    server: Server
    answered: int = 0
    resident: list[float] = field(factory=list)

    async def work(self, sessions: int) -> None:
        """All of it."""
        left = iter(range(sessions))
        await asyncio.gather(*(self._agent(left) for _ in range(TOGETHER)))

    async def _agent(self, left: Any) -> None:
        connection = await opened(self.server.at["port"])
        for _ in left:
            session = await self._session(connection)
            for _ in range(REQUESTS):
                await connection.post(_RUN, session["token"], {"args": {"text": "hello"}})
                self._note()
            await connection.post(f"/v1/sessions/{session['id']}/end", session["token"], {})
        connection.close()

    async def _session(self, connection: Connection) -> dict[str, Any]:
        """Another one, as soon as the daemon opens it: so many a minute, and no more."""
        while True:
            try:
                return await connection.post("/v1/sessions", self.server.at["key"], _OPENING)
            except RefusedError as refused:
                if refused.kind != "limit_exceeded":
                    raise
            await asyncio.sleep(_AGAIN_SECONDS)

    def _note(self) -> None:
        self.answered += 1
        if self.answered % _TENTH == 0:
            self.resident.append(resident(self.server.pid))


def _held() -> None:
    """What the operator meets while many approvals wait."""
    done = subprocess.run([sys.executable, "-m", "bench.approvals"], capture_output=True, text=True, check=True)
    figures = json.loads(done.stdout)
    held = figures["held"]
    row(f"{held} approvals wait: a page of 100", f"{figures['page_ms']:.0f} ms", "at most 200")
    row(f"{held} approvals wait: from a stopped runner to a started", f"{figures['restart_s']:.2f} s", "at most 2")
    row(f"{held} approvals wait: a decision reaches its waiter", f"{figures['p99_ms']:.1f} ms", "p99, at most 50")
