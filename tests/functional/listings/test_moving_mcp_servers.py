"""C{doc/moving-mcp-servers.md}, played: a server of Cursor's goes behind Aileron, and its tools are listed there."""

from __future__ import annotations

import json
from typing import cast

from twisted.internet.interfaces import IProtocolFactory
from twisted.protocols.portforward import ProxyFactory

from tests.extent import seldom
from tests.functional.listings.internet import HTTPS, Internet
from tests.functional.listings.page import YES, PageTestCase, Play
from tests.functional.listings.reading import find_listings
from tests.functional.mcp_server import TOKEN
from tests.functional.test_first_run import answers_of_new_vault
from tests.functional.test_mcp_servers import McpServerTestCase

SERVERS = {
    "linear": {"url": "https://mcp.linear.app/mcp", "headers": {"Authorization": f"Bearer {TOKEN}"}},
    "github": {"command": "/usr/bin/env", "args": ["server"], "env": {"GITHUB_TOKEN": "github-canary-2b9c"}},
}


class MovingTests(McpServerTestCase, PageTestCase):
    """A user whose Cursor has two servers, each with a key in plain text."""

    page = "moving-mcp-servers.md"

    @seldom
    async def test_played(self) -> None:
        """The list is that of the page; the chosen server's key is in the vault, and its tools are listed with it."""
        service = cast(IProtocolFactory, ProxyFactory("127.0.0.1", self.port))
        self.behind = (await Internet.open(self, ["mcp.linear.app"], {HTTPS: service})).prefix
        await self.serve("Creates an issue.")
        self.secrets += [TOKEN, "github-canary-2b9c"]
        settings = self.home.user / ".cursor" / "mcp.json"
        settings.parent.mkdir()
        settings.write_text(json.dumps({"mcpServers": SERVERS}, indent=2))
        listed = find_listings(self.page_text(), "text")[0]
        await self.play(
            Play(
                "aileron import cursor",
                answers=[
                    (r"Servers to move \[.*\]: ", "1"),
                    *answers_of_new_vault().items(),
                    YES,
                    (r"Tools that agents may use \[none\]: ", "1"),
                    YES,
                ],
                shows=[
                    *(line.replace("/home/me", str(self.home.user)) for line in listed.splitlines()),
                    "create_issue",
                    "Trusted: local://me/linear, linear-create-issue",
                ],
            ),
            Play(
                "aileron connector import local://me/linear",
                answers=[("Operations to import, .*: ", "")],
                shows=["reviewed: Creates an issue."],
            ),
        )
