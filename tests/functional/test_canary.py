"""The bound key, looked for in everything that an agent or a file could show: only the requests that left have it."""

import contextlib
import json
import os
from pathlib import Path
from typing import Any

from aileron.home import running_pid
from tests.functional import canary, slack, tree
from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.llm import ScriptedLLM
from tests.functional.operated import GATED, PASSPHRASE, SHIP, UNGATED, AgentSession
from tests.functional.script import Call, Say

ECHOES = [
    slack.echo(),
    slack.echo(applied=False),
    slack.echo(500, applied=False),
    slack.echo(403, applied=False),
    slack.echo(302, applied=False),
    slack.drop(applied=False),
]


MODEL, OWN_KEY = "gpt-5.1", "sk-canary-7c0d11e94b"


class CanaryTests(GatewayedTestCase):
    """A long run of everything, with a service that repeats the key wherever it can."""

    executes_daemons = True

    def setUp(self) -> None:
        """Note what was said, to be searched."""
        super().setUp()
        self.said: dict[str, str] = {}
        self.passing: list[str] = []

    async def test_key_is_nowhere(self) -> None:
        """Neither key nor passphrase is in any file, log, record, answer, argument or environment.

        The keys that pass by, the session's of the gateway and the user's own of the model, are in the agent's
        environment alone.
        """
        llm = self.llm({MODEL: [Call("_ship_update", SHIP), Say("all done")]})
        self.use_upstream(llm)
        await self.furnish()
        session = await self.session()
        await self.echo(session)
        await self.work(llm)
        await self.look_at_everything(session)
        await self.assert_noticed()
        await self.restart()
        self.assertGreater(len(self.workspace.requests), len(ECHOES))
        for request in self.workspace.requests:
            self.assertEqual(request.headers["authorization"], f"Bearer {self.workspace.token}")
            self.assertNotIn(self.workspace.token, json.dumps([request.path, request.body]))
        self.assert_nowhere()

    async def echo(self, session: AgentSession) -> None:
        """Answers that repeat the key: to an agent's own request, ungated and gated, over HTTP and MCP."""
        client = await self.mcp(session)
        for behaviour in ECHOES:
            self.workspace.next = [behaviour]
            self.said[f"http {behaviour}"] = (await self.run_action(session, UNGATED)).text
            self.workspace.next = [behaviour]
            self.said[f"mcp {behaviour}"] = (await client.call("post_note", SHIP)).text
        self.workspace.next = [slack.echo(applied=False)]
        asked = (await self.run_action(session, GATED)).body["approval_id"]
        finished = await self.approve(asked, code=1)
        self.said["approve"] = finished.stdout + finished.stderr
        self.said["status"] = (await client.call("check_action_status", {"approval_id": asked})).text
        self.said["mcp"] = json.dumps(client.server.messages) + client.server.errors.decode()

    async def work(self, llm: ScriptedLLM) -> None:
        """The main job with the real agent; while it waits, every process of it is searched, and the daemon."""
        self.workspace.next = []
        self.configure_agent(f"openai/{MODEL}")
        agent = self.launch(OPENAI_API_KEY=OWN_KEY)
        (approval,) = await self.waiting()
        members = list(tree.descendants(agent.pid))
        self.assertGreaterEqual(len(members), 2)
        self.assert_not_in_processes(agent.pid, self.daemon_pid())
        for member in members:
            with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it may end at any time
                self.assert_not_in_processes(member.pid)
        self.note_passing_keys(agent.pid, members)
        await self.approve(approval["id"])
        finished = await agent.finish(120)
        self.said["agent"] = finished.stdout + finished.stderr
        self.said["model"] = "".join(json.dumps(dict(each.body)) for each in llm.script.received)
        paths = json.dumps([[each.path, dict(each.headers)] for each in llm.script.received])
        self.assertEqual(("ail_" in paths, paths.count(OWN_KEY)), (False, 2))

    def note_passing_keys(self, launcher: int, members: list[tree.Member]) -> None:
        """Take the gateway key from where it may be, and see that neither is where it may not be."""
        (agent,) = [member for member in members if member.program == "opencode"]
        given = json.loads(agent.environment["OPENCODE_CONFIG_CONTENT"])["provider"]["openai"]["options"]
        self.passing = [given["headers"]["X-Aileron-Gateway-Key"], OWN_KEY]
        self.assertTrue(self.passing[0].startswith("ail_g_"))
        arguments = json.dumps([member.arguments for member in members])
        for key in self.passing:
            self.assertNotIn(key, arguments)
            self.assertEqual(canary.in_process(self.daemon_pid(), key), [])
        self.assertEqual(canary.in_process(launcher, self.passing[0]), [])

    async def look_at_everything(self, session: AgentSession) -> None:
        """Everything that operator and agent can read."""
        for command in (
            ("runs", "list"),
            ("approval", "list", "--state", "completed"),
            ("audit", "list"),
            ("binding", "list"),
        ):
            self.said[" ".join(command)] = json.dumps(await self.told(*command))
        for run in (await self.told("runs", "list"))["items"][:3]:
            self.said[f"run {run['id']}"] = json.dumps(await self.told("runs", "show", run["id"]))
        for path in ("runs", "actions", "status", "sessions"):
            url = f"{self.home.discovery()['url']}/v1/{path}"
            self.said[path] = (await self.web.ask("GET", url, session.token)).text

    async def assert_noticed(self) -> None:
        """Each answer that held the key is on record, and the binding is flagged."""
        echoed = await self.audit("--type", "secret.echoed")
        self.assertEqual(len(echoed), 2 * (len(ECHOES) - 1) + 1)
        (binding,) = (await self.told("binding", "list"))["items"]
        self.assertIsNotNone(binding["flag"])

    async def restart(self) -> None:
        """A kill, which leaves the write-ahead log behind, and another life."""
        await self.kill_daemon()
        self.assert_nowhere()
        await self.unlock()
        self.assert_not_in_processes(self.daemon_pid())
        await self.command("daemon", "stop")

    def daemon_pid(self) -> int:
        """The daemon's process."""
        pid = running_pid(self.state)
        assert pid
        return pid

    def assert_not_in_processes(self, *pids: int) -> None:
        """Fail if an environment or an argument of one of them shows key or passphrase."""
        found: list[Any] = [each for pid in pids for word in self.words() for each in canary.in_process(pid, word)]
        self.assertEqual(found, [])

    def assert_nowhere(self) -> None:
        """Fail if anything that was said or written shows key or passphrase; the agent's output is in it."""
        for word in (*self.words(), *self.passing):
            self.assertEqual(canary.in_files(self.home.root, word), [])
            for place, text in self.said.items():
                self.assertEqual(list(canary.in_bytes(place, text.encode(), word)), [])
        cores = [path for path in Path(self.home.root).rglob("core*") if path.is_file() and os.access(path, os.R_OK)]
        self.assertEqual([path for path in cores if path.read_bytes()[:4] == b"\x7fELF"], [])

    def words(self) -> tuple[str, str]:
        """What must not be seen."""
        return self.workspace.token, PASSPHRASE
