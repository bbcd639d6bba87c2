"""The catalogue over MCP: a changed file is told at once, and many actions do not fill the list."""

import json
from collections.abc import Mapping
from operator import gt
from pathlib import Path
from typing import Any

from tests.functional.mcp_client import McpClient
from tests.functional.operated import GATED, SHIP, UNGATED, OperatedTestCase
from tests.functional.reactor import until

TOOLS, RESOURCES = "notifications/tools/list_changed", "notifications/resources/list_changed"
GATED_TOOL, UNGATED_TOOL = GATED.replace("-", "_"), UNGATED.replace("-", "_")
SECONDS = 1.0
"""From the writing of a file until the client hears of it."""


class ChangeTests(OperatedTestCase):
    """Files change while an agent runs."""

    async def test_list_changed(self) -> None:
        """From a file's change to the client's notification it takes less than a second, of tools and of documents."""
        await self.furnish()
        client = await self.mcp(await self.session())
        await client.tools()
        path = self.state.actions / f"{UNGATED}.md"
        trusted = path.read_bytes()
        took: list[float] = []
        for there in (False, True) * 4:
            content = trusted if there else trusted + b"\nMore.\n"
            took.append(await self._told_after(client, path, content, there))
            uris = [each["uri"] for each in (await client.ask("resources/list"))["resources"]]
            self.assertEqual(f"aileron://actions/{UNGATED}" in uris, there)
        # The two best of them, since a machine that is busy may hold back many.
        self.assertLess(sorted(took)[1], SECONDS, took)

    async def _told_after(self, client: McpClient, path: Path, content: bytes, there: bool) -> float:
        """The seconds until the client heard of both lists, and found the change in the one of tools."""
        began, heard = self.reactor.seconds(), self._heard(client)
        path.write_bytes(content)
        while True:  # it may hear of the first list as well, which was none before
            heard = await self._more(client, heard)
            took = self.reactor.seconds() - began
            if (UNGATED_TOOL in await client.tools()) == there:
                return took

    async def _more(self, client: McpClient, than: tuple[int, int]) -> tuple[int, int]:
        """How often the client has heard of each list, once it has of both."""
        await until(self.reactor, lambda: all(map(gt, self._heard(client), than)), 30, "the notifications")
        return self._heard(client)

    def _heard(self, client: McpClient) -> tuple[int, int]:
        return len(client.server.heard(TOOLS)), len(client.server.heard(RESOURCES))


class LeanTests(OperatedTestCase):
    """More actions than are listed."""

    async def test_reached(self) -> None:
        """The one that is used is listed; the other is found, described, run either way, and goes the one way."""
        await self.furnish()
        session = await self.session()
        await self.run_action(session, UNGATED)
        client = await self.mcp(session, wait_seconds=0, AILERON_LISTED_ACTIONS="1")
        self.assertEqual(
            await client.tools(),
            [
                UNGATED_TOOL,
                "aileron_diagnostics",
                "check_action_status",
                "describe_action",
                "run_action",
                "search_actions",
            ],
        )
        self.assertIn(GATED, (await client.call("search_actions", {"query": "channel"})).text)
        self.assertIn('"properties"', (await client.call("describe_action", {"name": GATED})).text)
        for tool, arguments in (("run_action", {"name": GATED, "args": SHIP}), (GATED_TOOL, SHIP)):
            said = await client.call(tool, arguments)
            self.assertIn("approval_id", said.text)
        self.assertEqual(len(await self.waiting(2)), 2)
        runs = await self._read(client, "aileron://runs")
        told = [(run["action"], run["status"]) for run in json.loads(runs)["runs"]]
        self.assertEqual(told, [(GATED, "pending_approval")] * 2 + [(UNGATED, "completed")])
        self.assertIn(GATED_TOOL, await self._read(client, f"aileron://actions/{GATED}"))
        guide = await client.ask("prompts/get", {"name": "how_to_use_aileron"})
        self.assertIn(GATED, guide["messages"][0]["content"]["text"])

    async def test_bad_cursor(self) -> None:
        """A cursor that no list gave is an error of its own."""
        await self.furnish()
        client = await self.mcp(await self.session())
        client.server.send("tools/list", {"cursor": "nonsense"}, 900)
        await until(self.reactor, lambda: client.server.answer(900) is not None, 30, "the answer")
        answer: Mapping[str, Any] = client.server.answer(900) or {}
        self.assertEqual(answer["error"]["code"], -32602)

    async def _read(self, client: McpClient, uri: str) -> str:
        return str((await client.ask("resources/read", {"uri": uri}))["contents"][0]["text"])
