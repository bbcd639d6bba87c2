"""Which of OpenCode's providers go through the gateway."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from aileron.launch import Gateway, Invocation, McpServer, Registration, Upstream, find_agents

URL, KEY = "http://127.0.0.1:9", "ail_g_secret"
OURS = {"baseURL": f"{URL}/v1", "headers": {"X-Aileron-Gateway-Key": KEY}}
DEFAULTS = {"openai": Upstream("https://api.openai.com"), "anthropic": Upstream("https://api.anthropic.com")}


class RoutesTests(SynchronousTestCase):
    """A user with some keys and settings."""

    def setUp(self) -> None:
        self.directory = Path(self.mktemp()).absolute()
        self.directory.mkdir()
        self.upstreams: dict[str, Upstream] = dict(DEFAULTS)

    def registered(self, content: Any = None, **environment: str) -> Registration:
        """What comes of it."""
        theirs = {} if content is None else {"OPENCODE_CONFIG_CONTENT": json.dumps(content)}
        managed = {"HOME": str(self.directory), "OPENCODE_TEST_MANAGED_CONFIG_DIR": str(self.directory / "managed")}
        invocation = Invocation((), {**managed, **theirs, **environment}, str(self.directory))
        server = McpServer("/bin/aileron-mcp", {})
        return find_agents()["opencode"].prepare(invocation)(server, Gateway(URL, KEY, self.upstreams), "/private")

    def providers(self, content: Any = None, **environment: str) -> Any:
        """What OpenCode is told of its providers."""
        registration = self.registered(content, **environment)
        return json.loads(registration.variables["OPENCODE_CONFIG_CONTENT"]).get("provider")

    def user_file(self, providers: Mapping[str, Any]) -> None:
        """Write the user's own configuration in the project."""
        (self.directory / "opencode.json").write_text(json.dumps({"provider": providers}))

    def assert_alone(self, registration: Registration, *said: str) -> None:
        """No provider was touched, and the user is told why."""
        self.assertNotIn(KEY, registration.variables["OPENCODE_CONFIG_CONTENT"])
        [line] = registration.notes
        for word in ("left alone", *said):
            self.assertIn(word, line)

    def test_keys_of_the_environment(self) -> None:
        """Each provider that the user has a key for goes through the gateway."""
        self.assertEqual(self.providers(ANTHROPIC_API_KEY="k"), {"anthropic": {"options": OURS}})
        both = self.providers(ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k")
        self.assertEqual(both, {"anthropic": {"options": OURS}, "openai": {"options": OURS}})

    def test_unused(self) -> None:
        """A provider that the user has no key for is not mentioned: OpenCode would offer whatever is mentioned."""
        registration = self.registered({"model": "x/y"})
        self.assertEqual((self.providers({"model": "x/y"}), registration.notes), (None, ()))

    def test_login(self) -> None:
        """A key that OpenCode keeps itself counts like one of the environment."""
        logins = {"anthropic": {"type": "api", "key": "k"}}
        told = self.providers(OPENCODE_AUTH_CONTENT=json.dumps(logins))
        self.assertEqual(told, {"anthropic": {"options": OURS}})

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
            self.assert_alone(self.registered(content), "OPENCODE_CONFIG_CONTENT", *said)
            self.user_file({"openai": entry})
            self.assert_alone(self.registered(OPENAI_API_KEY="k"), str(self.directory / "opencode.json"), *said)
            (self.directory / "opencode.json").unlink()

    def test_other_provider_goes_on(self) -> None:
        """The other provider goes through the gateway all the same, and what they set stays as they set it."""
        theirs = {"openai": {"options": {"baseURL": "http://corporate/v1"}}}
        told = self.providers({"provider": theirs}, ANTHROPIC_API_KEY="k")
        self.assertEqual(told, {**theirs, "anthropic": {"options": OURS}})

    def test_base_url_of_the_environment(self) -> None:
        """The variables that OpenCode's own SDKs read count as the user's word too."""
        registration = self.registered(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL="http://corporate/v1")
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

    def test_moved_upstream(self) -> None:
        """The vendor's address is another one where the gateway sends elsewhere."""
        self.upstreams["anthropic"] = Upstream("http://corporate")
        self.assert_alone(self.registered(ANTHROPIC_API_KEY="k", ANTHROPIC_BASE_URL="https://api.anthropic.com"))

    def test_unreadable(self) -> None:
        """Where a configuration cannot be read, every provider is left alone, and its content is not shown."""
        (self.directory / "opencode.json").write_text("{hunter2")
        registration = self.registered(OPENAI_API_KEY="k", ANTHROPIC_API_KEY="k")
        self.assert_alone(registration, str(self.directory / "opencode.json"))
        self.assertNotIn("hunter2", registration.notes[0])

    def test_remote_settings(self) -> None:
        """Where an organisation's settings are fetched, every provider is left alone."""
        logins = json.dumps({"http://corporate": {"type": "wellknown", "key": "K", "token": "t"}})
        self.assert_alone(self.registered(OPENAI_API_KEY="k", OPENCODE_AUTH_CONTENT=logins), "organisation")

    def test_subscription(self) -> None:
        """A ChatGPT login, which OpenCode sends to an address of its own, is left alone."""
        self.assert_alone(self.registered(OPENCODE_AUTH_CONTENT='{"openai": {"type": "oauth"}}'), "ChatGPT")

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
            variables = dict(self.registered(OPENAI_API_KEY="k", **theirs).variables)
            del variables["OPENCODE_CONFIG_CONTENT"]
            self.assertEqual(variables, ours)
        self.assertEqual(list(self.registered(HTTP_PROXY="p").variables), ["OPENCODE_CONFIG_CONTENT"])

    def test_odd_entries(self) -> None:
        """What is no object is passed over and replaced only where the gateway's own entry must stand."""
        told = self.providers({"provider": {"openai": 5, "anthropic": {"options": [], "models": {"m": 1}}}})
        self.assertEqual(told["openai"], {"options": OURS})
        self.assertEqual(told["anthropic"], {"options": OURS, "models": {"m": 1}})
