"""The git of agents: it clones from a sandbox without a key, and what it pushes is shown, approved, and sent once."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

import attrs

from tests.connectors.repository import GitServer, Pair, git
from tests.extent import seldom
from tests.functional import canary
from tests.functional.operated import PASSPHRASE, kinds
from tests.functional.reactor import until
from tests.functional.script import Call, Say
from tests.functional.test_own_tools import Inside, OwnToolsTestCase

HOST = "github.com"
URL = f"https://{HOST}/site.git"
TOKEN = "github_pat_canary_7719044"
CONNECTOR = f"""
[connector]
name = "local://me/git-hub"
version = "1.0.0"
kind = "git"
base_url = {{ default = "https://{HOST}", bindable = false }}
hosts = ["{HOST}:443"]

[credential]
kind = "basic"

[own_tools]
service = "git-hub"
"""
_CLONE = f"cd /tmp && git clone -q {URL} site && cd site && git config user.name A && git config user.email a@b"
_PUSH = "cd /tmp/site && git push origin main"
_AGAIN = "git -C site push origin main"
_FIRST = (
    f"git clone -q {URL} site && git -C site config user.name A && git -C site config user.email a@b && "
    f"echo hello >site/new.txt && git -C site add new.txt && git -C site commit -qm 'Add new.txt' && {_AGAIN}"
)


def _commit(name: str, content: str) -> str:
    return f"cd /tmp/site && {content} >{name} && git add {name} && git commit -qm 'Add {name}'"


class GitOfAgentsTests(OwnToolsTestCase):
    """A user whose agent works on a repository at a git host, which is a double with a real git behind it."""

    skip = None

    async def begin(self, hold_seconds: int = 2) -> None:
        """Have a daemon, a repository, and a connector to its host with a token."""
        self.pair = Pair.made(self.home.root / "remote")
        git(self.pair.bare, "config", "uploadpack.allowFilter", "true")
        self.server = GitServer(self.pair.bare.parent, "refuses")
        await self.open_internet(self.server, HOST)
        await self.operator("vault", "init")
        await self.set_config(f"own_tools: {{hold_seconds: {hold_seconds}}}\n")
        path = self.home.root / "git-hub.toml"
        path.write_text(CONNECTOR)
        await self.operator("connector", "add", str(path), "--yes")
        words = ("binding", "setup", "local://me/git-hub", "--secret-fd", "4")
        command = self.home.with_passphrase(PASSPHRASE, "aileron", *words)
        secret = f"x-access-token:{TOKEN}".encode()
        bound = attrs.evolve(command, feeds={**command.feeds, 4: secret})
        self._expect(await self.run_command(bound), 0)
        await self.operator("own-tools", "add", "git-hub", "--yes")

    def enter(self, *options: str, **environment: str) -> Inside:
        """Launch the agent."""
        inside = ("aileron", "launch", "--sandbox", "--own-tools", "git-hub", *options, "opencode")
        command, programs = self.home.script(*inside), self.write_agent()
        path = f"{programs}:{command.environment['PATH']}"
        return Inside(self, self.start(attrs.evolve(command, environment={**command.environment, "PATH": path})))

    @property
    def stored(self) -> list[Path]:
        """The stored contents of pushes."""
        directory = self.home.aileron / "tool-contents"
        return [*directory.iterdir()] if directory.exists() else []

    def is_at(self, commit: str) -> bool:
        """Return whether the remote's branch is at a commit."""
        return self.pair.remote() == commit

    async def shown(self, approval: Mapping[str, Any]) -> str:
        """Return an approval as a terminal shows it."""
        return json.dumps(await self.told("approval", "show", approval["id"]))

    async def test_push(self) -> None:
        """A clone and a fetch work at once; a push waits, its patch is shown, and once approved it is there."""
        await self.begin()
        inside = self.enter()
        cloned = await inside.run(_CLONE)
        self.assertEqual(cloned.exit_code, 0, cloned)
        await inside.run(_commit("new.txt", "echo hello"))
        parked = await inside.run(_PUSH)
        self.assertNotEqual(parked.exit_code, 0)
        self.assertIn("main -> main (waits for approval)", parked.stderr)
        (approval,) = await self.pending()
        self.assertIn(f"/approvals/{approval['id']}", parked.stderr)
        shown = await self.shown(approval)
        for expected in ("Push to site.git: update main", "+hello", "Add new.txt"):
            self.assertIn(expected, shown)
        self.assertEqual(len(self.stored), 1)
        await self.approve(approval["id"])
        commit = (await inside.run("cd /tmp/site && git rev-parse HEAD")).stdout.strip()
        await until(self.reactor, partial(self.is_at, commit), 30, "the push")
        again = await inside.run(_PUSH)
        self.assertEqual((again.exit_code, "Everything up-to-date" in again.stderr), (0, True), again)
        await inside.end()
        git(self.pair.bare, "fsck", "--strict")
        events = await self.audit()
        self.assertIn("own_tools.read", kinds(events))
        self.assertEqual(kinds(events).count("execution.succeeded"), 1)
        self.assertNotIn(TOKEN, json.dumps(events))
        self.assertEqual(canary.in_files(self.home.aileron, TOKEN), [])

    @seldom
    async def test_held(self) -> None:
        """A long push that is approved while it waits notices nothing; one that is denied reads the reason."""
        await self.begin(hold_seconds=60)
        inside = self.enter()
        await inside.run(_CLONE)
        await inside.run(_commit("long.bin", "head -c 3000000 /dev/urandom"))
        number = inside.begin(_PUSH)
        (approval,) = await self.pending()
        await self.approve(approval["id"])
        pushed = await inside.finish(number)
        self.assertEqual(pushed.exit_code, 0, pushed)
        self.assertIn("main -> main", pushed.stderr)
        number = inside.begin(f"{_PUSH}:other")
        (approval,) = await self.pending()
        await self.operator("approval", "deny", approval["id"], "--reason", "Not this branch.")
        denied = await inside.finish(number)
        self.assertIn("main -> other (denied)", denied.stderr)
        self.assertIn("Not this branch.", denied.stderr)
        await inside.end()
        self.assertIsNone(self.pair.remote("refs/heads/other"))
        await until(self.reactor, lambda: not self.stored, 90, "the deletion of what was stored")

    @seldom
    async def test_refused(self) -> None:
        """A credential in the URL, a forged push and other pages of the host are refused, and git says so."""
        await self.begin()
        inside = self.enter()
        for script, expected in (
            (f"git -c http.extraHeader='Authorization: Basic YTpi' ls-remote {URL}", "a credential of its own"),
            (f"curl -sS https://{HOST}/login", "only git over HTTPS"),
            (
                f"curl -sS -H 'Content-Type: application/x-git-receive-pack-request' -d 0000x {URL}/git-receive-pack",
                "cannot be passed on",
            ),
        ):
            finished = await inside.run(script)
            self.assertIn(expected, finished.stdout + finished.stderr)
        await inside.end()
        self.assertEqual(self.server.asked, [])

    @seldom
    async def test_agent(self) -> None:
        """OpenCode pushes and ends. Its push is approved afterwards, and the next session finds it done."""
        commands = [Call("bash", {"command": each, "description": "Pushes"}) for each in (_FIRST, _AGAIN)]
        self.model = self.llm({"gpt-5.1": [commands[0], Say("it waits"), commands[1], Say("it is there")]})
        await self.begin()
        ended = await self.launch_scripted("git-hub").finish(180)
        self.assertIn("it waits", ended.stdout, ended)
        (approval,) = await self.pending()
        (parked,) = self.model.script.received[-1].tool_results
        self.assertIn("main -> main (waits for approval)", parked)
        commit = git(self.home.project / "site", "rev-parse", "HEAD")
        self.assertFalse(self.is_at(commit))
        await self.approve(approval["id"])
        await until(self.reactor, partial(self.is_at, commit), 30, "the push")
        ended = await self.launch_scripted("git-hub").finish(180)
        self.assertIn("it is there", ended.stdout, ended)
        self.assertIn("Everything up-to-date", self.model.script.received[-1].tool_results[-1])
        self.assertEqual(kinds(await self.audit()).count("execution.succeeded"), 1)
