"""OpenCode's registration."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from aileron.features.launch.agents.opencode import AGENT
from aileron.features.launch.layers import AgentSettings, Topic, read_settings
from aileron.features.launch.registration import Invocation, PromptAccess, Registration, Upstream
from tests.features.launch.agents.case import KEY, TOKEN, URL, AgentCase

CONTENT = "OPENCODE_CONFIG_CONTENT"
OURS = {"baseURL": f"{URL}/v1", "headers": {"X-Aileron-Gateway-Key": KEY}}
PROVIDERS = {"openai": {"options": {"baseURL": "http://corporate/v1"}}}


class OpenCodeCase(AgentCase):
    """A user of OpenCode, whose administrator has a directory below their home."""

    name = "opencode"

    def invocation(self, *arguments: str, **environment: str) -> Invocation:
        """A launch in the project."""
        managed = {"OPENCODE_TEST_MANAGED_CONFIG_DIR": str(self.home / "managed")}
        return super().invocation(*arguments, **managed, **environment)


class ToolsTests(OpenCodeCase):
    """Our server is added and everything of the user's is kept."""

    def merged(self, theirs: str | None) -> Any:
        """The configuration that comes of the user's own."""
        self.through = False
        variables = self.registered(**({} if theirs is None else {CONTENT: theirs})).variables
        self.assertEqual(list(variables), [CONTENT])
        return json.loads(variables[CONTENT])

    def test_alone(self) -> None:
        """Without a configuration of the user's only our server is set."""
        entry = {
            "type": "local",
            "command": ["/opt/bin/aileron-mcp"],
            "enabled": True,
            "timeout": 3_600_000,
            "environment": {"AILERON_URL": "http://127.0.0.1:9", "AILERON_TOKEN": "ail_a_secret"},
        }
        self.assertEqual(self.merged(None), {"mcp": {"aileron": entry}})
        self.assertEqual(self.merged(" \n"), {"mcp": {"aileron": entry}})

    def test_kept(self) -> None:
        """The user's servers and settings stay, comments and all being legal."""
        merged = self.merged('{"model": "x/y", /* mine */ "mcp": {"mine": {"type": "remote", "url": "http://m"},}}')
        self.assertEqual(merged["model"], "x/y")
        self.assertEqual(merged["mcp"]["mine"], {"type": "remote", "url": "http://m"})
        self.assertEqual(merged["mcp"]["aileron"]["command"], ["/opt/bin/aileron-mcp"])

    def test_stale_entry(self) -> None:
        """An entry of our name from an earlier launch is replaced whole."""
        merged = self.merged(
            '{"mcp": {"aileron": {"enabled": false, "environment": {"AILERON_TOKEN": "old"}, "x": 1}}}'
        )
        self.assertNotIn("x", merged["mcp"]["aileron"])
        self.assertEqual(merged["mcp"]["aileron"]["environment"]["AILERON_TOKEN"], "ail_a_secret")

    def test_unreadable(self) -> None:
        """What cannot be added to is refused before anything starts, and not repeated in the message."""
        for theirs in ['{"key": "hunter2"', '["hunter2"]', '{"mcp": "hunter2"}', "hunter2"]:
            message = self.refused(**{CONTENT: theirs})
            self.assertIn(CONTENT, message)
            self.assertNotIn("hunter2", message)


class RoutesTests(OpenCodeCase):
    """A user with some keys and settings."""

    def told(self, content: Any = None, **environment: str) -> Registration:
        """What comes of a launch by a user who has this in the variable."""
        theirs = {} if content is None else {CONTENT: json.dumps(content)}
        return self.registered(**{**theirs, **environment})

    def providers(self, content: Any = None, **environment: str) -> Any:
        """What OpenCode is told of its providers."""
        registration = self.told(content, **environment)
        return json.loads(registration.variables[CONTENT]).get("provider")

    def user_file(self, providers: Mapping[str, Any]) -> None:
        """Write the user's own configuration in the project."""
        (self.project / "opencode.json").write_text(json.dumps({"provider": providers}))

    def assert_alone(self, registration: Registration, *words: str) -> None:
        """No provider was touched, and the user is told why."""
        self.assertNotIn(KEY, registration.variables[CONTENT])
        self.assertEqual(len(registration.notes), 1)
        self.assert_told(registration, *words)

    def test_keys(self) -> None:
        """Each provider that the user has a key for, in the environment or a login, goes through the gateway."""
        self.assertEqual(self.providers(ANTHROPIC_API_KEY="k"), {"anthropic": {"options": OURS}})
        both = self.providers(ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k")
        self.assertEqual(both, {"anthropic": {"options": OURS}, "openai": {"options": OURS}})
        logins = json.dumps({"anthropic": {"type": "api", "key": "k"}})
        self.assertEqual(self.providers(OPENCODE_AUTH_CONTENT=logins), {"anthropic": {"options": OURS}})

    def test_unused(self) -> None:
        """A provider that the user has no key for is not mentioned: OpenCode would offer whatever is mentioned."""
        registration = self.told({"model": "x/y"})
        self.assertEqual((self.providers({"model": "x/y"}), registration.notes), (None, ()))

    def test_merged(self) -> None:
        """The user's own options, headers and providers stay; a gateway key of another launch goes."""
        options = {"apiKey": "k", "headers": {"a": "b", "x-aileron-gateway-key": "old"}, "timeout": 5}
        told = self.providers({"provider": {"openai": {"options": options, "models": {"m": {}}}, "mine": {"x": 1}}})
        merged = {**options, **OURS, "headers": {"a": "b", "X-Aileron-Gateway-Key": KEY}}
        self.assertEqual(told, {"openai": {"options": merged, "models": {"m": {}}}, "mine": {"x": 1}})

    def test_own_base_url(self) -> None:
        """A provider that the user sends elsewhere is left alone, and the line says where to tell the gateway."""
        elsewhere: list[dict[str, Any]] = [
            {"options": {"baseURL": "http://corporate/v1"}},
            {"options": {"baseURL": "{env:SOMETHING}"}},
            {"options": {"baseURL": 1}},
            {"options": {"baseURL": "https://api.openai.com"}},
            {"api": "http://corporate/v1"},
            {"npm": "@ai-sdk/azure"},
            {"models": {"m": {"provider": {"api": "http://corporate/v1"}}}},
        ]
        for entry in elsewhere:
            content = {"provider": {"openai": entry}}
            said = ("openai", "config.yaml", "gateway.providers.openai.base_url")
            self.assert_alone(self.told(content), CONTENT, *said)
            self.user_file({"openai": entry})
            self.assert_alone(self.told(OPENAI_API_KEY="k"), str(self.project / "opencode.json"), *said)
            (self.project / "opencode.json").unlink()

    def test_base_url_of_the_environment(self) -> None:
        """The variables that OpenCode's own SDKs read count as the user's word too."""
        registration = self.told(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL="http://corporate/v1")
        self.assert_alone(registration, "ANTHROPIC_BASE_URL")
        self.assertNotIn("corporate", registration.notes[0])
        self.assertEqual(self.providers(OPENAI_API_KEY="k", OPENAI_BASE_URL=""), {"openai": {"options": OURS}})

    def test_same_address(self) -> None:
        """An address that is the gateway's own or its upstream's is no other address."""
        self.upstreams["openai"] = Upstream("http://corporate/openai")
        for address in (f"{URL}/v1", "http://corporate/openai/v1", "http://corporate/openai/v1/"):
            told = self.providers({"provider": {"openai": {"options": {"baseURL": address}}}})
            self.assertEqual(told, {"openai": {"options": OURS}}, address)
        for address in ("https://api.anthropic.com", "https://api.anthropic.com/v1"):
            told = self.providers(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL=address)
            self.assertEqual(told, {"anthropic": {"options": OURS}}, address)
        self.upstreams["anthropic"] = Upstream("http://corporate")
        self.assert_alone(self.told(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL="https://api.anthropic.com"))

    def test_unreadable(self) -> None:
        """Where a configuration cannot be read, every provider is left alone, and its content is not shown."""
        path = self.project / "opencode.json"
        for text in ("{hunter2", '["hunter2"]', '{"provider": ["hunter2"]}', ""):
            path.write_text(text)
            registration = self.told(OPENAI_API_KEY="k", ANTHROPIC_API_KEY="k")
            self.assert_alone(registration, str(path))
            self.assertNotIn("hunter2", registration.notes[0])

    def test_remote_settings(self) -> None:
        """Where an organisation's settings are fetched, every provider is left alone."""
        logins = json.dumps({"http://corporate": {"type": "wellknown", "key": "K", "token": "t"}})
        self.assert_alone(self.told(OPENAI_API_KEY="k", OPENCODE_AUTH_CONTENT=logins), "organisation")

    def test_subscription(self) -> None:
        """A ChatGPT login, which OpenCode sends to an address of its own, is left alone."""
        self.assert_alone(self.told(OPENCODE_AUTH_CONTENT='{"openai": {"type": "oauth"}}'), "ChatGPT")

    def test_injected(self) -> None:
        """A provider whose key the gateway has is offered with a stand-in, unless the user has a key."""
        self.upstreams["openai"] = Upstream("https://api.openai.com", injected=True)
        self.assertEqual(self.providers(), {"openai": {"options": {"apiKey": "the-gateway-has-it", **OURS}}})
        self.assertEqual(self.providers(OPENAI_API_KEY="k"), {"openai": {"options": OURS}})
        self.user_file({"openai": {"options": {"apiKey": "k"}}})
        self.assertEqual(self.providers(), {"openai": {"options": OURS}})

    def test_past_the_proxy(self) -> None:
        """What goes to the gateway, in plain HTTP, goes past the user's proxy, which keeps the rest."""
        address = "127.0.0.1:9"
        expected: list[tuple[dict[str, str], dict[str, str]]] = [
            ({}, {}),
            ({"NO_PROXY": "a"}, {}),
            ({"HTTP_PROXY": "p"}, {"NO_PROXY": address}),
            ({"http_proxy": "p", "NO_PROXY": "a,b"}, {"NO_PROXY": f"a,b,{address}"}),
            ({"ALL_PROXY": "p", "no_proxy": "a"}, {"no_proxy": f"a,{address}"}),
            ({"all_proxy": "p", "no_proxy": "", "NO_PROXY": "a"}, {"no_proxy": address, "NO_PROXY": f"a,{address}"}),
        ]
        for theirs, ours in expected:
            variables = dict(self.told(OPENAI_API_KEY="k", **theirs).variables)
            del variables[CONTENT]
            self.assertEqual(variables, ours)
        self.assertEqual(list(self.told(HTTP_PROXY="p").variables), [CONTENT])

    def test_odd_entries(self) -> None:
        """What is no object is passed over and replaced only where the gateway's own entry must stand."""
        told = self.providers({"provider": {"openai": 5, "anthropic": {"options": [], "models": {"m": 1}}}})
        self.assertEqual(told["openai"], {"options": OURS})
        self.assertEqual(told["anthropic"], {"options": OURS, "models": {"m": 1}})


class SettingsTests(OpenCodeCase):
    """A user's home, a repository, and a directory in it."""

    def setUp(self) -> None:
        super().setUp()
        self.repository, self.other = self.home / "repository", self.home / "other"
        self.project = self.repository / "deep" / "down"
        for directory in (self.project, self.other):
            directory.mkdir(parents=True)

    def read(self, *arguments: str, **environment: str) -> AgentSettings:
        """The settings of a launch here."""
        return read_settings(AGENT.sources, self.invocation(*arguments, **environment))

    def names(self, *arguments: str, **environment: str) -> list[str]:
        """The places of these."""
        return [layer.name for layer in self.read(*arguments, **environment).layers]

    def providers(self, **environment: str) -> list[tuple[str, Any]]:
        """What they say of providers."""
        return list(self.read(**environment).values("provider"))

    def configure(self, path: Path) -> str:
        """Have a configuration say something of providers."""
        return str(self.write(str(path.relative_to(self.home)), {"provider": PROVIDERS}))

    def test_every_place(self) -> None:
        """Each place counts, wherever it lies."""
        config = self.home / ".config" / "opencode"
        files = [
            *(config / name for name in ("config.json", "opencode.json", "opencode.jsonc")),
            self.project / "opencode.json",
            self.project.parent / "opencode.jsonc",
            self.repository / "opencode.json",
            self.repository / ".opencode" / "opencode.jsonc",
            self.home / ".opencode" / "opencode.json",
            self.home / "managed" / "opencode.json",
        ]
        for path in files:
            self.configure(path)
            self.assertEqual(self.providers(), [(str(path), PROVIDERS)])
            path.unlink()

    def test_named_places(self) -> None:
        """So does what a variable or an argument names, be it relative."""
        extra = self.configure(self.other / "opencode.json")
        xdg = self.configure(self.other / "xdg" / "opencode" / "opencode.json")
        self.assertEqual(self.names(OPENCODE_CONFIG=extra), [extra])
        self.assertEqual(self.names(OPENCODE_CONFIG_DIR=str(self.other)), [extra])
        self.assertEqual(self.names(XDG_CONFIG_HOME=str(self.other / "xdg")), [xdg])
        self.assertEqual(self.names("run", str(self.other)), [extra])
        self.assertEqual(self.names("run", f"--dir={self.other}"), [extra])
        relative = os.path.relpath(extra, self.project)
        [(_, providers)] = self.providers(OPENCODE_CONFIG=relative)
        self.assertEqual(providers, PROVIDERS)

    def test_logins(self) -> None:
        """Its logins are read from their file or from the variable that goes before it."""

        def logins(**environment: str) -> list[Any]:
            return [layer.values for layer in self.read(**environment).about(Topic.LOGINS).layers]

        held = {"openai": {"type": "oauth", "access": "hunter2"}, "http://x": {"type": "wellknown"}, "odd": 1}
        self.write(".local/share/opencode/auth.json", held)
        self.assertEqual(logins(), [held])
        self.assertEqual(logins(OPENCODE_AUTH_CONTENT="{bad"), [None])
        self.assertEqual(logins(OPENCODE_AUTH_CONTENT='{"a": {"type": "api"}}'), [{"a": {"type": "api"}}])

    def test_odd_arguments(self) -> None:
        """An argument that is no path at all is passed over."""
        self.assertEqual(self.names("a\0b", "x" * 5000, "--", ""), [])

    def test_secrets_hidden(self) -> None:
        """No repr shows what a configuration holds."""
        self.configure(self.project / "opencode.json")
        self.assertNotIn("corporate", repr(self.read(OPENAI_BASE_URL="http://corporate")))


class PromptsTests(OpenCodeCase):
    """Its permission prompts go to the inbox by a plugin."""

    def test_plugin(self) -> None:
        """The plugin stands beside the user's own, and knows the daemon from variables."""
        registration = self.hooked(OPENCODE_CONFIG_CONTENT='{"plugin": ["mine"]}')
        mine, ours = json.loads(registration.variables["OPENCODE_CONFIG_CONTENT"])["plugin"]
        self.assertEqual((mine, Path(ours.removeprefix("file://")).is_file()), ("mine", True))
        told = {name: registration.variables[name] for name in ("AILERON_URL", "AILERON_TOKEN", "AILERON_PROMPTS")}
        self.assertEqual(told, {"AILERON_URL": URL, "AILERON_TOKEN": TOKEN, "AILERON_PROMPTS": "asks"})
        self.assertEqual(self.hooked(asks=True, checks=True).variables["AILERON_PROMPTS"], "asks,checks")

    def test_headless(self) -> None:
        """A headless one, which rejects every prompt by itself, has it for rules alone."""
        self.assertNotIn("plugin", self.hooked("run", "hi").variables["OPENCODE_CONFIG_CONTENT"])
        self.assertEqual(self.hooked("run", "hi", checks=True).variables["AILERON_PROMPTS"], "checks")

    def test_left_alone(self) -> None:
        """What cannot be added to is left as it is, and it is said so."""
        registration = self.hooked(OPENCODE_CONFIG_CONTENT='{"plugin": {}}')
        self.assertIn("plugin in OPENCODE_CONFIG_CONTENT is no list", registration.notes[-1])


class WakeTests(OpenCodeCase):
    """A plugin tells it outcomes when it is idle."""

    def test_plugin(self) -> None:
        """It waits where a person sits, else it only says which conversation there is, if it may be resumed."""
        registration = self.woken(prompts=PromptAccess(URL, asks=True))
        plugins = json.loads(registration.variables["OPENCODE_CONFIG_CONTENT"])["plugin"]
        self.assertEqual([each.rpartition("/features/")[2] for each in plugins], _PLUGINS)
        self.assertEqual(registration.variables["AILERON_WAKE"], "waits")
        self.assertEqual(self.woken("run", "hi", resumes=True).variables["AILERON_WAKE"], "says")
        self.assertNotIn("AILERON_WAKE", self.woken("run", "hi").variables)

    def test_no_list(self) -> None:
        """Plugins that are no list stay, and it is said that it is not woken."""
        registration = self.woken(OPENCODE_CONFIG_CONTENT='{"plugin": {}}')
        self.assertIn("opencode is not woken by late outcomes", registration.notes[-1])


_PLUGINS = ["prompts/static/opencode.js", "wake/static/opencode.js"]
