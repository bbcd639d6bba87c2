"""goose's registration."""

from __future__ import annotations

import json
from typing import Any

from aileron.features.launch.registration import Registration, Upstream
from tests.features.launch.agents.case import KEY, URL, AgentCase

CONFIGURATION = ".config/goose/config.yaml"
THROUGH = f"{URL}/s/{KEY}"


class GooseCase(AgentCase):
    """A user of goose."""

    name = "goose"


class ToolServerTests(GooseCase):
    """Our server is added and everything of the user's is kept."""

    def test_file(self) -> None:
        """A file of our own, behind the user's, which holds no secret, brings our server with a limit of an hour."""
        registration = self.registered()
        self.assertEqual(registration.variables["GOOSE_ADDITIONAL_CONFIG_FILES"], "/private/goose.yaml")
        ((name, text),) = registration.files.items()
        self.assertEqual((name, registration.arguments), ("goose.yaml", ()))
        entry: dict[str, Any] = json.loads(text)["extensions"]["aileron"]
        self.assertEqual((entry["enabled"], entry["type"], entry["timeout"]), (True, "stdio", 3600))
        self.assertEqual(entry["cmd"], "/opt/bin/aileron-mcp")
        self.assertNotIn("ail_", text)
        theirs = self.registered(GOOSE_ADDITIONAL_CONFIG_FILES="/mine/a.yaml:/mine/b.yaml").variables
        self.assertEqual(theirs["GOOSE_ADDITIONAL_CONFIG_FILES"], "/mine/a.yaml:/mine/b.yaml:/private/goose.yaml")

    def test_namesake(self) -> None:
        """An extension of our name, wherever it stands, is refused before anything starts: the two would be mixed."""
        self.write(CONFIGURATION, "extensions:\n  aileron: {enabled: false, envs: {AILERON_TOKEN: hunter2}}\n")
        message = self.refused()
        self.assertIn(str(self.home / CONFIGURATION), message)
        self.assertNotIn("hunter2", message)
        moved = (self.home / CONFIGURATION).rename(self.project / "other.yaml")
        self.assertIn(str(moved), self.refused(GOOSE_ADDITIONAL_CONFIG_FILES="other.yaml"))
        self.write(CONFIGURATION, "extensions: {mine: {enabled: true}}\n")
        self.assertEqual(list(self.registered().files), ["goose.yaml"], "another name is none of our business")

    def test_reminders(self) -> None:
        """Where goose would not take the extensions of a new session, a line says so."""
        self.through = False
        for arguments, word in ((("session", "-r"), "resumes a session"), (("run", "--no-profile"), "--no-profile")):
            (line,) = self.registered(*arguments).notes
            self.assertIn(word, line)

    def test_configure(self) -> None:
        """Its command that keeps settings learns nothing that it could keep of a session, and a line says so."""
        self.upstreams["anthropic"] = Upstream("https://api.anthropic.com", injected=True)
        registration = self.registered("configure")
        self.assertEqual((dict(registration.variables), dict(registration.files)), ({}, {}))
        (line,) = registration.notes
        self.assertIn("goose configure runs outside a session", line)
        self.assertIn("ANTHROPIC_HOST", self.registered("run", "-t", "configure").variables)


class RoutesTests(GooseCase):
    """Which of its providers go through the gateway."""

    def assert_alone(self, registration: Registration, host: str, *words: str) -> None:
        """One provider was not touched, and the user is told why."""
        self.assertNotIn(host, registration.variables)
        self.assert_told(registration, *words)

    def test_both(self) -> None:
        """Without a word of the user's both are sent there, in the session's name."""
        registration = self.registered()
        for name in ("ANTHROPIC_HOST", "OPENAI_HOST"):
            self.assertEqual(registration.variables[name], THROUGH)
        self.assertEqual(registration.notes, ("aileron: through the gateway: anthropic, openai",))

    def test_chosen(self) -> None:
        """Told is what becomes of the provider that is chosen: by an argument, a variable or a file, in this order."""
        self.write(CONFIGURATION, "GOOSE_PROVIDER: ollama\n")
        (line,) = self.registered().notes
        self.assertIn("ollama does not use the gateway: the gateway supports only anthropic and openai", line)
        (line,) = self.registered(GOOSE_PROVIDER="openai").notes
        self.assertEqual(line, "aileron: through the gateway: openai")
        for arguments in (("run", "--provider", "anthropic"), ("run", "--provider=anthropic")):
            (line,) = self.registered(*arguments, GOOSE_PROVIDER="openai").notes
            self.assertEqual(line, "aileron: through the gateway: anthropic")

    def test_own_host(self) -> None:
        """A provider that the user sends elsewhere is left alone, and the line says where to tell the gateway."""
        settings = (
            ("ANTHROPIC_HOST", "http://corporate", "anthropic"),
            ("OPENAI_HOST", "http://corporate", "openai"),
            ("OPENAI_BASE_URL", "http://corporate/v1", "openai"),
            ("OPENAI_BASE_PATH", "deployments/x/chat", "openai"),
        )
        for name, value, provider in settings:
            host = f"{provider.upper()}_HOST"
            registration = self.registered(GOOSE_PROVIDER=provider, **{name: value})
            self.assert_alone(registration, host, name, f"gateway.providers.{provider}.base_url")
            self.write(CONFIGURATION, f"{name}: {value}\n")
            registration = self.registered(GOOSE_PROVIDER=provider)
            self.assert_alone(registration, host, str(self.home / CONFIGURATION))
            self.assertNotIn("corporate", str(registration.notes))
            (self.home / CONFIGURATION).unlink()

    def test_same_host(self) -> None:
        """An address that the gateway has, or sends to, is no other."""
        self.upstreams["openai"] = Upstream("http://corporate")
        for value in ("http://corporate/", URL, f"{URL}/s/ail_g_old"):
            self.assertEqual(self.registered(OPENAI_HOST=value).variables["OPENAI_HOST"], THROUGH)
        both = {"OPENAI_BASE_URL": "http://corporate/v1", "OPENAI_BASE_PATH": "/v1/chat/completions"}
        self.assertEqual(self.registered(**both).variables["OPENAI_HOST"], THROUGH)

    def test_order(self) -> None:
        """What the user's file says counts more than what an additional one does, and a variable more than both."""
        self.write("project/other.yaml", "OPENAI_HOST: http://other\n")
        self.write(CONFIGURATION, "OPENAI_HOST: https://api.openai.com\n")
        self.assertIn("OPENAI_HOST", self.registered(GOOSE_ADDITIONAL_CONFIG_FILES="other.yaml").variables)
        self.assert_alone(self.registered(OPENAI_HOST="http://mine"), "OPENAI_HOST")

    def test_unreadable(self) -> None:
        """Where a file cannot be read nothing is touched: it may name hosts."""
        for text in ("a: [", "- a list", "x" * (1 << 21), "? {a: b}\n: c", "\0", "[" * 10_000):
            self.write(CONFIGURATION, text)
            self.assert_alone(self.registered(), "ANTHROPIC_HOST", str(self.home / CONFIGURATION), "cannot be read")
        self.write(CONFIGURATION, "# nothing\n")
        self.assertIn("ANTHROPIC_HOST", self.registered().variables)

    def test_injected_key(self) -> None:
        """A provider whose key the gateway puts in gets a stand-in, unless the user has a key."""
        self.upstreams["anthropic"] = Upstream("https://api.anthropic.com", injected=True)
        self.assertEqual(self.registered().variables["ANTHROPIC_API_KEY"], "the-gateway-has-it")
        self.assertNotIn("ANTHROPIC_API_KEY", self.registered(ANTHROPIC_API_KEY="k").variables)
        self.assertNotIn("OPENAI_API_KEY", self.registered().variables)

    def test_proxy(self) -> None:
        """No exception from a proxy is made where there is none, or where no provider goes through the gateway."""
        self.assertNotIn("NO_PROXY", self.registered(NO_PROXY="example.com").variables)
        alone = self.registered(HTTP_PROXY="http://proxy", OPENAI_HOST="http://a", ANTHROPIC_HOST="http://a")
        self.assertNotIn("NO_PROXY", alone.variables)
