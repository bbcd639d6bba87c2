"""A launcher that is killed leaves no session behind; one that is stopped keeps its own, as does a new daemon."""

import os
import signal
from collections.abc import Mapping
from typing import Any

import attrs

from aileron.api._sessions import CHECK_SECONDS, GRACE_SECONDS
from tests.functional.operated import OperatedTestCase
from tests.functional.process import Running

_BACK_SECONDS = 5.0
"""A launcher is back by then."""

_AGENT = """\
#!/bin/sh
trap '' HUP
echo "agent $$"
while :; do sleep 1; done
"""


class OrphanTests(OperatedTestCase):
    """Real launchers, a real daemon, the real grace."""

    timeout = 300

    async def launched_agent(self) -> Running:
        """An agent that stays, and its launcher."""
        programs = self.home.root / "programs"
        programs.mkdir(exist_ok=True)
        (programs / "opencode").write_text(_AGENT)
        (programs / "opencode").chmod(0o755)
        command = self.home.script("aileron", "launch", "opencode")
        path = f"{programs}:{os.environ['PATH']}"
        running = self.start(attrs.evolve(command, environment={**command.environment, "PATH": path}))
        await running.expect("agent [0-9]+")
        return running

    async def sessions(self) -> list[Mapping[str, Any]]:
        """The agents' sessions, newest first."""
        found = await self.told("sessions", "list")
        return [each for each in found["items"] if each["agent"] == "opencode"]

    async def test_killed(self) -> None:
        """After kill -9 a session ends as orphaned, on record; that of a launcher which stands still does not."""
        await self.furnish()
        stopped, killed = await self.launched_agent(), await self.launched_agent()
        of_killed, of_stopped = [each["id"] for each in await self.sessions()]
        os.kill(killed.pid, signal.SIGKILL)
        await self.kill_daemon()
        await self.unlock()
        await self.pause(_BACK_SECONDS)
        os.kill(stopped.pid, signal.SIGSTOP)
        states = {each["id"]: each["state"] for each in await self.sessions()}
        self.assertEqual(states, {of_killed: "running", of_stopped: "running"})
        await self.pause(GRACE_SECONDS + 3 * CHECK_SECONDS)
        states = {each["id"]: each["state"] for each in await self.sessions()}
        self.assertEqual(states, {of_killed: "orphaned", of_stopped: "running"})
        (ended,) = await self.audit("--type", "session.ended", "--session", of_killed)
        self.assertEqual((ended["payload"]["ending"], ended["actor"]["type"]), ("orphaned", "service"))
        os.kill(stopped.pid, signal.SIGCONT)
        finished = await stopped.signal(signal.SIGTERM)
        self.assertIn(f"session {of_stopped} ended after", finished.stderr)
