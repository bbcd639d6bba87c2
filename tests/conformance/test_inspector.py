"""MCP's Inspector, by its command line."""

from __future__ import annotations

import json
from typing import Any

from tests.conformance import judges
from tests.conformance.case import JudgedTestCase
from tests.conformance.names import Names


class InspectorTests(JudgedTestCase):
    """It lists the tools and calls one, over HTTP and on standard streams."""

    async def inspected(self, server: tuple[str, ...], *arguments: str) -> Any:
        """What it prints."""
        found = await self.judge(judges.INSPECTOR, "cli/build/cli.js", "--cli", *server, *arguments, seconds=60)
        self.assertEqual(found.exit_code, 0, found)
        return json.loads(found.stdout)

    async def both(self, *server: str) -> None:
        """List, and call."""
        listed = await self.inspected(server, "--method", "tools/list")
        self.assertIn("test_simple_text", [tool["name"] for tool in listed["tools"]])
        called = await self.inspected(server, "--method", "tools/call", "--tool-name", "test_simple_text")
        self.assertFalse(called.get("isError"), called)

    async def test_http(self) -> None:
        """By address."""
        session = await self.furnish_with_fixtures()
        await self.both(self.listening_for(session, Names()), "--transport", "http")
        await self.posted(1)

    async def test_standard_streams(self) -> None:
        """By a program that it starts."""
        session = await self.furnish_with_fixtures()
        ours = {"AILERON_URL": self.home.discovery()["url"], "AILERON_TOKEN": session.token}
        given = [part for name, text in ours.items() for part in ("-e", f"{name}={text}")]
        await self.both(*given, self.home.script("aileron-mcp").arguments[0])
        await self.posted(1)
