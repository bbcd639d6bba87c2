"""The key C{prompts} in the configuration."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.yaml_keys import NotConfig
from aileron.daemon._config import read_config
from aileron.features import FeatureSet
from aileron.features.prompts.values import PromptSettings, ReplyKind
from tests.features.prompts.case import rule


class SettingsTests(SynchronousTestCase):
    """What may stand there."""

    def read(self, text: str) -> PromptSettings:
        """The settings in a file."""
        found: PromptSettings = read_config(text, FeatureSet()).of_features["prompts"]
        return found

    def test_read(self) -> None:
        """The switch, the wait and rules with their projects and reasons."""
        self.assertEqual(self.read("prompts: {inbox: off}"), PromptSettings(inbox=False))
        self.assertTrue(self.read("prompts: {inbox: on, wait_seconds: 5}").inbox)
        found = self.read(
            "prompts:\n  rules:\n    - allow: Bash(npm test *)\n      project: /home/me/shop\n"
            "    - ask: '*'\n    - {deny: 'Bash(rm *)', reason: Use git rm.}\n"
        )
        wanted = (
            rule("allow", "Bash(npm test *)", "/home/me/shop"),
            rule("ask", "*"),
            rule("deny", "Bash(rm *)", reason="Use git rm."),
        )
        self.assertEqual((found.rules, found.has_checks), (wanted, True))
        self.assertEqual([each.words for each in found.rules], ["Bash(npm test *)", "*", "Bash(rm *)"])
        self.assertFalse(self.read("prompts: {rules: [{allow: Bash}]}").has_checks)
        self.assertEqual(found.rules[1].answer, ReplyKind.ASK)

    def test_refused(self) -> None:
        """What is no rule, or two, is refused with its line."""
        for text, says in (
            ("{inbox: maybe}", "prompts.inbox must be on or off"),
            ("{wait_seconds: 4000}", "from 1 to 3500"),
            ("{rules: [{allow: Bash, deny: Bash}]}", "must have one of allow, ask and deny"),
            ("{rules: [{project: /x}]}", "must have one of allow, ask and deny"),
            ("{rules: [{allow: 'Bash('}]}", "must be a tool, or a tool and a pattern"),
            ("{rules: [{allow: Bash, project: x}]}", "must be an absolute path"),
            ("{rules: [{allow: Bash, reason: ''}]}", "must be a text"),
            ("{rules: {}}", "must be a list of rules"),
        ):
            error = self.assertRaises(NotConfig, self.read, f"prompts: {text}")
            self.assertIn(says, error.problem)
            self.assertEqual(error.line, 1)
