"""What C{aileron mcp config} prints, in the programs that it is for."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path

from twisted.internet.threads import deferToThread

from tests.agents import clients
from tests.extent import seldom
from tests.functional.mcp_client import McpClient
from tests.functional.operated import GATED, UNGATED, OperatedTestCase
from tests.functional.process import Command
from tests.functional.reactor import until

_SECONDS = 120
_DIAGNOSTICS = "aileron_diagnostics"
_GATED, _UNGATED = GATED.replace("-", "_"), UNGATED.replace("-", "_")


class OtherClientsTests(OperatedTestCase):
    """Each program as its maker publishes it, and a daemon that lets it in by name."""

    timeout = 900

    @seldom
    async def test_connect(self) -> None:
        """Each starts C{aileron-mcp} of what was printed: it says that it is connected, or has a session of its own."""
        where = clients.directory()
        await deferToThread(clients.install, where)
        self.addCleanup(self.end_left_behind, where)
        await self.furnish(f"clients: {json.dumps([*clients.CLIENTS])}\n")
        for name, client in clients.CLIENTS.items():
            printed = json.loads((await self.command("mcp", "config", name, "--json")).stdout)
            place = self.home.user / client.place
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_text(printed["text"])
            environment = self.home.environment(**client.variables)
            command = Command(arguments=client.command(where), environment=environment, directory=self.home.project)
            finished = await self.start(command).finish(_SECONDS)
            said = f"{name}: {finished.stdout[-2000:]}{finished.stderr[-2000:]}"
            if client.connected:  # it only asks who is there, and leaves
                self.assertIn(client.connected, f"{finished.stdout}{finished.stderr}", said)
                continue
            sessions = (await self.told("session", "list"))["items"]
            self.assertIn(name, [each["agent"] for each in sessions], said)

    def end_left_behind(self, where: Path) -> None:
        """End what a program has started beside itself, such as Cline's own daemon, which outlives it.

        :param where: the programs are installed.
        """
        for process in Path("/proc").glob("[0-9]*"):
            try:
                is_theirs = (process / "exe").readlink().is_relative_to(where.resolve())
                if is_theirs and os.fsencode(self.home.root) in (process / "environ").read_bytes():
                    os.kill(int(process.name), signal.SIGKILL)
            except OSError:  # it is another user's, or has just ended
                continue

    async def started(self) -> McpClient:
        """The C{aileron-mcp} that a client program starts in the project, its hands shaken."""
        environment = self.home.environment(AILERON_CLIENT="cursor")
        client = self.start_mcp(environment, self.home.project, self.forked("aileron-mcp"))
        await client.shake_hands()
        return client

    async def test_restricted(self) -> None:
        """The project's file takes actions away from such a client; one that is not understood lets it do nothing."""
        await self.furnish("clients: [cursor]\n")
        file = self.home.project / ".aileron.toml"
        file.write_text(f'[tools]\ndeny = ["{UNGATED}"]\n')
        client = await self.started()
        offered = await client.tools()
        self.assertEqual((_GATED in offered, _UNGATED in offered), (True, False))
        (session,) = [each for each in (await self.told("session", "list"))["items"] if each["agent"] == "cursor"]
        self.assertEqual(session["selection"]["deny"], [UNGATED])
        file.write_text("[tool]\n")
        client = await self.started()
        offered = await client.tools()
        self.assertEqual((_GATED in offered, _UNGATED in offered), (False, False))
        for tool in (_DIAGNOSTICS, _GATED):
            told = (await client.call(tool, {})).text
            self.assertIn(f"{file} may have only a table tools", told)
            self.assertIn("correct or remove this file", told)
        file.unlink()
        await until(
            self.reactor, lambda: bool(client.server.heard("notifications/tools/list_changed")), 30, "the tools"
        )
        self.assertIn(_UNGATED, await client.tools())
