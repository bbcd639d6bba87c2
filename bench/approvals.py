"""What 10,000 approvals that wait cost, without HTTP: C{python -m bench.approvals} prints one JSON line."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter
from typing import Any

from attrs import define, evolve
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.task import react

from aileron.daemon import settle_heap
from aileron.model.audit import DAEMON
from aileron.model.authority import PendingLimits
from aileron.model.interfaces.connectors import IConnectors
from aileron.model.queries import RunQuery
from aileron.model.runs import Call, Decision, RunState
from aileron.runner import Runner
from aileron.testing import MemoryBindings, MemoryVault
from bench.endpoint import furnished, opened, started

HELD = 10_000
DECIDED = 300
_TOGETHER = 64
_LIMITS = PendingLimits(per_session=HELD, per_action=HELD, per_home=HELD)
_PENDING = RunQuery(states=(RunState.PENDING,))
_GATE = '[approval]\nrequired = true\nexpires_after = "24h"\n'


@define
class Desk:
    """A runner over a durable store, which can be stopped and started again."""

    reactor: Any
    home: Path
    connectors: IConnectors

    async def hold(self) -> dict[str, float]:
        """The figures of all three: a page, a restart, decisions."""
        store = await opened(self.reactor, self.home)
        runner = await self._started(store)
        names = iter(range(HELD))
        await gatherResults([Deferred.fromCoroutine(self._submit(runner, names)) for _ in range(_TOGETHER)])
        await runner.stop(1)
        await store.close()
        began = perf_counter()
        store = await opened(self.reactor, self.home)
        runner = await self._started(store)
        restart = perf_counter() - began
        settle_heap()  # as the daemon does now
        began = perf_counter()
        await runner.decisions.approvals(_PENDING)
        listed = perf_counter() - began
        took = sorted([await self._decide(runner, *asked) for asked in await self._asked(runner)])
        await runner.stop(1)
        await store.close()
        return {
            "held": HELD,
            "restart_s": restart,
            "page_ms": listed * 1e3,
            "p99_ms": took[int(len(took) * 0.99)] * 1e3,
        }

    async def _started(self, store: Any) -> Runner:
        return await started(self.reactor, store, self.home, self.connectors, MemoryBindings(MemoryVault()), _LIMITS)

    async def _submit(self, runner: Runner, names: Iterator[int]) -> None:
        for name in names:
            await runner.submission.submit(Call("noop", {"text": f"number {name}"}, DAEMON, None, None))

    async def _asked(self, runner: Runner) -> list[tuple[str, str]]:
        """The runs that are decided, with the digests of what was asked."""
        page = await runner.decisions.approvals(evolve(_PENDING, limit=DECIDED))
        return [(approval.run.id, approval.digest) for approval in page.items]

    async def _decide(self, runner: Runner, run_id: str, digest: str) -> float:
        """The seconds from the operator's word until who waits for the run has its end."""
        waiter = Deferred.fromCoroutine(runner.submission.wait(run_id, 60))
        began = perf_counter()
        decided = Deferred.fromCoroutine(runner.decisions.decide(run_id, Decision(True, digest, "bench")))
        run = await waiter
        took = perf_counter() - began
        await decided
        if run.state is not RunState.COMPLETED:
            raise RuntimeError(f"it is {run.state.value}")
        return took


async def main(reactor: Any) -> None:
    """Print the figures."""
    with tempfile.TemporaryDirectory() as directory:
        home = Path(directory).resolve()
        connectors = furnished(reactor, home, False)
        action = home / "actions/noop.md"
        action.write_text(action.read_text().replace("[[execute]]", f"{_GATE}[[execute]]"))
        print(json.dumps(await Desk(reactor, home, connectors).hold()))


if __name__ == "__main__":
    react(lambda reactor: Deferred.fromCoroutine(main(reactor)))
