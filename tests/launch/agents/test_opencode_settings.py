"""What the user has told OpenCode, wherever OpenCode looks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.launch import Invocation
from aileron.launch.agents.opencode_settings import Settings, read_settings
from aileron.launch.agents.reading import MOST_BYTES

PROVIDERS = {"openai": {"options": {"baseURL": "http://corporate/v1"}}}


class SettingsTests(SynchronousTestCase):
    """A user's home, a repository, and a directory in it."""

    def setUp(self) -> None:
        root = Path(self.mktemp()).absolute()
        self.home, self.repository, self.other = root / "home", root / "repository", root / "other"
        self.directory = self.repository / "deep" / "down"
        for directory in (self.home, self.directory, self.other):
            directory.mkdir(parents=True)
        self.environment = {"HOME": str(self.home), "OPENCODE_TEST_MANAGED_CONFIG_DIR": str(root / "managed")}

    def read(self, *arguments: str, **environment: str) -> Settings:
        """The settings of a launch here."""
        return read_settings(Invocation(arguments, self.environment | environment, str(self.directory)))

    def write(self, path: Path, content: Any = None) -> str:
        """Write a configuration."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"provider": PROVIDERS} if content is None else content))
        return str(path)

    def test_nothing(self) -> None:
        """A user who has set nothing has no configuration and no login."""
        self.assertEqual((self.read().places, self.read().logins), ((), {}))

    def test_every_place(self) -> None:
        """Each place counts, wherever it lies."""
        config = self.home / ".config" / "opencode"
        files = [
            *(config / name for name in ("config.json", "opencode.json", "opencode.jsonc")),
            self.directory / "opencode.json",
            self.directory.parent / "opencode.jsonc",
            self.repository / "opencode.json",
            self.repository / ".opencode" / "opencode.jsonc",
            self.home / ".opencode" / "opencode.json",
            Path(self.environment["OPENCODE_TEST_MANAGED_CONFIG_DIR"]) / "opencode.json",
        ]
        for path in files:
            self.write(path)
            [place] = self.read().places
            self.assertEqual((place.name, place.providers), (str(path), PROVIDERS))
            path.unlink()

    def test_named_places(self) -> None:
        """So does what a variable or an argument names, be it relative."""
        extra = self.write(self.other / "opencode.json")
        xdg = self.write(self.other / "xdg" / "opencode" / "opencode.json")
        self.assertEqual([place.name for place in self.read(OPENCODE_CONFIG=extra).places], [extra])
        self.assertEqual([place.name for place in self.read(OPENCODE_CONFIG_DIR=str(self.other)).places], [extra])
        self.assertEqual([place.name for place in self.read(XDG_CONFIG_HOME=str(self.other / "xdg")).places], [xdg])
        self.assertEqual([place.name for place in self.read("run", str(self.other)).places], [extra])
        self.assertEqual([place.name for place in self.read("run", f"--dir={self.other}").places], [extra])
        relative = os.path.relpath(extra, self.directory)
        [place] = self.read(OPENCODE_CONFIG=relative).places
        self.assertEqual(place.providers, PROVIDERS)

    def test_content(self) -> None:
        """The variable that holds a configuration is a place like the others."""
        [place] = self.read(OPENCODE_CONFIG_CONTENT=json.dumps({"provider": PROVIDERS})).places
        self.assertEqual((place.name, place.providers), ("OPENCODE_CONFIG_CONTENT", PROVIDERS))

    def test_unreadable(self) -> None:
        """A file that cannot be read or understood is a place of which nothing can be told."""
        path = self.directory / "opencode.json"
        for text in ["{bad", "[]", '{"provider": []}', "", " " * (MOST_BYTES + 1) + "{}"]:
            path.write_text(text)
            self.assertEqual([place.providers for place in self.read().places], [None], text[:20])
        path.write_bytes(b'{"a": "\xff"}')
        self.assertEqual([place.providers for place in self.read().places], [None])
        path.unlink()
        path.mkdir()
        self.assertEqual([place.providers for place in self.read().places], [None])
        path.rmdir()
        os.mkfifo(path)
        self.assertEqual([place.providers for place in self.read().places], [None])

    def test_logins(self) -> None:
        """Of a login its kind is taken, and neither key nor token."""
        logins = {"openai": {"type": "oauth", "access": "hunter2"}, "http://x": {"type": "wellknown"}, "odd": 1}
        self.write(self.home / ".local" / "share" / "opencode" / "auth.json", logins)
        expected = {"openai": "oauth", "http://x": "wellknown"}
        self.assertEqual(self.read().logins, expected)
        self.assertEqual(self.read(OPENCODE_AUTH_CONTENT="{bad").logins, {})
        self.assertEqual(self.read(OPENCODE_AUTH_CONTENT='{"a": {"type": "api"}}').logins, {"a": "api"})

    def test_odd_arguments(self) -> None:
        """An argument that is no path at all is passed over."""
        self.assertEqual(self.read("a\0b", "x" * 5000, "--", "").places, ())

    def test_secrets_hidden(self) -> None:
        """No repr shows what a configuration holds."""
        self.write(self.directory / "opencode.json")
        self.assertNotIn("corporate", repr(self.read(OPENAI_BASE_URL="http://corporate")))
