"""Answering an agent's own permission prompts in a real browser, by keyboard alone and on a phone's width."""

import json
import os
import shlex
import sys
import time
from typing import Any

import attrs
from twisted.internet.defer import Deferred

from aileron.features.prompts._asks import MOST_WAITING_OF_SESSION
from aileron.features.prompts.programs import relay_command
from tests.functional.browsed import PagesTestCase
from tests.functional.operated import OperatedTestCase, kinds
from tests.functional.process import Command
from tests.functional.reactor import Patience, until
from tests.functional.web import Reply

_RULES = "prompts:\n  rules:\n    - {deny: Bash(rm *), reason: Use git rm.}\n"


class PromptsPageTests(PagesTestCase):
    """An agent whose hook asks, and the operator who sees it come."""

    def ask(self, command: str) -> Deferred[Reply]:  # type: ignore[override]
        """Claude Code's hook asks for a command; its reply comes later."""
        body = {
            "hook_event_name": "PermissionRequest",
            "session_id": "s",
            "cwd": str(self.home.project),
            "tool_name": "Bash",
            "tool_input": {"command": command, "description": "What the model says of it"},
        }
        url = f"{self.home.discovery()['url']}/v1/prompts/claude"
        return Deferred.fromCoroutine(self.web.ask("POST", url, self.agent.token, body))

    def decision(self, reply: Reply) -> Any:
        """What the agent is told."""
        return reply.body["hookSpecificOutput"]["decision"]

    async def test_answer(self) -> None:
        """Each prompt appears at once, apart from approvals, and each answer does what it says."""
        page = await self.entered("/approvals")
        await page.shows("No pending approvals")
        asked = self.ask("npm test -- x")
        await page.shows("Asked by the agents themselves · 1")
        await self.look_at(page, "prompts")
        await page.press("q")
        await page.until("document.activeElement.id.startsWith('once-')")
        await page.press("Enter")
        self.assertEqual(self.decision(await asked), {"behavior": "allow"})
        await page.shows("No pending approvals")
        denied = self.ask("rm x")
        await page.shows("rm x")
        await self.reach(page, "#asks input[name=reason]")
        await page.write("No")
        await self.use(page, "#asks button[id^=deny-]")
        self.assertEqual(self.decision(await denied), {"behavior": "deny", "message": "No"})
        session = self.ask("npm test -- y")
        await page.shows("npm test -- y")
        await self.use(page, "#asks button[id^=session-1-]")
        self.assertEqual(self.decision(await session), {"behavior": "allow"})
        self.assertEqual(self.decision(await self.ask("npm test -- z")), {"behavior": "allow"})
        await page.shows("No pending approvals")
        found = [each for each in kinds(await self.audit()) if each.startswith("ask.")]
        self.assertEqual(
            (found.count("ask.allowed"), found.count("ask.denied"), found.count("ask.requested")), (3, 1, 3)
        )
        self.assertEqual(page.problems, [])

    async def test_tried(self) -> None:
        """A rule beside a prompt is tried on earlier ones, and then one that is typed: a count and a list."""
        page = await self.entered("/approvals")
        waiting = [self.ask(command) for command in ("npm test -- x", "npm run build")]
        await page.shows("Asked by the agents themselves · 2")
        await self.use(page, "#asks a[href*='npm+test']")
        await page.shows("Bash(npm test -- x) would have answered 1 of the last 2.")
        await self.look_at(page, "try-rule")
        await self.reach(page, "#filter-rule")
        await page.press("End")
        await page.evaluate("document.activeElement.select()")
        await page.write("Bash(npm *)")
        await page.press("Enter")
        await page.shows("Bash(npm *) would have answered 2 of the last 2.")
        await page.shows("npm run build")
        self.assertEqual(await page.evaluate("document.querySelectorAll('main table.list')[0].rows.length"), 3)
        self.assertEqual([each.called for each in waiting], [False, False])
        self.assertEqual(page.problems, [])
        await self.operator("session", "end", self.agent.id)
        for each in waiting:
            await each

    async def test_flood(self) -> None:
        """A flood of prompts is answered at once without a decision, and the page stays usable."""
        page = await self.entered("/approvals")
        waiting = [self.ask(f"echo {number}") for number in range(MOST_WAITING_OF_SESSION)]
        await page.shows(f"Asked by the agents themselves · {MOST_WAITING_OF_SESSION}")
        for number in range(30):
            self.assertEqual((await self.ask(f"echo more {number}")).body, {})
        await self.use(page, "#asks button[id^=once-]")
        await page.shows(f"Asked by the agents themselves · {MOST_WAITING_OF_SESSION - 1}")
        self.assertEqual(sum(each.called for each in waiting), 1)
        await self.operator("session", "end", self.agent.id)
        for each in waiting:
            await each
        await page.shows("No pending approvals")
        self.assertEqual(kinds(await self.audit()).count("ask.overflowed"), 1)

    async def test_stopping(self) -> None:
        """A daemon that stops leaves the question to the agent's terminal."""
        asked = self.ask("npm test")
        page = await self.entered("/approvals")
        await page.shows("npm test")
        await self.command("daemon", "stop")
        reply = await asked.addErrback(lambda _: None)
        self.assertTrue(reply is None or reply.body == {}, "a daemon that stops decided")


class RelayTests(OperatedTestCase):
    """The program of command hooks, as an agent runs it."""

    def hook(self, *words: str, **environment: str) -> Command:
        """Codex's hook asks by it."""
        payload = json.dumps({"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm x"}})
        line = f"printf %s {shlex.quote(payload)} | {relay_command(sys.executable, 'codex', block='block' in words)}"
        return Command(
            arguments=("/bin/sh", "-c", line), environment={**os.environ, **environment}, directory=self.home.root
        )

    async def test_reply(self) -> None:
        """It prints the daemon's reply."""
        await self.furnish(_RULES)
        session = await self.session("codex")
        address = {"AILERON_URL": self.home.discovery()["url"], "AILERON_TOKEN": session.token}
        finished = await self.run_command(self.hook(**address))
        self.assertEqual((finished.exit_code, finished.stderr), (0, ""))
        said = json.loads(finished.stdout)["hookSpecificOutput"]
        self.assertEqual((said["permissionDecision"], said["permissionDecisionReason"]), ("deny", "Use git rm."))
        wrong = await self.run_command(self.hook(**{**address, "AILERON_TOKEN": "ail_a_wrong"}))
        self.assertEqual((wrong.exit_code, wrong.stdout, wrong.stderr), (0, "", ""))

    async def test_gone(self) -> None:
        """Without a daemon it says nothing within a second, or blocks if it has to."""
        await self.furnish(_RULES)
        session = await self.session("codex")
        address = {"AILERON_URL": self.home.discovery()["url"], "AILERON_TOKEN": session.token}
        await self.kill_daemon()
        began = time.monotonic()
        finished = await self.run_command(self.hook(**address))
        self.assertLess(time.monotonic() - began, 1.0)
        self.assertEqual((finished.exit_code, finished.stdout, finished.stderr), (0, "", ""))
        blocked = await self.run_command(self.hook("block", **address))
        self.assertEqual((blocked.exit_code, blocked.stdout), (2, ""))
        self.assertIn("Nothing was run", blocked.stderr)
        nowhere = await self.run_command(self.hook(AILERON_URL="https://a.example"))
        self.assertEqual((nowhere.exit_code, nowhere.stdout), (0, ""))


_AGENT = """\
#!{python}
import json, os, subprocess, urllib.request

for plugin in json.loads(os.environ["OPENCODE_CONFIG_CONTENT"])["plugin"]:
    urllib.request.urlopen(plugin).read()
asked = {{"event": "asks", "tool": "bash", "input": {{"command": "npm test"}}, "cwd": os.getcwd()}}
headers = {{"Authorization": "Bearer " + os.environ["AILERON_TOKEN"], "Content-Type": "application/json"}}
url = os.environ["AILERON_URL"] + "/v1/prompts/opencode"
request = urllib.request.Request(url, json.dumps(asked).encode(), headers)
print("plugin:", json.load(urllib.request.urlopen(request))["decision"], flush=True)
asked = {{"hook_event_name": "PermissionRequest", "tool_name": "Bash", "tool_input": {{"command": "npm run x"}}}}
relay = subprocess.run({relay!r}, shell=True, input=json.dumps(asked), capture_output=True, text=True)
print("relay:", json.loads(relay.stdout)["hookSpecificOutput"]["decision"], relay.stderr)
print("sees the home:", os.path.exists({discovery!r}))
"""


class SandboxTests(OperatedTestCase):
    """A program in place of OpenCode in a sandbox, which asks by the plugin's request and by the program of hooks."""

    def agent(self) -> Command:
        """Its launch."""
        relay, discovery = relay_command(sys.executable, "codex"), str(self.home.aileron / "daemon.json")
        program = self.home.root / "programs" / "opencode"
        program.parent.mkdir()
        program.write_text(_AGENT.format(python=sys.executable, relay=relay, discovery=discovery))
        program.chmod(0o700)
        command = self.launched()
        return attrs.evolve(command, arguments=(command.arguments[0], "launch", "--sandbox", "--prompts", "opencode"))

    async def waiting_ask(self) -> Any:
        """The prompt that waits, once there is one."""
        patience = Patience(self.reactor, 30)
        while not (items := (await self.told("ask", "list"))["items"]):
            self.assertFalse(patience.is_over, "no prompt is listed")
            await self.pause(0.2)
        (found,) = items
        return found

    async def test_answered(self) -> None:
        """Its hooks reach the daemon from inside, each prompt is listed, and each answer reaches the agent."""
        await self.furnish()
        agent = self.start(self.agent())
        first = await self.waiting_ask()
        self.assertEqual((first["agent"], first["text"]), ("opencode", "npm test"))
        await self.operator("ask", "allow", first["id"])
        await until(self.reactor, lambda: "plugin:" in str(agent.output), 30, "the answer")
        second = await self.waiting_ask()
        self.assertEqual((second["agent"], second["text"]), ("codex", "npm run x"))
        await self.operator("ask", "deny", second["id"], "--reason", "Not now.")
        finished = await agent.finish(60)
        self.assertEqual(finished.exit_code, 0, finished.stderr)
        self.assertIn("plugin: allow", finished.stdout)
        self.assertIn("relay: {'behavior': 'deny', 'message': 'Not now.'}", finished.stdout)
        self.assertIn("sees the home: False", finished.stdout)
