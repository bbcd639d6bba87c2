"""The tools of in-band mode, over the agent site's routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock
from zope.interface.verify import verifyObject

from aileron.api import token_digest
from aileron.base.json import JSON
from aileron.features.profiles.running import ProfileFilter
from aileron.features.profiles.values import ProfileSettings
from aileron.mcp import plain_tools
from aileron.mcp._texts import ToolResult
from aileron.model.errors import Unauthorized
from aileron.model.interfaces.services import IAgentTools
from aileron.model.sessions import ActionSelection
from aileron.testing import example_session, scripted_offer
from tests.api.case import ApiCase

KEY = "ail_i_" + "k" * 43


class PlainToolsTests(ApiCase):
    """Two actions, one of them gated, and a session with an in-band key."""

    def setUp(self) -> None:
        super().setUp()
        opening = self.store.sessions.open(example_session(), b"t" * 32, b"g" * 32, (), token_digest(KEY))
        self.do(opening)
        self.generation = 1
        clock: Clock = self.clock
        self.tools = plain_tools(self.routes.in_band(), clock, lambda: self.generation, 300)

    def do(self, work: Any) -> Any:
        """The result of what is done at once."""
        return self.successResultOf(Deferred.fromCoroutine(work))

    def call(self, name: str, arguments: Mapping[str, JSON], key: str = "k1", wait: float = 0.0) -> ToolResult:
        """Call a tool whose tools are known."""
        self.do(self.tools.offered(KEY))
        result: ToolResult = self.do(self.tools.call(KEY, name, arguments, key, wait))
        return result

    def test_provides(self) -> None:
        """It provides IAgentTools."""
        self.assertTrue(verifyObject(IAgentTools, self.tools))

    def test_offered(self) -> None:
        """The enabled actions are offered by name, then what tells how a call stands; nothing else of MCP's tools."""
        names = [each.name for each in self.do(self.tools.offered(KEY))]
        self.assertEqual(names, ["look_up", "ship_update", "check_action_status"])
        self.assertIs(self.do(self.tools.offered(KEY)), self.do(self.tools.offered(KEY)))

    def test_changed(self) -> None:
        """Once the actions are others they are read anew, and not before."""
        before = self.do(self.tools.offered(KEY))
        self.runner.offer(scripted_offer())
        self.assertIs(self.do(self.tools.offered(KEY)), before)
        self.generation = 2
        self.assertNotIn("look_up", [each.name for each in self.do(self.tools.offered(KEY))])

    def test_sessions_apart(self) -> None:
        """What one session may use is not offered to another, whichever asked first."""
        other = "ail_i_" + "o" * 43
        session = evolve(example_session("session-2"), selection=ActionSelection(deny=("look-up",)))
        self.do(self.store.sessions.open(session, b"u" * 32, b"h" * 32, (), token_digest(other)))
        self.filters.add(ProfileFilter(ProfileSettings()))
        for key, found in ((KEY, True), (other, False), (KEY, True)):
            self.assertEqual("look_up" in [each.name for each in self.do(self.tools.offered(key))], found)
        self.assertIn("no tool", self.do(self.tools.call(other, "look_up", {}, "k", 0)).text)

    def test_ended(self) -> None:
        """By an unknown key, or of a session that has ended, nothing is offered or run."""
        self.do(self.store.sessions.end("session-1", 0, ()))
        for key in (KEY, "ail_i_other"):
            self.failureResultOf(Deferred.fromCoroutine(self.tools.offered(key)), Unauthorized)
            result = self.do(self.tools.call(key, "look_up", {}, "k", 0))
            self.assertTrue(result.is_error)

    def test_waits(self) -> None:
        """A gated call that nobody decides is told as pending, with where it is decided, and so is how it stands."""
        result = self.call("ship_update", {"text": "s"})
        self.assertIsNotNone(result.pending, result.text)
        self.assertIn("/approvals/", result.text)
        approval_id = result.text.rpartition("approval_id: ")[2]
        status = self.call("check_action_status", {"approval_id": approval_id})
        self.assertIn("pending_approval", status.text)
        self.assertEqual((result.run_id, status.run_id), (approval_id, ""))
        self.assertTrue(self.call("check_action_status", {}).is_error)

    def test_unknown(self) -> None:
        """A tool that is not there any more is an error for the model."""
        self.assertTrue(self.call("gone", {}).is_error)
