"""The settings of the feature in C{config.yaml}."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.yaml_keys import NotConfig, parse_yaml, read_keys
from aileron.features.own_tools.settings import OWN_TOOLS, OwnToolsSettings


def read(text: str) -> OwnToolsSettings:
    """Return the settings in a file's text."""
    node = parse_yaml(text)
    assert node is not None
    found: OwnToolsSettings = read_keys(node, "config.yaml", {"own_tools": OWN_TOOLS})["own_tools"]
    return found


class SettingsTests(SynchronousTestCase):
    """How long a connection is held."""

    def test_hold(self) -> None:
        """It is held for as long as the file says."""
        self.assertEqual(5, read("own_tools:\n  hold_seconds: 5\n").hold_seconds)
        self.assertEqual(25, OwnToolsSettings().hold_seconds)

    def test_refused(self) -> None:
        """Other keys and numbers are errors."""
        for text in ("hold_seconds: 0", "hold_seconds: 301", "hold_seconds: x", "other: 1"):
            self.assertRaises(NotConfig, read, f"own_tools:\n  {text}\n")
