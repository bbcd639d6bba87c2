"""What the user has told OpenCode, wherever OpenCode looks."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.launch import Invocation
from aileron.launch.agents.opencode import AGENT
from aileron.launch.formats import MAX_BYTES
from aileron.launch.layers import Settings, Topic

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
        return AGENT.read(Invocation(arguments, self.environment | environment, str(self.directory)))

    def names(self, *arguments: str, **environment: str) -> list[str]:
        """The places of these."""
        return [layer.name for layer in self.read(*arguments, **environment).layers]

    def providers(self, **environment: str) -> list[tuple[str, Any]]:
        """What they say of providers."""
        return list(self.read(**environment).values("provider"))

    def write(self, path: Path, content: Any = None) -> str:
        """Write a configuration."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"provider": PROVIDERS} if content is None else content))
        return str(path)

    def test_nothing(self) -> None:
        """A user who has set nothing has no configuration and no login."""
        self.assertEqual(self.read().layers, ())

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
            self.assertEqual(self.providers(), [(str(path), PROVIDERS)])
            path.unlink()

    def test_named_places(self) -> None:
        """So does what a variable or an argument names, be it relative."""
        extra = self.write(self.other / "opencode.json")
        xdg = self.write(self.other / "xdg" / "opencode" / "opencode.json")
        self.assertEqual(self.names(OPENCODE_CONFIG=extra), [extra])
        self.assertEqual(self.names(OPENCODE_CONFIG_DIR=str(self.other)), [extra])
        self.assertEqual(self.names(XDG_CONFIG_HOME=str(self.other / "xdg")), [xdg])
        self.assertEqual(self.names("run", str(self.other)), [extra])
        self.assertEqual(self.names("run", f"--dir={self.other}"), [extra])
        relative = os.path.relpath(extra, self.directory)
        [(_, providers)] = self.providers(OPENCODE_CONFIG=relative)
        self.assertEqual(providers, PROVIDERS)

    def test_content(self) -> None:
        """The variable that holds a configuration is a place like the others."""
        content = json.dumps({"provider": PROVIDERS})
        said = self.providers(OPENCODE_CONFIG_CONTENT=content)
        self.assertEqual(said, [("OPENCODE_CONFIG_CONTENT", PROVIDERS)])

    def test_unreadable(self) -> None:
        """A file that cannot be read or understood is a place of which nothing can be told."""
        path = self.directory / "opencode.json"
        for text in ["{bad", "[]", '{"provider": []}', "", " " * (MAX_BYTES + 1) + "{}"]:
            path.write_text(text)
            self.assertEqual(self.read().unreadable("provider"), str(path), text[:20])
        path.write_bytes(b'{"a": "\xff"}')
        self.assertEqual(self.read().unreadable("provider"), str(path))
        path.unlink()
        path.mkdir()
        self.assertEqual(self.read().unreadable("provider"), str(path))
        path.rmdir()
        os.mkfifo(path)
        self.assertEqual(self.read().unreadable("provider"), str(path))

    def test_logins(self) -> None:
        """Its logins are read from their file or from the variable that goes before it."""

        def logins(**environment: str) -> list[Any]:
            return [layer.values for layer in self.read(**environment).about(Topic.LOGINS).layers]

        held = {"openai": {"type": "oauth", "access": "hunter2"}, "http://x": {"type": "wellknown"}, "odd": 1}
        self.write(self.home / ".local" / "share" / "opencode" / "auth.json", held)
        self.assertEqual(logins(), [held])
        self.assertEqual(logins(OPENCODE_AUTH_CONTENT="{bad"), [None])
        self.assertEqual(logins(OPENCODE_AUTH_CONTENT='{"a": {"type": "api"}}'), [{"a": {"type": "api"}}])

    def test_odd_arguments(self) -> None:
        """An argument that is no path at all is passed over."""
        self.assertEqual(self.names("a\0b", "x" * 5000, "--", ""), [])

    def test_secrets_hidden(self) -> None:
        """No repr shows what a configuration holds."""
        self.write(self.directory / "opencode.json")
        self.assertNotIn("corporate", repr(self.read(OPENAI_BASE_URL="http://corporate")))
