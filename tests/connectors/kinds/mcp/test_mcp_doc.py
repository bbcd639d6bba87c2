"""The listings of the page on MCP servers are what they say."""

from __future__ import annotations

import pathlib
import re

from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors import McpSpec
from aileron.connectors._schema import read_file
from aileron.connectors.kinds.mcp._pins import MOST_PAGES, MOST_TOOLS
from aileron.connectors.kinds.mcp._result import NOT_EXECUTED
from aileron.features.importing.tools import word_difference

PAGE = pathlib.Path(__file__).parents[4] / "doc" / "mcp-servers.md"
LISTING = re.compile(r"^```(?:toml|text)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class PageTests(SynchronousTestCase):
    """C{doc/mcp-servers.md}."""

    def setUp(self) -> None:
        self.page = PAGE.read_text("utf-8")

    def test_files(self) -> None:
        """The connectors of the page load, with either credential and with the operation that an import adds."""
        begun, signed_in, relayed, added = LISTING.findall(self.page)
        head = begun.partition("[credential]")[0]
        for text in (begun, relayed, f"{head}{signed_in}", f"{begun}\n{added}"):
            reading = read_file(text.encode(), "tracker.toml")
            self.assertEqual((), reading.problems)
        assert isinstance(reading.spec, McpSpec)
        self.assertEqual({"list_tools", "create_issue"}, set(reading.spec.description.operations))
        self.assertEqual(1024 * 1024, reading.spec.max_response_bytes)

    def test_difference(self) -> None:
        """The difference that the page shows is how one is shown."""
        shown = word_difference("Creates an issue.", "Creates an issue, and mails it to everybody.")
        self.assertIn(f"description: {shown}", self.page)

    def test_numbers(self) -> None:
        """The limits and the codes of the page are those that hold."""
        self.assertIn(f"At most {MOST_PAGES} pages and {MOST_TOOLS:,} tools", self.page)
        self.assertEqual({-32700, -32600, -32601, -32602}, NOT_EXECUTED)
