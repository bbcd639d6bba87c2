"""pi's registration."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from aileron.features.launch.registration import Registration, Upstream
from tests.features.launch.agents.case import KEY, URL, AgentCase

HEADERS = {"X-Aileron-Gateway-Key": "$AILERON_GATEWAY_KEY"}
THROUGH = {
    "anthropic": {"baseUrl": URL, "headers": HEADERS},
    "openai": {"baseUrl": f"{URL}/v1", "headers": HEADERS},
}


class PiCase(AgentCase):
    """A user of pi."""

    name = "pi"

    def calls(self, function: str, registration: Registration) -> dict[str, Any]:
        """What the extension registers by such calls, by name."""
        (text,) = registration.files.values()
        found = re.findall(rf'^  pi\.{function}\("(\w+)", (.*)\);$', text, re.MULTILINE)
        return {name: json.loads(entry) for name, entry in found}


class ToolServerTests(PiCase):
    """Our server is added and everything of the user's is kept."""

    def test_extension(self) -> None:
        """An extension of our own brings the server, shown to the model as it is, which refers to its environment."""
        registration = self.registered()
        self.assertEqual(registration.arguments, ("-e", "/private/aileron.ts"))
        self.assertEqual(list(registration.files), ["aileron.ts"])
        entry = self.calls("registerMcpServer", registration)["aileron"]
        self.assertEqual((entry["command"], entry["args"]), ("/opt/bin/aileron-mcp", []))
        self.assertEqual((entry["exposure"], entry["timeout"]), ("direct", 3600))
        self.assertEqual(entry["env"], {"AILERON_URL": "${AILERON_URL}", "AILERON_TOKEN": "${AILERON_TOKEN}"})

    def test_commands(self) -> None:
        """A command of pi's own, which knows no extension, is left as it is."""
        for arguments in (("mcp", "list"), ("install", "npm:x"), ("auth", "check", "--provider", "openai")):
            self.assertEqual(self.registered(*arguments), Registration({}))
        self.write(".pi/agent/mcp.json", {"mcpServers": {"aileron": {}}})
        self.assertEqual(self.registered("mcp", "remove", "aileron"), Registration({}))
        (self.home / ".pi/agent/mcp.json").unlink()
        self.assertEqual(self.registered("-p", "list").arguments[0], "-e")

    def test_namesake(self) -> None:
        """A server of our name, the user's or the project's, is refused before anything starts: it would win."""
        content = '{"mcpServers": {"aileron": {"command": "hunter2"}, /* mine */}}'
        for path in (self.write(".pi/agent/mcp.json", content), self.write("project/.pi/mcp.json", content)):
            message = self.refused()
            self.assertIn(str(path), message)
            self.assertNotIn("hunter2", message)
            path.unlink()
        self.write(".pi/agent/mcp.json", {"mcpServers": {"mine": {"command": "x"}}})
        self.registered()


class RoutesTests(PiCase):
    """Which of its providers go through the gateway."""

    def assert_alone(self, registration: Registration, *words: str) -> None:
        """OpenAI was not touched, and the user is told why."""
        self.assertNotIn("openai", self.calls("registerProvider", registration))
        self.assert_told(registration, *words)

    def providers(self, **environment: str) -> dict[str, Any]:
        """What pi is told of its providers."""
        return self.calls("registerProvider", self.registered(**environment))

    def test_both(self) -> None:
        """Both are sent there in the session's name, of which only the environment holds the key."""
        self.assertEqual(self.providers(), THROUGH)
        self.assertEqual(self.registered().variables["AILERON_GATEWAY_KEY"], KEY)

    def test_told(self) -> None:
        """Told is of those that the user has a key, a login or an entry for."""
        self.assertEqual(self.registered().notes, ())
        (line,) = self.registered(OPENAI_API_KEY="k").notes
        self.assertEqual(line, "aileron: through the gateway: openai")
        self.write(".pi/agent/auth.json", {"anthropic": {"type": "oauth"}})
        self.write(".pi/agent/models.json", {"providers": {"openai": {"headers": {"a": "b"}}}})
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
            path = self.write(".pi/agent/models.json", {"providers": {"openai": entry}})
            registration = self.registered()
            self.assert_alone(registration, str(path), "gateway.providers.openai.base_url")
            self.assertNotIn("corporate", str(registration.notes))
            self.assertIn("anthropic", self.calls("registerProvider", registration))

    def test_same_base_url(self) -> None:
        """An address that the gateway has, or sends to, is no other."""
        self.upstreams["openai"] = Upstream("http://corporate")
        for address in ("http://corporate/v1/", f"{URL}/v1"):
            models = [{"id": "a", "baseUrl": address}, "odd"]
            self.write(".pi/agent/models.json", {"providers": {"openai": {"baseUrl": address, "models": models}}})
            self.assertEqual(self.providers(), THROUGH)

    def test_unreadable(self) -> None:
        """Where the file cannot be read nothing is touched: it may name base URLs."""
        for text in ("{", "[]", "x" * (1 << 21)):
            path = self.write(".pi/agent/models.json", text)
            self.assert_alone(self.registered(OPENAI_API_KEY="k"), str(path), "cannot be read")
        self.write(".pi/agent/models.json", "// nothing\n{}")
        self.assertEqual(self.providers(), THROUGH)

    def test_injected_key(self) -> None:
        """A provider whose key the gateway puts in gets a stand-in, unless the user has something to show."""
        self.upstreams["anthropic"] = Upstream("https://api.anthropic.com", injected=True)
        registration = self.registered()
        self.assertEqual(registration.variables["ANTHROPIC_API_KEY"], "the-gateway-has-it")
        self.assertEqual(registration.notes, ("aileron: through the gateway: anthropic",))
        self.assertNotIn("ANTHROPIC_API_KEY", self.registered(ANTHROPIC_OAUTH_TOKEN="t").variables)
        self.write(".pi/agent/auth.json", {"anthropic": {"type": "oauth"}})
        self.assertNotIn("ANTHROPIC_API_KEY", self.registered().variables)

    def test_proxy(self) -> None:
        """The gateway's address goes past a proxy, be it a variable's or the user's setting's."""
        self.assertNotIn("NO_PROXY", self.registered().variables)
        self.assertEqual(self.registered(HTTP_PROXY="http://proxy").variables["NO_PROXY"], "127.0.0.1:9")
        self.write(".pi/agent/settings.json", {"httpProxy": "http://proxy"})
        self.assertEqual(self.registered(no_proxy="a").variables["no_proxy"], "a,127.0.0.1:9")


class PromptsTests(PiCase):
    """Rules are asked by an extension, as pi has no permission prompts."""

    def test_rules(self) -> None:
        """The extension is one of the package's files."""
        added = self.hooked(checks=True).arguments[-2:]
        self.assertEqual((added[0], Path(added[1]).is_file()), ("-e", True))

    def test_none(self) -> None:
        """Without rules there is nothing to list, which is said where it was asked for."""
        self.assertEqual(self.hooked(), self.registered())
        self.assertIn("pi has no permission prompts", self.hooked(asks=True).notes[-1])


class WakeTests(PiCase):
    """An extension tells it outcomes when it is idle."""

    def test_extension(self) -> None:
        """It waits where a person sits, else it only says which conversation there is, if it may be resumed."""
        registration = self.woken()
        self.assertTrue(registration.arguments[-1].endswith("wake/static/pi.ts"))
        self.assertEqual(registration.variables["AILERON_WAKE"], "waits")
        self.assertEqual(self.woken("--print", "hi", resumes=True).variables["AILERON_WAKE"], "says")
        self.assertEqual(self.woken("--print", "hi"), self.registered("--print", "hi"))
