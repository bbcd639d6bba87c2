"""The hook that waits for an outcome, as Claude Code runs it, and what else the installed parts say of waking."""

import json
import os
import shlex
import sys
import time

from aileron.features.wake.programs import hook_command
from tests.extent import seldom
from tests.functional.operated import GATED, SHIP, OperatedTestCase
from tests.functional.process import Command, Running

_CONFIG = "wake:\n  after_seconds: 1\n"
_WOKEN = 2


class HookTests(OperatedTestCase):
    """C{hook.py}."""

    async def furnish(self, config: str = "") -> None:
        """The usual home, with a short rest."""
        await super().furnish(config or _CONFIG)
        self.agent = await self.session("claude")

    def hook(self, *, waits: bool = True, **environment: str) -> Command:
        """Claude Code's hook at the end of a turn."""
        address = {"AILERON_URL": self.home.discovery()["url"], "AILERON_TOKEN": self.agent.token, **environment}
        line = (
            f"printf %s {shlex.quote(json.dumps({'session_id': 'c-1'}))} | {hook_command(sys.executable, waits=waits)}"
        )
        return Command(
            arguments=("/bin/sh", "-c", line), environment={**os.environ, **address}, directory=self.home.root
        )

    async def begun(self) -> tuple[str, Running]:
        """A gated call that waits, and a hook that waits for its outcome."""
        await self.furnish()
        reply = await self.run_action(self.agent, GATED, SHIP)
        return str(reply.body["approval_id"]), self.start(self.hook())

    async def test_woken(self) -> None:
        """It ends with 2 and the outcome after the approval, once; the next has nothing to wait for."""
        run_id, hook = await self.begun()
        await self.pause(1)
        await self.approve(run_id)
        finished = await hook.finish(20)
        self.assertEqual((finished.exit_code, finished.stdout), (_WOKEN, ""))
        self.assertIn(f"{GATED}, which you called earlier, has completed", finished.stderr)
        again = await self.run_command(self.hook())
        self.assertEqual((again.exit_code, again.stdout, again.stderr), (0, "", ""))

    async def test_denied(self) -> None:
        """A denial ends it without a word."""
        run_id, hook = await self.begun()
        await self.operator("approval", "deny", run_id)
        finished = await hook.finish(20)
        self.assertEqual((finished.exit_code, finished.stdout, finished.stderr), (0, "", ""))

    async def test_session_ended(self) -> None:
        """So does the end of the session."""
        _, hook = await self.begun()
        await self.pause(1)
        await self.operator("session", "end", self.agent.id)
        finished = await hook.finish(20)
        self.assertEqual((finished.exit_code, finished.stdout, finished.stderr), (0, "", ""))

    @seldom
    async def test_daemon_gone(self) -> None:
        """A daemon that is gone ends it too, after a while, and one that only says something at once."""
        _, hook = await self.begun()
        says = self.hook(waits=False)
        await self.pause(1)
        await self.kill_daemon()
        began = time.monotonic()
        finished = await self.run_command(says)
        self.assertLess(time.monotonic() - began, 2.0)
        self.assertEqual((finished.exit_code, finished.stdout, finished.stderr), (0, "", ""))
        finished = await hook.finish(30)
        self.assertEqual((finished.exit_code, finished.stdout, finished.stderr), (0, "", ""))

    @seldom
    async def test_restart(self) -> None:
        """A daemon that is back soon still tells what is decided then."""
        run_id, hook = await self.begun()
        await self.pause(1)
        await self.kill_daemon()
        await self.unlock()
        await self.pause(3)
        await self.approve(run_id)
        finished = await hook.finish(30)
        self.assertEqual(finished.exit_code, _WOKEN, finished.stderr)

    async def test_wrong_address(self) -> None:
        """Without an address, or with another token, it says nothing."""
        await self.furnish()
        for wrong in ({"AILERON_URL": "https://a.example"}, {"AILERON_TOKEN": "ail_a_wrong"}):
            finished = await self.run_command(self.hook(waits=True, **wrong))
            self.assertEqual((finished.exit_code, finished.stdout, finished.stderr), (0, "", ""))
