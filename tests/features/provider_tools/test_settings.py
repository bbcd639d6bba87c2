"""The rules for provider tools in the gateway's part of the configuration."""

from __future__ import annotations

from aileron.base.yaml_keys import NotConfig
from aileron.features.gateway.values import ToolKind
from aileron.features.provider_tools.values import ToolRules, rules_of
from tests.features.gateway.test_settings import GatewayCase


class ProviderToolsTests(GatewayCase):
    """Rules for the tools that providers run."""

    def test_rules(self) -> None:
        """One rule is for every kind; a provider's own takes the place of the gateway's, also where it is off."""
        found = self.read(
            "gateway:\n  provider_tools: note\n  providers:\n"
            "    openai: {provider_tools: off}\n    anthropic: {provider_tools: {remote_mcp: refuse, others: note}}\n"
            "    chatgpt: {provider_tools: {web_search: 'refuse'}}\n    groq: {base_url: 'https://groq.example'}\n"
        )
        rules = rules_of(found)
        words = {each.name: str(rules[each.name]) for each in found.providers}
        others = "web_search: note, web_fetch: note, code_execution: note, computer_use: note, file_search: note"
        self.assertEqual(
            words,
            {
                "openai": "off",
                "anthropic": f"remote_mcp: refuse, {others}, image_generation: note, other: note",
                "chatgpt": "web_search: refuse",
                "groq": "note",
            },
        )
        self.assertEqual([rules[each.name].refuses for each in found.providers], [False, True, True, False])

    def test_unreadable(self) -> None:
        """What cannot be read falls under the strictest rule of all."""
        for said, rule in (
            ("off", "off"),
            ("note", "note"),
            ("{web_search: note}", "note"),
            ("{other: refuse}", "refuse"),
        ):
            found = self.read(f"gateway: {{provider_tools: {said}}}")
            self.assertEqual(rules_of(found)["openai"].rule(ToolKind.UNREADABLE).value, rule)
        self.assertEqual(str(rules_of(self.read("gateway: {}"))["openai"].noting()), "note")
        self.assertFalse(ToolRules().kinds)

    def test_faults(self) -> None:
        """Anything else is refused, with its line."""
        for said in ("true", "deny", "[]", "{unreadable: note}", "{remote_mcp: yes}", "{remote_mcp: {}}", "1"):
            fault = self.assertRaises(NotConfig, self.read, f"gateway:\n  provider_tools: {said}\n")
            self.assertEqual(fault.line, 2)
