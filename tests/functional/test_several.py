"""Several installed daemons on one database behind a balancer: one inbox, one record, and each effect once."""

from __future__ import annotations

import contextlib  # its C{suppress} is not imported: in a module of tests trial takes that name for its own
import json
import os
import shutil
import signal
import time
from collections.abc import Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import Any
from urllib.parse import urlsplit

import attrs
import treq
from treq.client import HTTPClient
from twisted.internet.defer import Deferred
from twisted.web.client import Agent, HTTPConnectionPool
from twisted.web.http_headers import Headers

from aileron.home.lock import running_pid
from aileron.home.paths import Home as State
from aileron.store._listener import LOOK_SECONDS
from tests.extent import seldom
from tests.functional.balancer import Balancer
from tests.functional.operated import GATED, SHIP, UNGATED, AgentSession, OperatedTestCase
from tests.functional.postgresql import Server, start_server
from tests.functional.process import Finished
from tests.functional.reactor import Patience, until
from tests.functional.slack import Behaviour
from tests.functional.web import Reply

_LEASE_SECONDS = 3
OUTCOME = "execution.succeeded"
"""The type of the event with the outcome of a run."""


class SeveralTestCase(OperatedTestCase):
    """A home whose store is on a server, copies of it, and a daemon in each.

    :cvar more_config: what else is in their C{config.yaml}.
    """

    more_config = ""

    def setUp(self) -> None:
        super().setUp()
        self.server: Server = start_server()
        self.name = self.server.make_database()
        self.addCleanup(self.server.drop, self.name)
        self.url = self.server.url(self.name)
        self.homes: list[State] = []
        self.balancer = Balancer(self.reactor, self.ports)
        self.finally_(self.balancer.stop)

    async def begin(self, count: int = 2, **settings: int) -> None:
        """The user's own steps: furnish one home, move its store, copy the home, and unlock each."""
        keys = {"lease_seconds": _LEASE_SECONDS, **settings}
        more = "".join(f"  {key}: {value}\n" for key, value in keys.items())
        await self.furnish()
        text = f"store:\n  url: {self.url}\n  daemons: several\n{more}{self.more_config}"
        self.state.config.write_text(text)
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


class TwoTests(SeveralTestCase):
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

    async def test_stopped(self) -> None:
        """A daemon that is stopped says at once that it is not ready, refuses new work, ends what it has begun, and
        leaves the rest to the other daemon, which begins it before any lease ends."""
        await self.begin(drain_seconds=30, lease_seconds=60)
        session = await self.session()
        asked = await self.call(1, session, GATED, wait=None, summary="asked")
        self.workspace.next = [Behaviour(held=True)]
        begun = Deferred.fromCoroutine(self.call(1, session, UNGATED, wait=60, summary="begun"))
        await self.posted()
        waits = Deferred.fromCoroutine(self.call(1, session, GATED, wait=60, summary="waits"))
        await self.waiting(2)
        url, pid = self.found(1)["url"], running_pid(self.homes[1])
        os.kill(pid or 0, signal.SIGTERM)
        left = await waits
        self.assertEqual((left.status, left.body["status"], left.body["retry_after"]), (202, "pending_approval", 0))
        ready = await self.web.ask("GET", f"{url}/v1/ready", None)
        self.assertEqual((ready.status, ready.body["error"]["class"]), (503, "store_unavailable"))
        refused = await self.web.ask("POST", f"{url}/v1/actions/{UNGATED}/run", session.token, {"args": SHIP})
        self.assertEqual((refused.status, refused.body["error"]["details"]["stopping"]), (503, True))
        self.assertEqual((await self.call(0, session, UNGATED, summary="elsewhere")).status, 200)
        self.workspace.release.callback(None)
        reply = await begun
        self.assertEqual(reply.status, 200, reply.body)
        await until(self.reactor, lambda: running_pid(self.homes[1]) is None, 10, "the end of a stopped daemon")
        for run_id in (asked.body["run_id"], left.body["run_id"]):
            await self.approve(str(run_id), "--wait", "20")
        await self.states_become(dict.fromkeys(("asked", "begun", "elsewhere", "waits"), "completed"), 10)
        self.assertEqual(self.counts(), dict.fromkeys(("begun", "elsewhere", "asked", "waits"), 1))

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


@attrs.define(eq=False)
class Listened:
    """An open stream of events: when each arrived, and when it was recorded."""

    text: str = ""
    arrived: dict[int, tuple[float, Mapping[str, Any]]] = attrs.field(factory=dict)

    def collect(self, data: bytes) -> None:
        """Take what has arrived."""
        self.text += data.decode()
        *whole, self.text = self.text.split("\n\n")
        for each in whole:
            fields = dict(line.split(": ", 1) for line in each.split("\n") if not line.startswith(":"))
            if fields.get("event") == "record":
                self.arrived[int(fields["id"])] = time.time(), json.loads(fields["data"])

    def types(self, run_id: str) -> list[str]:
        """The types of the events of a run, as they arrived."""
        return [event["type"] for _, event in self.arrived.values() if event["run_id"] == run_id]

    def delay(self, run_id: str, type_: str) -> float:
        """The seconds from the recording of an event of a run to its arrival."""
        (found,) = (each for each in self.arrived.values() if (each[1]["run_id"], each[1]["type"]) == (run_id, type_))
        return found[0] - datetime.fromisoformat(found[1]["at"]).timestamp()


class NewsTests(SeveralTestCase):
    """What waits at one daemon learns of what happened at another one."""

    async def begin(self, count: int = 2, **settings: int) -> None:
        await super().begin(count, **settings)
        self.agents = await self.session()
        self.stream = Listened()
        url, key = self.found(0)["operator_url"], self.found(0)["local_key"]
        client = HTTPClient(Agent(self.reactor, pool=HTTPConnectionPool(self.reactor, persistent=False)))
        headers = Headers({"Authorization": [f"Bearer {key}"], "Host": [urlsplit(url).netloc]})
        at = f"http://127.0.0.1:{urlsplit(url).port}/v1/events"
        response = await client.get(at, headers=headers)
        self.assertEqual(response.code, 200)
        streaming = treq.collect(response, self.stream.collect)
        streaming.addErrback(lambda _: None)

    async def decided_elsewhere(self, number: int) -> tuple[float, float, float]:
        """A call that waits at the first daemon is approved at the other one: the seconds until the stream and the
        call at the first one learn of the decision and of the outcome."""
        answer = Deferred.fromCoroutine(self.call(0, self.agents, GATED, wait=60, summary=f"call {number}"))
        answered: list[float] = []

        def note(reply: Reply) -> Reply:
            answered.append(time.time())
            return reply

        answer.addCallback(note)
        (pending,) = await self.waiting()
        await self.at(1, "approval", "approve", pending["approval_id"], "--yes")
        reply = await answer
        self.assertEqual(reply.status, 200, reply.body)
        run_id = reply.body["run_id"]
        await until(self.reactor, lambda: OUTCOME in self.stream.types(run_id), 30, "the outcome on the stream")
        (ended,) = (
            each for _, each in self.stream.arrived.values() if (each["run_id"], each["type"]) == (run_id, OUTCOME)
        )
        late = answered[0] - datetime.fromisoformat(ended["at"]).timestamp()
        return self.stream.delay(run_id, "approval.approved"), self.stream.delay(run_id, OUTCOME), late

    async def test_notified(self) -> None:
        """By a notice, within a second: on a busy machine the fastest of three, and none as late as the slow look."""
        await self.begin()
        delays = [await self.decided_elsewhere(number) for number in range(3)]
        for kind in zip(*delays, strict=True):
            self.assertLess(min(kind), 1.0, delays)
            self.assertLess(max(kind), LOOK_SECONDS / 2, delays)

    @seldom
    async def test_unheard(self) -> None:
        """If no notice arrives, and no connection seems broken, by the look every ten seconds."""
        await self.begin()
        with self.server.connect(self.name) as admin:
            found = admin.execute(
                "SELECT pid FROM pg_stat_activity WHERE datname = %s AND pid <> pg_backend_pid()"
                " AND (query LIKE 'LISTEN%%' OR query LIKE '%%pg_try_advisory_lock%%')",
                [self.name],
            ).fetchall()
        listening = [pid for (pid,) in found]
        self.assertEqual(len(listening), 2)
        self.addCleanup(self.each, listening, signal.SIGCONT)
        self.each(listening, signal.SIGSTOP)
        delays = await self.decided_elsewhere(0)
        self.assertLess(max(delays), LOOK_SECONDS + 5, delays)

    def each(self, processes: Sequence[int], how: int) -> None:
        """Send a signal to these."""
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, how)
