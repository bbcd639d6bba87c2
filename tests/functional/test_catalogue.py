"""The catalogue over MCP: a changed file is told at once."""

from operator import gt
from pathlib import Path

from tests.functional.mcp_client import McpClient
from tests.functional.operated import UNGATED, OperatedTestCase
from tests.functional.reactor import until

TOOLS, RESOURCES = "notifications/tools/list_changed", "notifications/resources/list_changed"
UNGATED_TOOL = UNGATED.replace("-", "_")
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
