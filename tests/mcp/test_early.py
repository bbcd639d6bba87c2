"""The first list of tools, before the SDK is loaded."""

from __future__ import annotations

import json
from typing import Any

from aileron.client import SessionEnvironment
from aileron.mcp._early import EarlyAnswers
from aileron.mcp._link import FIRST_SECONDS
from aileron.mcp._opening import Opening
from aileron.mcp.offering.access import Shortlist
from aileron.mcp.offering.tools import TOOLS_A_PAGE, ToolListing
from tests.mcp.case import DaemonCase, action, offering
from tests.mcp.test_opening import INITIALIZED, initialize, line, request


class EarlyTests(DaemonCase):
    """A client that is greeted, and a daemon in memory."""

    def setUp(self) -> None:
        """Greet a client."""
        super().setUp()
        self.moved = 0
        self.written: list[Any] = []
        self.opening = Opening()
        session = SessionEnvironment("http://127.0.0.1:9", "t", client="claude", listed_actions=1000)
        listing = ToolListing(self.link, Shortlist(self.daemon, 1000), 45)
        self.early = EarlyAnswers(self.opening, listing, session, self.write, self.move)
        self.early.receive(line(initialize()))
        self.early.receive(line(INITIALIZED))
        self.start()

    def write(self, text: bytes) -> None:
        """Keep it."""
        self.written.append(json.loads(text))

    def move(self) -> None:
        """Count."""
        self.moved += 1

    def listed(self) -> list[str]:
        """The tools in the last answer."""
        return [tool["name"] for tool in self.written[-1]["result"]["tools"]]

    def test_answered(self) -> None:
        """The tools are told as soon as the daemon says what it offers; a ping is answered meanwhile."""
        self.early.receive(line(request("tools/list", 2)))
        self.early.receive(line(request("ping", 3)))
        self.assertEqual([each["id"] for each in self.written], [0, 3])
        self.assertEqual(self.moved, 0)
        self.site.answer(200, offering(1, action()))
        self.assertEqual(self.written[-1]["id"], 2)
        self.assertEqual(self.listed(), ["ship_update", "aileron_diagnostics", "check_action_status"])
        self.assertEqual((self.moved, self.opening.over), (1, False))
        self.assertEqual(self.opening.lines, [line(initialize()), line(INITIALIZED)])

    def test_no_daemon(self) -> None:
        """Where no daemon answers, the tools that tell why are told after a while."""
        self.early.receive(line(request("tools/list", 2)))
        self.clock.advance(FIRST_SECONDS)
        self.assertEqual(self.listed(), ["aileron_diagnostics", "check_action_status"])

    def test_outdated(self) -> None:
        """A change after the tools were told is noted; one before is in them, and one that is told again is none."""
        self.site.answer(200, offering(1, action()))
        self.assertFalse(self.early.outdated)
        self.early.receive(line(request("tools/list", 2)))
        self.clock.advance(0.25)
        self.site.answer(200, offering(2, action("other")))
        self.assertTrue(self.early.outdated)
        self.early.receive(line(request("tools/list", 3)))
        self.assertIn("other", self.listed())
        self.assertFalse(self.early.outdated)

    def test_left(self) -> None:
        """What is not answered here is left to the SDK at once, and kept for it; so are more tools than make a page."""
        self.early.receive(line(request("resources/list", 2)))
        self.assertEqual((self.moved, self.opening.over, len(self.opening.lines)), (1, True, 3))

    def test_pages(self) -> None:
        """More tools than make a page are the SDK's to tell."""
        self.site.answer(200, offering(1, *(action(f"a-{number}") for number in range(TOOLS_A_PAGE))))
        self.early.receive(line(request("tools/list", 2)))
        self.assertEqual((self.moved, self.opening.over), (1, True))
        self.assertEqual(self.opening.lines[-1], line(request("tools/list", 2)))
        self.assertEqual([each["id"] for each in self.written], [0])

    def test_stopped(self) -> None:
        """Once it is stopped nothing is answered any more."""
        self.early.receive(line(request("tools/list", 2)))
        self.early.stop()
        self.early.stop()
        self.site.answer(200, offering(1, action()))
        self.assertEqual((self.written, self.moved), (self.written[:1], 0))
