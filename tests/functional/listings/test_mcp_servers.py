"""C{doc/mcp-servers.md}, played: tools of an MCP server are chosen and called, and reviewed once one has changed."""

from __future__ import annotations

from typing import cast

from twisted.internet.interfaces import IProtocolFactory
from twisted.protocols.portforward import ProxyFactory

from tests.extent import seldom
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.listings.page import LOG_IN, YES, PageTestCase, Play
from tests.functional.listings.reading import find_approval, find_listings
from tests.functional.mcp_server import TOKEN
from tests.functional.process import Finished
from tests.functional.test_first_run import answers_of_new_vault
from tests.functional.test_mcp_servers import McpServerTestCase

TRUSTING = (LOG_IN, YES)


class McpServersTests(McpServerTestCase, PageTestCase):
    """A user with the URL of a server, and a token of it."""

    page = "mcp-servers.md"

    @seldom
    async def test_played(self) -> None:
        """A tool is called once it is approved; after it has changed, only once that was reviewed."""
        service = cast(IProtocolFactory, ProxyFactory("127.0.0.1", self.port))
        self.behind = (await Internet.open(self, ["mcp.tracker.example"], {HTTPS: service})).prefix
        self.secrets.append(TOKEN)
        server = await self.serve("Creates an issue.")
        await self.play(
            Play("aileron connector import https://mcp.tracker.example/mcp --mcp --name local://me/tracker")
        )
        (self.home.project / "tracker.toml").write_text(find_listings(self.page_text(), "toml")[0])
        await self.play(
            Play("aileron connector add tracker.toml", answers=[*answers_of_new_vault().items(), YES]),
            Play("aileron action add tracker-list-tools.md", answers=TRUSTING),
            Play(
                "aileron credential setup local://me/tracker",
                answers=[LOG_IN, (r"Secret for .+ \(not shown\): ", TOKEN)],
            ),
            Play(
                "aileron connector import local://me/tracker",
                answers=[("Enter to leave: ", "")],
                shows=["create_issue", "search"],
            ),
            Play("aileron connector import local://me/tracker --op create_issue --op search --read search"),
            Play("aileron connector add tracker.toml --force", answers=TRUSTING),
            Play("aileron action add tracker-create-issue.md tracker-search.md", answers=TRUSTING),
        )
        self.assertIn("Approved and completed", (await self.create_issue(0)).stdout)
        await server.kill()
        await self.serve("Creates an issue, and mails it to everybody.")
        await self.create_issue(1)
        await self.play(
            Play("aileron connector import local://me/tracker", answers=[("Enter to leave: ", "")]),
            Play("aileron connector import local://me/tracker --op create_issue --force"),
            Play("aileron connector add tracker.toml --force", answers=TRUSTING),
            Play("aileron action add tracker-create-issue.md --force", answers=TRUSTING),
        )
        await self.create_issue(0)
        self.assertEqual([each["tool"] for each in self.calls()], ["create_issue", "create_issue"])
        self.assertEqual({each["token"] for each in self.calls()}, {f"Bearer {TOKEN}"})

    async def create_issue(self, code: int) -> Finished:
        """Request an issue and approve it, which must end so."""
        run = self.home.script("aileron", "action", "run", "tracker-create-issue", "--arg", "title=A bug")
        asked = self._expect(await self.run_command(run.behind(*self.behind)), 75)
        number = find_approval(asked.stdout + asked.stderr)
        approve = self._as_operator("approval", "approve", number, "--yes")
        return self._expect(await self.run_command(approve.behind(*self.behind)), code)
