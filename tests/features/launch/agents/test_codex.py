"""Codex's registration."""

from __future__ import annotations

import tomllib
from itertools import pairwise
from typing import Any

from aileron.features.launch.registration import McpServer, Registration, Upstream
from aileron.features.prompts.programs import hash_codex_hook
from tests.features.launch.agents.case import TOKEN, AgentCase

CHATGPT = '{"auth_mode": "chatgpt", "tokens": {"access_token": "hunter2"}}'
CORPORATE = '[model_providers.corp]\nname = "Corp"\nbase_url = "https://llm.corp.test/v1/"\nenv_key = "CORP_KEY"\n'


def said(registration: Registration) -> dict[str, Any]:
    """What its arguments come to, by dotted path."""
    options, settings = registration.arguments[::2], registration.arguments[1::2]
    assert set(options) == {"-c"}
    pairs = (setting.split("=", 1) for setting in settings)
    return {path: tomllib.loads(f"it = {value}")["it"] for path, value in pairs}


class CodexCase(AgentCase):
    """A user of Codex with a key for their login."""

    name = "codex"

    def setUp(self) -> None:
        """Codex's home."""
        super().setUp()
        self.write(".codex/auth.json", '{"auth_mode": "apikey", "OPENAI_API_KEY": "sk-hunter2"}')


class ServerTests(CodexCase):
    """The tool server."""

    def test_added(self) -> None:
        """It is set by arguments that make Codex wait for it and its calls, and hear of actions that are added."""
        self.through = False
        expected = {
            "mcp_servers.aileron": {
                "command": "/opt/bin/aileron-mcp",
                "args": [],
                "env_vars": ["AILERON_TOKEN", "AILERON_URL"],
                "enabled": True,
                "required": True,
                "default_tools_approval_mode": "approve",
                "tool_timeout_sec": 3600,
                "startup_timeout_sec": 60,
            },
            "features.mcp_tool_list_changed": True,
            "suppress_unstable_features_warning": True,
        }
        self.assertEqual(said(self.registered()), expected)

    def test_server_of_the_same_name(self) -> None:
        """Where the user has a server of our name, in a project too, ours takes another, and they are told."""
        (self.project / ".codex").mkdir()
        for path in (self.home / ".codex" / "config.toml", self.project / ".codex" / "config.toml"):
            path.write_text('[mcp_servers.aileron]\nurl = "http://mine"\n')
            self.through = False
            registration = self.registered()
            self.assertIn("mcp_servers.aileron_session", said(registration))
            self.assertNotIn("mcp_servers.aileron", said(registration))
            self.assertIn("already have a tool server", registration.notes[0])
            path.unlink()

    def test_odd_path(self) -> None:
        """A path with quotes and the like comes out as it went in."""
        odd = 'C:\\x "\x7f\u00e9\U0001f600\t'
        registration = self.agent.prepare(self.invocation())(McpServer(odd, {}), None, "/private")
        self.assertEqual(said(registration)["mcp_servers.aileron"]["command"], odd)


class RoutesUser(CodexCase):
    """What tells whether something is left alone."""

    def assert_left_alone(self, why: str, *arguments: str, **environment: str) -> None:
        """No argument but the tool server's, no key, and a note that says why."""
        registration = self.registered(*arguments, **environment)
        self.assertEqual([path for path in said(registration) if path.startswith("model")], [])
        self.assertNotIn("AILERON_GATEWAY_KEY", registration.variables)
        (note,) = registration.notes
        self.assertIn(why, note)
        self.assertNotIn("hunter2", note)


class RoutedTests(RoutesUser):
    """What goes through it."""

    def test_key(self) -> None:
        """With an API key Codex asks the gateway as it would ask its own provider, with the login that it has."""
        registration = self.registered()
        settings = said(registration)
        self.assertEqual(settings["model_provider"], "aileron")
        provider = settings["model_providers.aileron"]
        self.assertEqual(provider["name"], "OpenAI")
        self.assertEqual(provider["base_url"], "http://127.0.0.1:9/openai/v1")
        self.assertTrue(provider["requires_openai_auth"])
        self.assertEqual(provider["env_http_headers"]["X-Aileron-Gateway-Key"], "AILERON_GATEWAY_KEY")
        self.assertIn("aileron: through the gateway: openai", registration.notes)

    def test_namesake(self) -> None:
        """A provider of the user's that is not asked and has our name is not mixed with ours, which has another."""
        self.write(".codex/config.toml", '[model_providers.aileron]\nbase_url = "https://theirs"\nenv_key = "THEIRS"\n')
        settings = said(self.registered())
        self.assertEqual(settings["model_provider"], "aileron_session")
        self.assertEqual(settings["model_providers.aileron_session"]["base_url"], "http://127.0.0.1:9/openai/v1")
        self.assertNotIn("model_providers.aileron", settings)

    def test_chatgpt(self) -> None:
        """With a ChatGPT login it goes where that login counts, if the daemon has a way there."""
        self.write(".codex/auth.json", CHATGPT)
        upstream = Upstream("https://chatgpt.com/backend-api/codex", injected=False, prefix="/chatgpt")
        self.assert_left_alone("a ChatGPT login uses another address")
        self.upstreams["chatgpt"] = upstream
        registration = self.registered()
        self.assertEqual(said(registration)["model_providers.aileron"]["base_url"], "http://127.0.0.1:9/chatgpt")
        self.assertIn("aileron: through the gateway: chatgpt", registration.notes)

    def test_key_in_the_environment(self) -> None:
        """A key in the environment goes before a login, but only where Codex works without a person."""
        self.write(".codex/auth.json", CHATGPT)
        key = {"CODEX_API_KEY": "sk-hunter2"}
        registration = self.registered("exec", "hi", **key)
        self.assertIn("aileron: through the gateway: openai", registration.notes)
        self.assertIn("a ChatGPT login uses another address", self.registered("hi", **key).notes[0])

    def test_injected(self) -> None:
        """Where the gateway has the key, Codex is asked for none."""
        self.upstreams["openai"] = Upstream("https://api.openai.com", injected=True, prefix="/openai")
        (self.home / ".codex" / "auth.json").unlink()
        provider = said(self.registered())["model_providers.aileron"]
        self.assertFalse(provider["requires_openai_auth"])

    def test_same_address(self) -> None:
        """An address of the user's that is the gateway's upstream, or the gateway itself, is no other place."""
        for address in ("https://api.openai.com/v1/", "http://127.0.0.1:9/openai/v1"):
            self.write(".codex/config.toml", f'openai_base_url = "{address}"\n')
            provider = said(self.registered())["model_providers.aileron"]
            self.assertEqual(provider["base_url"], "http://127.0.0.1:9/openai/v1")

    def test_own_provider(self) -> None:
        """A provider of the user's own that the gateway knows keeps all that they say of it but for the address."""
        self.write(".codex/config.toml", f'model_provider = "corp"\n{CORPORATE}')
        self.upstreams["mine"] = Upstream("https://llm.corp.test", prefix="/mine")
        registration = self.registered()
        settings = said(registration)
        self.assertNotIn("model_provider", settings)
        self.assertEqual(settings["model_providers.corp.base_url"], "http://127.0.0.1:9/mine/v1")
        self.assertEqual(settings["model_providers.corp.env_http_headers.X-Aileron-Gateway-Key"], "AILERON_GATEWAY_KEY")
        self.assertNotIn("CORP_KEY", registration.variables)
        self.assertEqual(self.registered("resume").notes, registration.notes)

    def test_own_provider_injected(self) -> None:
        """If the gateway has its key, a dummy stands for the one that is not set."""
        self.write(".codex/config.toml", f'model_provider = "corp"\n{CORPORATE}')
        self.upstreams["mine"] = Upstream("https://llm.corp.test", injected=True, prefix="/mine")
        self.assertEqual(self.registered().variables["CORP_KEY"], "the-gateway-has-it")
        variables = self.registered(CORP_KEY="sk-1").variables
        self.assertNotIn("CORP_KEY", variables)

    def test_resume(self) -> None:
        """Who wants to resume is told what can be; not where nothing is changed of that."""
        for arguments in (("resume", "--last"), ("exec", "resume", "x")):
            self.assertIn("For others use fork", self.registered(*arguments).notes[-1])
        self.assertNotIn("fork", str(self.registered("go on").notes))
        self.through = False
        self.assertEqual(self.registered("resume", "--last").notes, ())


class LeftAloneTests(RoutesUser):
    """What does not, and what the user is told of it."""

    def test_elsewhere(self) -> None:
        """A base URL or a provider of the user's own is respected, whichever file says it."""
        for name, text in (
            ("config.toml", 'openai_base_url = "https://hunter2.test/v1"'),
            ("config.toml", 'openai_base_url = "https://api.openai.com.hunter2.test/v1"'),
            ("config.toml", f'model_provider = "corp"\n{CORPORATE}'),
            ("managed_config.toml", 'model_provider = "amazon-bedrock"'),
        ):
            self.write(f".codex/{name}", text)
            self.assert_left_alone("config.yaml")
            (self.home / ".codex" / name).unlink()

    def test_profile(self) -> None:
        """The file of a profile counts as soon as an argument names it, in any of the ways."""
        self.write(".codex/work.config.toml", 'model_provider = "corp"')
        self.assertIn("through the gateway", self.registered().notes[0])
        for arguments in (("-p", "work"), ("--profile=work",), ("-pwork",), ("exec", "--profile", "work", "hi")):
            self.assert_left_alone("corp does not use the gateway", *arguments)

    def test_arguments(self) -> None:
        """Where the user's arguments say it, they are right."""
        for arguments in (
            ("-c", "model_provider=x"),
            ("exec", "--config=openai_base_url='x'", "hi"),
            ("-cmodel_providers.x.name=y",),
            ("--oss",),
        ):
            self.assert_left_alone("your arguments", *arguments)

    def test_no_login(self) -> None:
        """Without a login, or with one that is not in a file, nothing is known of where it would count."""
        self.write(".codex/config.toml", 'cli_auth_credentials_store = "keyring"')
        self.assert_left_alone("its login cannot be determined")
        self.write(".codex/config.toml", "")
        self.assert_left_alone("its login cannot be determined", CODEX_ACCESS_TOKEN="hunter2")
        for text in ("{", "[]", '{"auth_mode": "other"}'):
            self.write(".codex/auth.json", text)
            self.assert_left_alone("its login cannot be determined")
        (self.home / ".codex" / "auth.json").unlink()
        self.assert_left_alone("no login yet")

    def test_unreadable(self) -> None:
        """A file that cannot be read may say anything."""
        self.write(".codex/config.toml", "model_provider = hunter2")
        self.assert_left_alone("config.toml cannot be read")
        (self.home / ".codex" / "config.toml").unlink()
        (self.home / ".codex" / "config.toml").mkdir()
        self.assert_left_alone("config.toml cannot be read")

    def test_other_home(self) -> None:
        """Codex's home is where the variable says."""
        elsewhere = self.home / "other"
        elsewhere.mkdir()
        (elsewhere / "config.toml").write_text('model_provider = "corp"')
        self.assert_left_alone("corp does not use the gateway", CODEX_HOME=str(elsewhere))


class PromptsTests(CodexCase):
    """Its permission prompts go to the inbox by hooks that arguments trust."""

    def hooks(self, registration: Registration) -> dict[str, Any]:
        """What the arguments set of hooks."""
        words = registration.arguments
        given = [value for option, value in pairwise(words) if option == "-c"]
        return {key: value for each in given for key, _, value in [each.partition("=")] if key.startswith("hooks")}

    def test_asked_for(self) -> None:
        """Its dialog comes only after its hook, so nothing is listed unless it is asked for."""
        self.assertEqual(self.hooks(self.hooked()), {})
        hooks = self.hooks(self.hooked(asks=True))
        self.assertEqual(hooks.keys(), {"hooks.PermissionRequest", "hooks.state"})
        self.assertIn("relay.py codex", hooks["hooks.PermissionRequest"])
        self.assertNotIn(TOKEN, str(hooks))

    def test_rules(self) -> None:
        """Rules are asked before each call, which is blocked without a reply."""
        hooks = self.hooks(self.hooked("exec", "do it", checks=True))
        self.assertEqual(hooks.keys(), {"hooks.PreToolUse", "hooks.state"})
        self.assertIn("relay.py codex block", hooks["hooks.PreToolUse"])

    def test_hash(self) -> None:
        """The hash is the one that Codex computes."""
        found = hash_codex_hook("permission_request", "'/x/python' -I '/tmp/a b/hook.py'", 3600)
        self.assertEqual(found, "sha256:e7bc2792b01598c2ce2f8c093f6757622cfab49af8677775e7120be695afd01f")

    def test_left_alone(self) -> None:
        """Hooks in the user's own arguments stay, and it is said so."""
        for words in (("-c", "hooks.PreToolUse=[]"), ("-chooks={}",), ("--config=hooks.state={}",)):
            registration = self.hooked(*words, asks=True)
            self.assertEqual(self.hooks(registration), {})
            self.assertIn("your arguments set hooks", registration.notes[-1])
