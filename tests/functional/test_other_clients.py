"""What C{aileron mcp config} prints, in the programs that it is for."""

from __future__ import annotations

import json

from twisted.internet.threads import deferToThread

from tests.agents import clients
from tests.extent import seldom
from tests.functional.operated import OperatedTestCase
from tests.functional.process import Command

_SECONDS = 120


class OtherClientsTests(OperatedTestCase):
    """Each program as its maker publishes it, and a daemon that lets it in by name."""

    timeout = 900

    @seldom
    async def test_connect(self) -> None:
        """Each starts C{aileron-mcp} of what was printed: it says that it is connected, or has a session of its own."""
        where = clients.directory()
        await deferToThread(clients.install, where)
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
