"""Codex's registration."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.launch import Gateway, Invocation, McpServer, Registration, Upstream, find_agents

SERVER = McpServer("/opt/bin/aileron-mcp", {"AILERON_URL": "http://127.0.0.1:9", "AILERON_TOKEN": "ail_a_x"})
GATEWAY = Gateway(
    "http://127.0.0.1:9", "ail_g_x", {"openai": Upstream("https://api.openai.com", injected=False, prefix="/openai")}
)
CODEX = find_agents()["codex"]


def said(registration: Registration) -> dict[str, Any]:
    """What its arguments come to, by dotted path."""
    options, settings = registration.arguments[::2], registration.arguments[1::2]
    assert set(options) == {"-c"}
    pairs = (setting.split("=", 1) for setting in settings)
    return {path: tomllib.loads(f"it = {value}")["it"] for path, value in pairs}


class CodexUser(SynchronousTestCase):
    """A user with a home of their own."""

    def setUp(self) -> None:
        """Codex's home, with a key for its login."""
        self.root = Path(self.mktemp()).absolute()
        self.home, self.project = self.root / ".codex", self.root / "project"
        self.home.mkdir(parents=True)
        self.project.mkdir()
        self.write("auth.json", '{"auth_mode": "apikey", "OPENAI_API_KEY": "sk-hunter2"}')

    def write(self, name: str, text: str) -> None:
        """A file of Codex's home."""
        (self.home / name).write_text(text)

    def registered(
        self, *arguments: str, gateway: Gateway | None = GATEWAY, environment: Mapping[str, str] | None = None
    ) -> Registration:
        """What comes of a launch with these arguments."""
        whole = {"HOME": str(self.root), **(environment or {})}
        return CODEX.prepare(Invocation(arguments, whole, str(self.project)))(SERVER, gateway, "/private")


class ServerTests(CodexUser):
    """The tool server."""

    def test_added(self) -> None:
        """It is set by one argument, with what makes Codex wait for it and for its calls."""
        settings = said(self.registered(gateway=None))
        expected = {
            "command": "/opt/bin/aileron-mcp",
            "args": [],
            "env_vars": ["AILERON_TOKEN", "AILERON_URL"],
            "enabled": True,
            "required": True,
            "default_tools_approval_mode": "approve",
            "tool_timeout_sec": 3600,
            "startup_timeout_sec": 60,
        }
        self.assertEqual(settings["mcp_servers.aileron"], expected)

    def test_lists_anew(self) -> None:
        """Codex hears of an action that is added, without a warning that it can; nothing else is set."""
        settings = said(self.registered(gateway=None))
        del settings["mcp_servers.aileron"]
        names = ("features.mcp_tool_list_changed", "suppress_unstable_features_warning")
        self.assertEqual(settings, dict.fromkeys(names, True))

    def test_no_secret_in_arguments(self) -> None:
        """Token and gateway key travel in the environment, and in nothing that everybody can read."""
        registration = self.registered()
        self.assertEqual(registration.variables["AILERON_TOKEN"], "ail_a_x")
        self.assertEqual(registration.variables["AILERON_GATEWAY_KEY"], "ail_g_x")
        for shown in (registration.arguments, registration.notes, registration.files, repr(registration)):
            self.assertNotIn("ail_", str(shown))
            self.assertNotIn("hunter2", str(shown))

    def test_server_of_the_same_name(self) -> None:
        """Where the user has a server of our name, in a project too, ours takes another, and they are told."""
        (self.project / ".codex").mkdir()
        for path in (self.home / "config.toml", self.project / ".codex" / "config.toml"):
            path.write_text('[mcp_servers.aileron]\nurl = "http://mine"\n')
            registration = self.registered(gateway=None)
            self.assertIn("mcp_servers.aileron_session", said(registration))
            self.assertNotIn("mcp_servers.aileron", said(registration))
            self.assertIn("of your own", registration.notes[0])
            path.unlink()

    def test_odd_path(self) -> None:
        """A path with quotes and the like comes out as it went in."""
        odd = 'C:\\x "\x7f\u00e9\U0001f600\t'
        prepared = CODEX.prepare(Invocation((), {"HOME": str(self.root)}, str(self.project)))
        registration = prepared(McpServer(odd, {}), None, "/private")
        self.assertEqual(said(registration)["mcp_servers.aileron"]["command"], odd)


class ScreenTests(SynchronousTestCase):
    """Whether Codex draws on the whole terminal."""

    def test_screen(self) -> None:
        """It does for a conversation, named by an option, a prompt or a command."""
        for arguments in ((), ("fix it",), ("-m", "exec"), ("resume", "--last"), ("--model=x", "fork"), ("-C", "/tmp")):
            self.assertTrue(CODEX.full_screen(arguments), arguments)

    def test_none(self) -> None:
        """It does not for commands that only print."""
        commands = (("exec", "hi"), ("-m", "gpt", "e", "hi"), ("--version",), ("mcp", "list"), ("login",), ("-h",))
        for arguments in commands:
            self.assertFalse(CODEX.full_screen(arguments), arguments)
