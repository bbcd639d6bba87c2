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
    """How long a connection is held, and the services that a launch opens by default."""

    def test_hold(self) -> None:
        """It is held for as long as the file says."""
        self.assertEqual(5, read("own_tools:\n  hold_seconds: 5\n").hold_seconds)
        self.assertEqual(25, OwnToolsSettings().hold_seconds)

    def test_refused(self) -> None:
        """Other keys and numbers are errors."""
        for text in (
            *("hold_seconds: 0", "hold_seconds: 301", "hold_seconds: x", "other: 1"),
            *("services: github", "services: [1]", "services: ['Git Hub']", "projects: [shop]", "projects: /"),
        ):
            self.assertRaises(NotConfig, read, f"own_tools:\n  {text}\n")

    def test_services(self) -> None:
        """The services are those of every directory, or of the named ones and what is below them."""
        everywhere = read("own_tools:\n  services: [github, npm, github]\n")
        self.assertEqual(("github", "npm"), everywhere.find_services("/anywhere"))
        named = read("own_tools:\n  services: [github]\n  projects: [/home/me/shop]\n")
        for directory, services in (
            ("/home/me/shop", ("github",)),
            ("/home/me/shop/x", ("github",)),
            ("/home/me/shopping", ()),
            ("/home/me", ()),
        ):
            self.assertEqual(services, named.find_services(directory))
        self.assertEqual((), OwnToolsSettings().find_services("/"))
