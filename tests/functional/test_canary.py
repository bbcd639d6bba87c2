"""The bound key, looked for in everything that an agent or a file could show: only the requests that left have it."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

from aileron.home.lock import running_pid
from tests.functional import canary, slack
from tests.functional.case import FunctionalTestCase
from tests.functional.gatewayed import GatewayedTestCase
from tests.functional.operated import GATED, PASSPHRASE, SHIP, UNGATED, AgentSession

ECHOES = [
    slack.echo(),
    slack.echo(applied=False),
    slack.echo(500, applied=False),
    slack.echo(403, applied=False),
    slack.echo(302, applied=False),
    slack.drop(applied=False),
]


class CanaryTestCase(GatewayedTestCase):
    """Looks for the bound key and the passphrase, with a daemon whose process is its own.

    :ivar said: whatever was said, by what said it.
    :ivar passing: keys that pass by.
    """

    executes_daemons = True

    def setUp(self) -> None:
        """Note what was said, to be searched."""
        super().setUp()
        self.said: dict[str, str] = {}
        self.passing: list[str] = []

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


class ProcessTests(FunctionalTestCase):
    """The search of a process."""

    def test_found(self) -> None:
        """What its arguments and its environment show is found."""
        pipe = subprocess.PIPE
        process = subprocess.Popen(["cat"], stdin=pipe, stdout=pipe, env={"TOKEN": "canary-of-a-process"})
        self.addCleanup(process.communicate)
        self.addCleanup(process.kill)
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(b"begun\n")
        process.stdin.flush()
        self.assertEqual(process.stdout.readline(), b"begun\n")  # until a program runs, it has no arguments
        self.assertEqual(
            canary.in_process(process.pid, "canary-of-a-process"),
            [canary.Finding(f"/proc/{process.pid}/environ", "plain")],
        )
        self.assertEqual(canary.in_process(process.pid, "canary-of-another"), [])

    def test_ended(self) -> None:
        """A process that has ended is no process in which nothing was found, whether it was waited for or not."""
        process = subprocess.Popen(["true"])
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        self.assertRaises(FileNotFoundError, canary.in_process, process.pid, "canary-of-a-process")
        process.wait()
        self.assertRaises(FileNotFoundError, canary.in_process, process.pid, "canary-of-a-process")


class CanaryTests(CanaryTestCase):
    """A long run of everything, with a service that repeats the key wherever it can."""

    async def test_key_is_nowhere(self) -> None:
        """Neither key nor passphrase is in any file, log, record, answer, argument or environment."""
        await self.furnish()
        session = await self.session()
        await self.echo(session)
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
