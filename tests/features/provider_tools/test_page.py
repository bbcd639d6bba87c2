"""Parts of pages about the tools that providers run."""

from __future__ import annotations

from itertools import count

from aileron.features.gateway.values import GatewaySettings, ProviderTool, ToolKind
from aileron.features.provider_tools.notes import ToolNotes
from aileron.features.provider_tools.running import RunningProviderTools
from aileron.features.provider_tools.values import SETTING, ToolRule, ToolRules
from aileron.features.provider_tools.watch import ToolWatch
from tests.api.case import running
from tests.features.gateway.running import relaying
from tests.web.case import WebCase, read

MCP, SEARCH = ProviderTool(ToolKind.REMOTE_MCP, "mcp.example.com"), ProviderTool(ToolKind.WEB_SEARCH)


class ProviderToolsPartTests(WebCase):
    """The parts on the pages of the gateway, of a session, and of settings."""

    def watch(self, settings: GatewaySettings) -> ToolNotes:
        """Start the gateway and the watch over it with these settings, and return the watch's notes."""
        gateway, numbers = relaying(settings), count()
        notes = ToolNotes(self.store.audit, self.clock, lambda: f"01JB{next(numbers):022d}")
        watch = ToolWatch(settings, notes, self.clock)
        gateway.watch_requests(watch)
        self.build(features=running(gateway, RunningProviderTools(watch)))
        return notes

    def test_no_rule(self) -> None:
        """Without a rule the gateway's page says what can be set; the page of settings leads there."""
        self.watch(GatewaySettings())
        text = read(self.fragment("/gateway").text).text
        self.assertIn("To note or refuse them, set gateway.provider_tools in config.yaml.", text)
        self.assertIn('href="/gateway"', self.fragment("/settings").text)

    def test_counted(self) -> None:
        """The gateway's page shows rules and counts by kind and host, a session's page those of the session."""
        rules = ToolRules({ToolKind.WEB_SEARCH: ToolRule.REFUSE})
        notes = self.watch(GatewaySettings(of_features={SETTING: rules}))
        for session_id, times in (("session-1", 3), (None, 4)):
            for _ in range(times):
                notes.note("openai", session_id, [MCP], refused=False)
        notes.note("openai", None, [SEARCH], refused=True)
        text = read(self.fragment("/gateway").text).text
        for part in ("web_search: refuse", "openairemote_mcpmcp.example.comSent7", "openaiweb_search–Refused1"):
            self.assertIn(part, text)
        self.assertNotIn("To note or refuse them", text)
        self.agent("session-1")
        text = read(self.fragment("/sessions/session-1").text).text
        self.assertIn("openairemote_mcpmcp.example.comSent3", text)
        self.assertNotIn("Refused", text)
        self.agent("session-2")
        self.assertNotIn("Tools that providers run", self.fragment("/sessions/session-2").text)
