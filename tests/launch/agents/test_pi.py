"""pi's registration."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import InvalidRequest
from aileron.launch import Gateway, Invocation, McpServer, Registration, Upstream, find_agents

SERVER = McpServer("/opt/bin/aileron-mcp", {"AILERON_URL": "http://127.0.0.1:9", "AILERON_TOKEN": "ail_a_x"})
URL, KEY = "http://127.0.0.1:9", "ail_g_secret"
HEADERS = {"X-Aileron-Gateway-Key": "$AILERON_GATEWAY_KEY"}
THROUGH = {
    "anthropic": {"baseUrl": URL, "headers": HEADERS},
    "openai": {"baseUrl": f"{URL}/v1", "headers": HEADERS},
}
DEFAULTS = {"openai": Upstream("https://api.openai.com"), "anthropic": Upstream("https://api.anthropic.com")}


class UserTests(SynchronousTestCase):
    """A user with some settings."""

    def setUp(self) -> None:
        self.home = Path(self.mktemp()).absolute()
        self.own = self.home / ".pi" / "agent"
        self.own.mkdir(parents=True)
        self.project = self.home / "project"
        self.upstreams: dict[str, Upstream] = dict(DEFAULTS)
        self.through = True

    def invocation(self, *arguments: str, **environment: str) -> Invocation:
        """A launch in the project."""
        return Invocation(arguments, {"HOME": str(self.home), **environment}, str(self.project))

    def registered(self, *arguments: str, **environment: str) -> Registration:
        """What comes of it."""
        register = find_agents()["pi"].prepare(self.invocation(*arguments, **environment))
        return register(SERVER, Gateway(URL, KEY, self.upstreams) if self.through else None, "/private")

    def calls(self, function: str, registration: Registration) -> dict[str, Any]:
        """What the extension registers by such calls, by name."""
        (text,) = registration.files.values()
        found = re.findall(rf'^  pi\.{function}\("(\w+)", (.*)\);$', text, re.MULTILINE)
        return {name: json.loads(entry) for name, entry in found}

    def write(self, name: str, content: Any, directory: Path | None = None) -> Path:
        """Write one of the user's files."""
        path = (directory or self.own) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content if isinstance(content, str) else json.dumps(content))
        return path


class ToolServerTests(UserTests):
    """Our server is added and everything of the user's is kept."""

    def test_extension(self) -> None:
        """An extension of our own brings the server, shown to the model as it is, with a limit of an hour."""
        registration = self.registered()
        self.assertEqual(registration.arguments, ("-e", "/private/aileron.ts"))
        self.assertEqual(list(registration.files), ["aileron.ts"])
        entry = self.calls("registerMcpServer", registration)["aileron"]
        self.assertEqual((entry["command"], entry["args"]), ("/opt/bin/aileron-mcp", []))
        self.assertEqual((entry["exposure"], entry["timeout"]), ("direct", 3600))

    def test_environment(self) -> None:
        """What the server needs is in the agent's environment and referred to: no file, argument or repr shows it."""
        registration = self.registered()
        entry = self.calls("registerMcpServer", registration)["aileron"]
        self.assertEqual(entry["env"], {"AILERON_URL": "${AILERON_URL}", "AILERON_TOKEN": "${AILERON_TOKEN}"})
        self.assertEqual(registration.variables["AILERON_TOKEN"], "ail_a_x")
        self.assertNotIn("ail_", str([registration.arguments, registration.files, registration.notes]))
        self.assertNotIn("ail_", repr(registration))

    def test_commands(self) -> None:
        """A command of pi's own, which knows no extension, is left as it is."""
        for arguments in (("mcp", "list"), ("install", "npm:x"), ("auth", "check", "--provider", "openai")):
            self.assertEqual(self.registered(*arguments), Registration({}))
        self.assertEqual(self.registered("-p", "list").arguments[0], "-e")

    def test_namesake(self) -> None:
        """A server of our name, the user's or the project's, is refused before anything starts: it would win."""
        content = '{"mcpServers": {"aileron": {"command": "hunter2"}, /* mine */}}'
        for path in (self.write("mcp.json", content), self.write("mcp.json", content, self.project / ".pi")):
            caught = self.assertRaises(InvalidRequest, find_agents()["pi"].prepare, self.invocation())
            self.assertIn(str(path), str(caught))
            self.assertNotIn("hunter2", str(caught))
            path.unlink()
        self.write("mcp.json", {"mcpServers": {"mine": {"command": "x"}}})
        self.registered()

    def test_directories(self) -> None:
        """In a sandbox it writes its sessions, and nothing else of its own."""
        agent = find_agents()["pi"]
        self.assertEqual(agent.own_directories({"HOME": "/h"}), ("/h/.pi/agent/sessions",))
        self.assertEqual(agent.settings_directories({"HOME": "/h"}), ("/h/.pi/agent",))
        self.assertEqual(agent.own_directories({"PI_CODING_AGENT_SESSION_DIR": "/s"}), ("/s",))
        for named, place in (("/p", "/p"), ("~/p", "/h/p"), ("~", "/h")):
            moved = {"HOME": "/h", "PI_CODING_AGENT_DIR": named}
            self.assertEqual(agent.settings_directories(moved), (place,))

    def test_full_screen(self) -> None:
        """Its screen opens unless something is asked of it that has none."""
        for arguments in ((), ("tell the team",), ("--model", "x"), ("-c",), ("tell", "list")):
            self.assertTrue(find_agents()["pi"].full_screen(arguments), arguments)
        for arguments in (("-p", "x"), ("--mode", "json"), ("--version",), ("list",), ("mcp", "list")):
            self.assertFalse(find_agents()["pi"].full_screen(arguments), arguments)


class RoutesTests(UserTests):
    """Which of its providers go through the gateway."""

    def providers(self, **environment: str) -> dict[str, Any]:
        """What pi is told of its providers."""
        return self.calls("registerProvider", self.registered(**environment))

    def assert_alone(self, registration: Registration, *said: str) -> None:
        """OpenAI was not touched, and the user is told why."""
        self.assertNotIn("openai", self.calls("registerProvider", registration))
        (line,) = [note for note in registration.notes if "left alone" in note]
        for word in said:
            self.assertIn(word, line)

    def test_both(self) -> None:
        """Both are sent there in the session's name, of which only the environment holds the key."""
        self.assertEqual(self.providers(), THROUGH)
        self.assertEqual(self.registered().variables["AILERON_GATEWAY_KEY"], KEY)

    def test_no_gateway(self) -> None:
        """Where the launch is told so, nothing is said of providers."""
        self.through = False
        registration = self.registered(OPENAI_API_KEY="k", HTTP_PROXY="http://proxy")
        self.assertEqual(self.calls("registerProvider", registration), {})
        self.assertEqual(dict(registration.variables), dict(SERVER.environment))
        self.assertEqual(registration.notes, ())

    def test_told(self) -> None:
        """Told is of those that the user has a key, a login or an entry for."""
        self.assertEqual(self.registered().notes, ())
        (line,) = self.registered(OPENAI_API_KEY="k").notes
        self.assertEqual(line, "aileron: through the gateway: openai")
        self.write("auth.json", {"anthropic": {"type": "oauth"}})
        self.write("models.json", {"providers": {"openai": {"headers": {"a": "b"}}}})
        (line,) = self.registered().notes
        self.assertEqual(line, "aileron: through the gateway: anthropic, openai")

    def test_own_base_url(self) -> None:
        """A provider that the user sends elsewhere is left alone, and the line says where to tell the gateway."""
        elsewhere: list[dict[str, Any]] = [
            {"baseUrl": "http://corporate/v1"},
            {"baseUrl": "https://api.openai.com"},
            {"baseUrl": "$SOMETHING"},
            {"baseUrl": 1},
            {"models": [{"id": "a"}, {"id": "b", "baseUrl": "http://corporate/v1"}]},
            {"baseUrl": "https://api.openai.com/v1", "oauth": "radius"},
        ]
        for entry in elsewhere:
            path = self.write("models.json", {"providers": {"openai": entry}})
            registration = self.registered()
            self.assert_alone(registration, str(path), "gateway.providers.openai.base_url")
            self.assertNotIn("corporate", str(registration.notes))
            self.assertIn("anthropic", self.calls("registerProvider", registration))

    def test_same_base_url(self) -> None:
        """An address that the gateway has, or sends to, is no other."""
        self.upstreams["openai"] = Upstream("http://corporate")
        for address in ("http://corporate/v1/", f"{URL}/v1"):
            models = [{"id": "a", "baseUrl": address}, "odd"]
            self.write("models.json", {"providers": {"openai": {"baseUrl": address, "models": models}}})
            self.assertEqual(self.providers(), THROUGH)

    def test_unreadable(self) -> None:
        """Where the file cannot be read nothing is touched: it may name base URLs."""
        for text in ("{", "[]", "x" * (1 << 21)):
            path = self.write("models.json", text)
            self.assert_alone(self.registered(OPENAI_API_KEY="k"), str(path), "cannot be read")
        self.write("models.json", "// nothing\n{}")
        self.assertEqual(self.providers(), THROUGH)

    def test_injected_key(self) -> None:
        """A provider whose key the gateway puts in gets a stand-in, unless the user has something to show."""
        self.upstreams["anthropic"] = Upstream("https://api.anthropic.com", injected=True)
        registration = self.registered()
        self.assertEqual(registration.variables["ANTHROPIC_API_KEY"], "the-gateway-has-it")
        self.assertEqual(registration.notes, ("aileron: through the gateway: anthropic",))
        self.assertNotIn("ANTHROPIC_API_KEY", self.registered(ANTHROPIC_OAUTH_TOKEN="t").variables)
        self.write("auth.json", {"anthropic": {"type": "oauth"}})
        self.assertNotIn("ANTHROPIC_API_KEY", self.registered().variables)

    def test_proxy(self) -> None:
        """The gateway's address goes past a proxy, be it a variable's or the user's setting's."""
        self.assertNotIn("NO_PROXY", self.registered().variables)
        self.assertEqual(self.registered(HTTP_PROXY="http://proxy").variables["NO_PROXY"], "127.0.0.1:9")
        self.write("settings.json", {"httpProxy": "http://proxy"})
        self.assertEqual(self.registered(no_proxy="a").variables["no_proxy"], "a,127.0.0.1:9")
