"""One of two daemons is killed in each step of its stop, is told twice to stop, or cannot end what it has begun."""

from __future__ import annotations

import inspect
import os
import signal
from pathlib import Path
from typing import Any

from twisted.internet.defer import Deferred

from aileron.home.lock import running_pid
from tests.extent import seldom
from tests.functional.operated import GATED, PASSPHRASE, UNGATED, AgentSession
from tests.functional.reactor import Patience, until
from tests.functional.slack import Behaviour
from tests.functional.test_rolling import by, install_copy
from tests.functional.test_several import SeveralTestCase

READY, STOPPING, CLOSED = 200, 503, 0
"""What C{/v1/ready} answers; 0 if nothing listens."""

POINTS: tuple[tuple[str, int], ...] = (
    ("before Drain.run", READY),
    ("before Runner.drain", STOPPING),
    ("before Company.hand_over", STOPPING),
    ("after Company.hand_over", STOPPING),
    ("after Runner.drain", STOPPING),
    ("after Drain.run", STOPPING),
    ("before Company._leave", CLOSED),
    ("after Company._leave", CLOSED),
)
"""The points of a stop, each with what the readiness is there."""

_ENDED = ("after Runner.drain", "after Drain.run", "before Company._leave", "after Company._leave")
"""The points at which what had begun has ended."""


def _hold_at_points() -> None:
    """Have this daemon wait for ever at the point that the file C{WISH} names, once it has said that it is there."""
    from pathlib import Path

    from twisted.internet.defer import Deferred

    async def reach(point: str) -> None:
        wish = Path("WISH")
        if wish.exists() and wish.read_text() == point:
            wish.with_suffix(".reached").touch()
            await Deferred()

    def watch(owner: Any, name: str) -> None:
        step = getattr(owner, name)

        async def watched(self: Any, *args: Any) -> Any:
            await reach(f"before {owner.__name__}.{name}")
            result = await step(self, *args)
            await reach(f"after {owner.__name__}.{name}")
            return result

        setattr(owner, name, watched)

    from aileron.daemon._drain import Drain
    from aileron.daemon._several import Company
    from aileron.runner import Runner

    for owner, name in ((Drain, "run"), (Runner, "drain"), (Company, "hand_over"), (Company, "_leave")):
        watch(owner, name)


def make_held(where: Path) -> tuple[Path, Path]:
    """Install a copy of this version that can be held at points, and return its interpreter and the file with the wish.

    The points are around methods, so the product itself holds nothing for this.
    """
    made, wish = install_copy(where), where / "wish"
    compose = made / "daemon" / "_compose.py"
    text = inspect.getsource(_hold_at_points).replace("WISH", str(wish))
    compose.write_text(f"{compose.read_text()}\n\n{text}\n\n_hold_at_points()\n")
    return where / "bin" / "python", wish


class DrainTests(SeveralTestCase):
    """The second of two daemons stops."""

    async def readiness(self, url: str) -> int:
        """What a balancer is told now."""
        try:
            return (await self.web.ask("GET", f"{url}/v1/ready", None)).status
        except Exception:  # noqa: BLE001 - nothing listens
            return CLOSED

    def stop(self) -> int:
        """Tell the second daemon to stop, and return its process id."""
        pid = running_pid(self.homes[1]) or 0
        os.kill(pid, signal.SIGTERM)
        return pid

    async def until_gone(self, pid: int, seconds: float) -> None:
        """Wait until the second daemon is gone."""
        await until(self.reactor, lambda: running_pid(self.homes[1]) != pid, seconds, f"the end{self.log(1)}")

    async def prepare(self, session: AgentSession, name: str) -> tuple[str, Deferred[Any]]:
        """Have the second daemon hold a request that waits for its approval, and begin another run, which is held."""
        asked = await self.call(1, session, GATED, wait=None, summary=f"asked {name}")
        self.workspace.next = [Behaviour(held=True)]
        count = len(self.workspace.messages)
        begun = Deferred.fromCoroutine(self.call(1, session, UNGATED, wait=60, summary=f"begun {name}"))
        begun.addErrback(lambda _: None)
        await self.posted(count + 1)
        return str(asked.body["run_id"]), begun

    def release(self) -> None:
        """Have the service answer what it holds."""
        held, self.workspace.release = self.workspace.release, Deferred()
        held.callback(None)

    async def status_becomes(self, summary: str, *wanted: str, seconds: float = 30) -> str:
        """The status of a run, once it is one of these, as the first daemon tells it."""
        patience = Patience(self.reactor, seconds)
        while True:
            (found,) = (each["status"] for each in await self.runs(0) if each["arguments"]["summary"] == summary)
            if found in wanted:
                return str(found)
            self.assertFalse(patience.is_over, f"{summary}: {found}\n{self.log(0)}\n{self.log(1)}")
            await self.pause(0.3)

    async def ends_elsewhere(self, session: AgentSession, run_id: str, name: str, began: str) -> None:
        """What waited still waits, and is approved and run by the first daemon; each effect came once."""
        await self.status_becomes(f"begun {name}", began)
        await self.status_becomes(f"asked {name}", "pending_approval")
        await self.approve(run_id, "--wait", "20")
        await self.status_becomes(f"asked {name}", "completed")
        reply = await self.call(0, session, UNGATED, summary=f"later {name}")
        self.assertEqual(reply.status, 200, reply.body)
        counts = self.counts()
        found = {each: counts.get(f"{each} {name}", 0) for each in ("begun", "asked", "later")}
        self.assertEqual(found, {"begun": 1, "asked": 1, "later": 1})

    @seldom
    async def test_killed_at_points(self) -> None:
        """At each point nothing is lost and nothing done twice, and the other daemon goes on; a balancer was told that
        the daemon is not ready before its port closed."""
        await self.begin(drain_seconds=30, lease_seconds=2)
        python, wish = make_held(self.home.root / "held")
        session = await self.session()
        os.kill(running_pid(self.homes[1]) or 0, signal.SIGTERM)
        await until(self.reactor, lambda: running_pid(self.homes[1]) is None, 30, "the end of the first life")
        for point, ready in POINTS:
            home = str(self.homes[1].root)
            command = self.home.with_passphrase(PASSPHRASE, "aileron", "vault", "unlock", AILERON_HOME=home)
            started = await self.run_command(by(python, command))
            self.assertEqual(started.exit_code, 0, f"{started.stderr}{self.log(1)}")
            url = self.found(1)["url"]
            run_id, begun = await self.prepare(session, point)
            reached = wish.with_suffix(".reached")
            reached.unlink(missing_ok=True)
            wish.write_text(point)
            self.stop()
            if point in _ENDED:
                if ready == CLOSED:
                    patience = Patience(self.reactor, 10)
                    while await self.readiness(url) != STOPPING:
                        self.assertFalse(patience.is_over, f"{point}: {self.log(1)}")
                self.release()
                self.assertEqual((await begun).status, 200, point)
            await until(self.reactor, reached.exists, 20, f"{point}{self.log(1)}")
            self.assertEqual(await self.readiness(url), ready, point)
            await self.kill(1)
            if point not in _ENDED:
                self.workspace.release = Deferred()  # nobody is there any more to be answered
            await self.ends_elsewhere(session, run_id, point, "completed" if point in _ENDED else "unknown")
        self.assertIn("consistent", (await self.command("store", "verify", self.url)).stdout)

    @seldom
    async def test_told_twice(self) -> None:
        """A second signal neither cuts what has begun nor holds the stop up."""
        await self.begin(drain_seconds=30, lease_seconds=60)
        session = await self.session()
        run_id, begun = await self.prepare(session, "twice")
        url, pid = self.found(1)["url"], self.stop()
        await until(self.reactor, lambda: "this daemon stops" in self.log(1), 10, "the begin of the stop")
        for _ in range(2):
            self.stop()
            await self.pause(0.5)
            self.assertEqual(await self.readiness(url), STOPPING)
        self.release()
        self.assertEqual((await begun).status, 200)
        await self.until_gone(pid, 10)
        await self.ends_elsewhere(session, run_id, "twice", "completed")
        self.assertNotIn("Traceback", self.log(1))

    @seldom
    async def test_too_long(self) -> None:
        """What takes longer than it may is uncertain, and is not begun again; the daemon ends in its time."""
        await self.begin(drain_seconds=2, lease_seconds=60)
        session = await self.session()
        run_id, begun = await self.prepare(session, "long")
        pid = self.stop()
        await self.until_gone(pid, 2 + 10)
        reply = await begun
        self.assertEqual((reply.status, reply.body["error"]["class"]), (500, "outcome_unknown"))
        self.workspace.release = Deferred()
        await self.ends_elsewhere(session, run_id, "long", "unknown")

    @seldom
    async def test_locked(self) -> None:
        """A daemon whose vault is locked stops as well, and leaves what waits to the other."""
        await self.begin(drain_seconds=10, lease_seconds=60)
        session = await self.session()
        asked = await self.call(1, session, GATED, wait=None, summary="asked locked")
        await self.at(1, "vault", "lock")
        pid = self.stop()
        await self.until_gone(pid, 10)
        await self.at(0, "vault", "unlock")
        await self.approve(str(asked.body["run_id"]), "--wait", "20")
        await self.status_becomes("asked locked", "completed")
        self.assertEqual(self.counts(), {"asked locked": 1})
