"""Several installed daemons on one database behind a balancer: one inbox, one record, and each effect once."""

from __future__ import annotations

import contextlib  # its C{suppress} is not imported: in a module of tests trial takes that name for its own
import json
import os
import shutil
import signal
from collections.abc import Mapping
from functools import partial
from typing import Any
from urllib.parse import urlsplit

from twisted.internet.defer import Deferred

from aileron.home.lock import running_pid
from aileron.home.paths import Home as State
from tests.extent import seldom
from tests.functional.balancer import Balancer
from tests.functional.operated import GATED, SHIP, UNGATED, AgentSession, OperatedTestCase
from tests.functional.postgresql import Server, start_server
from tests.functional.process import Finished
from tests.functional.reactor import Patience, until
from tests.functional.slack import Behaviour
from tests.functional.web import Reply

_LEASE_SECONDS = 3


class SeveralCase(OperatedTestCase):
    """A home whose store is on a server, copies of it, and a daemon in each."""

    def setUp(self) -> None:
        super().setUp()
        self.server: Server = start_server()
        self.name = self.server.make_database()
        self.addCleanup(self.server.drop, self.name)
        self.url = self.server.url(self.name)
        self.homes: list[State] = []
        self.balancer = Balancer(self.reactor, self.ports)
        self.finally_(self.balancer.stop)

    async def begin(self, count: int = 2) -> None:
        """The user's own steps: furnish one home, move its store, copy the home, and unlock each."""
        await self.furnish()
        self.state.config.write_text(
            f"store:\n  url: {self.url}\n  daemons: several\n  lease_seconds: {_LEASE_SECONDS}\n"
        )
        await self.operator("config", "trust", "--yes")
        await self.command("daemon", "stop")
        await self.command("store", "migrate", "--to", self.url)
        self.homes = [self.state]
        for number in range(1, count):
            other = self.state.root.with_name(f"other-{number}")
            shutil.copytree(self.state.root, other, ignore=shutil.ignore_patterns("daemon.*", "run", "ports.json"))
            self.homes.append(State(other))
            self.finally_(partial(self.kill, number))
        for number in range(count):
            await self.at(number, "vault", "unlock")

    async def at(self, number: int, *arguments: str, code: int = 0) -> Finished:
        """An operator's command with the home of one daemon."""
        finished = await self.operator_within({"AILERON_HOME": str(self.homes[number].root)}, *arguments)
        self.assertEqual(finished.exit_code, code, f"{finished.stdout}\n{finished.stderr}\n{self.log(number)}")
        return finished

    async def told_at(self, number: int, *arguments: str) -> Any:
        return json.loads((await self.at(number, *arguments, "--json")).stdout)

    def log(self, number: int) -> str:
        path = self.homes[number].log / "aileron.log"
        return path.read_text() if path.exists() else ""

    def found(self, number: int) -> Mapping[str, Any]:
        return json.loads(self.homes[number].discovery.read_text())  # type: ignore[no-any-return]

    def ports(self) -> list[int]:
        """The ports of the daemons that say that they serve."""
        return [urlsplit(self.found(n).get("url")).port or 0 for n in range(len(self.homes)) if self.is_there(n)]

    def is_there(self, number: int) -> bool:
        return self.homes[number].discovery.exists() and bool(running_pid(self.homes[number]))

    async def kill(self, number: int) -> None:
        """``kill -9`` the daemon of a home, and wait until it is gone."""
        state = self.homes[number]
        pid = running_pid(state) if state.root.exists() else None
        if pid:
            os.kill(pid, signal.SIGKILL)
            await until(self.reactor, lambda: running_pid(state) != pid, 30, "the end of a killed daemon")
            with contextlib.suppress(ChildProcessError):
                os.waitpid(pid, 0)

    async def call(
        self, number: int | None, session: AgentSession, name: str, wait: int | None = 30, **args: str
    ) -> Reply:
        """A call of an agent to one daemon, or through the balancer."""
        prefer = {} if wait is None else {"Prefer": f"wait={wait}"}
        base = self.balancer.url if number is None else self.found(number)["url"]
        url = f"{base}/v1/actions/{name}/run"
        body = {"args": {**SHIP, **args}}
        return await self.web.ask("POST", url, session.token, body, seconds=(wait or 0) + 30, **prefer)

    async def runs(self, number: int) -> list[Mapping[str, Any]]:
        return list((await self.told_at(number, "run", "list"))["items"])

    def counts(self) -> dict[str, int]:
        """How often each text was posted."""
        texts = [message.text for message in self.workspace.messages]
        return {text: texts.count(text) for text in texts}


class TwoTests(SeveralCase):
    async def test_together(self) -> None:
        """Calls go to any daemon; what one receives another approves and runs, the first tells its agent, and both
        have one inbox, one record and one pause."""
        await self.begin()
        listed = (await self.told_at(1, "daemon", "list"))["items"]
        self.assertEqual([each["own"] for each in listed], [False, True])
        self.assertEqual([each["pid"] for each in listed], [running_pid(each) for each in self.homes])
        session = await self.session()
        for number in range(4):
            self.assertEqual((await self.call(None, session, UNGATED, summary=f"note {number}")).status, 200)
        self.assertEqual(len(set(self.balancer.chosen)), 2)
        answer = Deferred.fromCoroutine(self.call(0, session, GATED, wait=60, summary="from the first"))
        pending = await self.waiting()
        await self.at(1, "approval", "approve", pending[0]["approval_id"], "--yes")
        reply = await answer
        self.assertEqual(reply.status, 200, reply.body)
        self.assertEqual(self.counts(), {**{f"note {n}": 1 for n in range(4)}, "from the first": 1})
        self.assertEqual(await self.runs(0), await self.runs(1))
        records = [await self.told_at(number, "audit", "list", "--limit", "200") for number in (0, 1)]
        first, second = (each["items"] for each in records)
        self.assertEqual(second[-len(first) :], first)  # the second one's login came after
        await self.at(0, "pause")
        refused = await self.call(1, session, UNGATED)
        self.assertEqual((refused.status, refused.body["error"]["class"]), (503, "paused"))
        await self.at(1, "resume")
        self.assertEqual((await self.call(0, session, UNGATED, summary="again")).status, 200)
        self.assertIn("consistent", (await self.command("store", "verify", self.url)).stdout)
        self.assertNotIn("tamper.detected", {each["type"] for each in second})

    @seldom
    async def test_killed(self) -> None:
        """What a killed daemon had begun becomes unknown and is not begun again; what it had not begun another runs."""
        await self.begin()
        session = await self.session()
        self.workspace.next = [Behaviour(held=True)]
        begun = Deferred.fromCoroutine(self.call(1, session, UNGATED, wait=None, summary="begun"))
        await self.posted()
        await self.call(1, session, GATED, wait=None, summary="asked")
        await self.kill(1)
        begun.addErrback(lambda _: None)
        states = await self.states_become({"begun": "unknown", "asked": "pending_approval"})
        self.assertEqual(states, {"begun": "unknown", "asked": "pending_approval"})
        (pending,) = await self.waiting()
        await self.approve(pending["approval_id"])
        await self.states_become({"begun": "unknown", "asked": "completed"})
        self.assertEqual(self.counts().get("asked"), 1)
        self.assertLessEqual(self.counts().get("begun", 0), 1)

    async def states_become(self, wanted: Mapping[str, str], seconds: float = 30) -> Mapping[str, str]:
        """The states of the runs, by what they say, once they are these."""
        patience = Patience(self.reactor, seconds)
        while True:
            found = {each["arguments"]["summary"]: each["status"] for each in await self.runs(0)}
            if found == wanted or patience.is_over:
                return found
            await self.pause(0.5)
