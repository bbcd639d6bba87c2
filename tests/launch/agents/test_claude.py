"""Claude Code's registration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.launch import Gateway, Invocation, McpServer, Registration, find_agents

CLAUDE = find_agents()["claude"]
SECRETS = {"AILERON_URL": "http://127.0.0.1:9", "AILERON_TOKEN": "ail_a_x"}
SERVER = McpServer("/opt/bin/aileron-mcp", SECRETS)
GATEWAY = Gateway("http://127.0.0.1:9", "ail_g_x")


def registered(*arguments: str, gateway: Gateway | None = None, **environment: str) -> Registration:
    """What comes of a launch with these arguments of the agent's own."""
    invocation = Invocation(arguments, {"HOME": "/nowhere", **environment}, "/nowhere")
    return CLAUDE.prepare(invocation)(SERVER, gateway, "/private")


class ToolsTests(SynchronousTestCase):
    """Our tools come by arguments that hold no secret."""

    def servers(self, registration: Registration) -> Any:
        """What it is told of tool servers."""
        option, _, value = registration.arguments[0].partition("=")
        self.assertEqual(option, "--mcp-config")
        return json.loads(value)["mcpServers"]

    def test_server(self) -> None:
        """The server's environment is named, and its values are in the agent's."""
        registration = registered("-p", "do it")
        entry = {
            "type": "stdio",
            "command": "/opt/bin/aileron-mcp",
            "args": [],
            "env": {"AILERON_URL": "${AILERON_URL}", "AILERON_TOKEN": "${AILERON_TOKEN}"},
            "alwaysLoad": True,
            "timeout": 3_600_000,
        }
        self.assertEqual(self.servers(registration), {"aileron": entry})
        self.assertEqual((registration.variables, registration.notes, registration.files), (SECRETS, (), {}))

    def test_allowed(self) -> None:
        """It does not ask by itself before it calls what asks the operator."""
        self.assertEqual(registered().arguments[1:], ("--allowedTools=mcp__aileron__*",))

    def test_one_word_each(self) -> None:
        """No argument of ours could swallow one of the user's, as those that take several would."""
        for argument in registered(gateway=GATEWAY).arguments:
            self.assertRegex(argument, "^--[a-zA-Z-]+=.")

    def test_no_secret(self) -> None:
        """Whatever the user has set, arguments and notes hold neither token nor gateway key."""
        for environment in ({}, {"ANTHROPIC_CUSTOM_HEADERS": "a: b"}, {"ANTHROPIC_BASE_URL": "http://corporate"}):
            registration = registered("-p", "x", gateway=GATEWAY, **environment)
            for text in (*registration.arguments, *registration.notes):
                self.assertNotIn("ail_", text)

    def test_within_its_limit(self) -> None:
        """A call waits shorter than the agent would."""
        timeout = self.servers(registered())["aileron"]["timeout"]
        self.assertLess(CLAUDE.wait_seconds * 1000, timeout)

    def test_commands(self) -> None:
        """A command of its own, which arguments of ours would make a prompt, gets nothing, and it is said so."""
        for command in ("mcp", "attach", "update", "--version", "--help"):
            registration = registered(command, "list", gateway=GATEWAY)
            self.assertEqual((registration.arguments, registration.variables), ((), {}))
            [line] = registration.notes
            self.assertIn(f"claude {command} runs by itself", line)
        self.assertTrue(registered("tell me of mcp").arguments)
        self.assertTrue(registered("--model", "mcp").arguments)

    def test_background(self) -> None:
        """Of a session in the background it is said that its tools do not last."""
        self.assertIn("background", registered("--bg", "do it").notes[0])


class ScreenTests(SynchronousTestCase):
    """When it draws."""

    def test_full_screen(self) -> None:
        """Its screen opens unless it prints, or runs a command."""
        for arguments in ((), ("do it",), ("--continue",), ("--model", "opus")):
            self.assertTrue(CLAUDE.full_screen(arguments), arguments)
        for arguments in (("-p", "do it"), ("do it", "--print"), ("mcp", "list"), ("--version",)):
            self.assertFalse(CLAUDE.full_screen(arguments), arguments)


class DirectoriesTests(SynchronousTestCase):
    """What is its own, and what is the user's."""

    def test_own(self) -> None:
        """Its sessions and logs are its own; the directory around them holds settings and programs, and is not."""
        own = CLAUDE.own_directories({"HOME": "/home/me"})
        self.assertEqual(CLAUDE.settings_directories({"HOME": "/home/me"}), ("/home/me/.claude",))
        self.assertIn("/home/me/.claude/projects", own)
        self.assertIn("/home/me/.cache/claude-cli-nodejs", own)
        for path in (
            "/home/me/.claude",
            *(f"/home/me/.claude/{name}" for name in ("hooks", "jobs", "plugins", "session-env", "skills")),
        ):
            self.assertNotIn(path, own)

    def test_moved(self) -> None:
        """Both follow the variables that move them."""
        environment = {"HOME": "/home/me", "CLAUDE_CONFIG_DIR": "/other", "XDG_CACHE_HOME": "/cache"}
        self.assertEqual(CLAUDE.settings_directories(environment), ("/other",))
        own = CLAUDE.own_directories(environment)
        self.assertTrue(all(Path(path).parts[1] in ("other", "cache") for path in own))
