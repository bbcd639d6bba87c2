"""Claude Code's registration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from aileron.features.launch.registration import McpServer, PromptAccess, Registration, Upstream
from tests.features.launch.agents.case import KEY, SERVER, TOKEN, URL, AgentCase

OURS = {"ANTHROPIC_BASE_URL": URL, "ANTHROPIC_CUSTOM_HEADERS": f"X-Aileron-Gateway-Key: {KEY}"}
ELSEWHERE = "https://llm.corporate.example/anthropic"


class ClaudeCase(AgentCase):
    """A user of Claude Code."""

    name = "claude"


class ToolsTests(ClaudeCase):
    """Our tools come by arguments that hold no secret."""

    def bare(self, *arguments: str) -> Registration:
        """What comes of a launch without a gateway."""
        self.through = False
        return self.registered(*arguments)

    def servers(self, registration: Registration) -> Any:
        """What it is told of tool servers."""
        option, _, value = registration.arguments[0].partition("=")
        self.assertEqual(option, "--mcp-config")
        return json.loads(value)["mcpServers"]

    def test_server(self) -> None:
        """The server's environment is named, its values are in the agent's, which does not ask before it calls it."""
        registration = self.bare("-p", "do it")
        entry = {
            "type": "stdio",
            "command": "/opt/bin/aileron-mcp",
            "args": [],
            "env": {"AILERON_URL": "${AILERON_URL}", "AILERON_TOKEN": "${AILERON_TOKEN}"},
            "alwaysLoad": True,
            "timeout": 3_600_000,
        }
        self.assertEqual(self.servers(registration), {"aileron": entry})
        self.assertEqual(registration.arguments[1:], ("--allowedTools=mcp__aileron__*",))
        self.assertEqual((registration.variables, registration.notes, registration.files), (SERVER.environment, (), {}))

    def test_one_word_each(self) -> None:
        """No argument of ours could swallow one of the user's, as those that take several would."""
        for argument in self.registered().arguments:
            self.assertRegex(argument, "^--[a-zA-Z-]+=.")

    def test_commands(self) -> None:
        """A command of its own, which arguments of ours would make a prompt, gets nothing, and it is said so."""
        for command in ("mcp", "attach", "update", "--version", "--help"):
            registration = self.registered(command, "list")
            self.assertEqual((registration.arguments, registration.variables), ((), {}))
            [line] = registration.notes
            self.assertIn(f"claude {command} runs outside a session", line)
        self.assertTrue(self.registered("tell me of mcp").arguments)
        self.assertTrue(self.registered("--model", "mcp").arguments)

    def test_background(self) -> None:
        """Of a session in the background it is said that its tools do not last."""
        self.assertIn("background", self.bare("--bg", "do it").notes[0])


class RoutesTests(ClaudeCase):
    """A user with a login and settings."""

    server = McpServer("/bin/aileron-mcp", {})

    def settings(self, **variables: str) -> Path:
        """Have the user's own settings put these into its environment."""
        return self.write(".claude/settings.json", {"env": variables})

    def won(self, registration: Registration) -> Any:
        """What we say over the user's settings."""
        [argument] = registration.arguments[2:]
        option, _, value = argument.partition("=")
        self.assertEqual(option, "--settings")
        return json.loads(value)["env"]

    def assert_alone(self, registration: Registration, *said: str) -> None:
        """Nothing was touched, and the user is told why."""
        self.assertEqual((dict(registration.variables), registration.arguments[2:]), ({}, ()))
        [line] = registration.notes
        for word in ("not use the gateway", *said):
            self.assertIn(word, line)

    def test_logins(self) -> None:
        """Whatever login the user has is kept: only the address changes, and a header is added."""
        for login in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CLAUDE_CODE_OAUTH_TOKEN", "UNRELATED"):
            registration = self.registered(**{login: "theirs"})
            self.assertEqual((registration.variables, registration.arguments[2:]), (OURS, ()))
            self.assertEqual(registration.notes, ("aileron: through the gateway: anthropic",))

    def test_own_headers(self) -> None:
        """The user's own header lines stay; a gateway key of another launch goes."""
        told = self.registered(ANTHROPIC_CUSTOM_HEADERS="a: b\nx-aileron-gateway-key: old\n\nc: d").variables
        lines = told["ANTHROPIC_CUSTOM_HEADERS"].splitlines()
        self.assertEqual([line for line in lines if line], ["a: b", "c: d", f"X-Aileron-Gateway-Key: {KEY}"])

    def test_elsewhere(self) -> None:
        """An address of the user's own, or a shared login's, is respected, and it is said where to tell the gateway."""
        told = {"env": {"ANTHROPIC_BASE_URL": ELSEWHERE}}
        names = (
            ".claude.json",
            ".claude/settings.json",
            ".claude/remote-settings.json",
            "project/.claude/settings.json",
            "project/.claude/settings.local.json",
            ".config/anthropic/configs/work.json",
        )
        for name in names:
            path = self.write(name, {"base_url": ELSEWHERE} if "anthropic" in name else told)
            registration = self.registered()
            self.assert_alone(registration, str(path), "config.yaml", "gateway.providers.anthropic.base_url")
            self.assertNotIn("corporate", registration.notes[0])
            path.unlink()
        self.assert_alone(self.registered(ANTHROPIC_BASE_URL=ELSEWHERE), "ANTHROPIC_BASE_URL")
        for arguments in (("--settings", json.dumps(told)), (f"--settings={json.dumps(told)}",)):
            self.assert_alone(self.registered(*arguments), "--settings")
        self.write("project/mine.json", told)
        self.assert_alone(self.registered("--settings", "mine.json"), "--settings")

    def test_upwards(self) -> None:
        """Settings of the repository around the directory count, and none above what is no repository."""
        self.write("project/.claude/settings.local.json", {"env": {"ANTHROPIC_BASE_URL": ELSEWHERE}})
        repository, self.project = self.project, self.project / "deep" / "down"
        self.project.mkdir(parents=True)
        self.assertEqual(self.registered().variables, OURS)
        (repository / ".git").mkdir()
        self.assert_alone(self.registered(), "settings.local.json")

    def test_same_address(self) -> None:
        """An address that is the gateway's own or its upstream's is no other address."""
        self.upstreams["anthropic"] = Upstream(ELSEWHERE)
        for address in ("", URL, f"{URL}/s/ail_g_old", ELSEWHERE, f"{ELSEWHERE}/"):
            self.assertEqual(self.registered(ANTHROPIC_BASE_URL=address).variables, OURS, address)
            self.settings(ANTHROPIC_BASE_URL=address)
            self.assertEqual(self.won(self.registered()), {"ANTHROPIC_BASE_URL": URL})
            self.settings()
        self.assert_alone(self.registered(ANTHROPIC_BASE_URL="https://api.anthropic.com"))

    def test_headers_in_settings(self) -> None:
        """Where settings have headers, which win over ours, the key stands in the address."""
        self.settings(ANTHROPIC_CUSTOM_HEADERS="a: b")
        registration = self.registered()
        self.assertEqual(registration.variables, {"ANTHROPIC_BASE_URL": f"{URL}/s/{KEY}"})
        self.assertEqual(registration.arguments[2:], ())

    def test_not_to_be_won_over(self) -> None:
        """Where ours would not count, or stand where everyone can read it, it is left alone."""
        self.upstreams["anthropic"] = Upstream(ELSEWHERE)
        self.settings(ANTHROPIC_CUSTOM_HEADERS="a: b", ANTHROPIC_BASE_URL=ELSEWHERE)
        self.assert_alone(self.registered(), "both")
        self.settings(ANTHROPIC_BASE_URL=ELSEWHERE)
        self.assert_alone(self.registered("--settings", '{"model": "opus"}'), "--settings")
        self.settings()
        self.write(".claude/remote-settings.json", {"env": {"ANTHROPIC_BASE_URL": ELSEWHERE}})
        self.assert_alone(self.registered(), "remote-settings.json")

    def test_own_settings_option(self) -> None:
        """The user's own C{--settings} is no hindrance as such."""
        registration = self.registered("--settings", '{"env": {"A": "b"}}')
        self.assertEqual((registration.variables, registration.arguments[2:]), (OURS, ()))

    def test_other_services(self) -> None:
        """Who uses Claude by another company's service is left alone."""
        self.assert_alone(self.registered(CLAUDE_CODE_USE_BEDROCK="1"), "CLAUDE_CODE_USE_BEDROCK")
        self.assert_alone(self.registered(ANTHROPIC_UNIX_SOCKET="/run/x"), "ANTHROPIC_UNIX_SOCKET")
        self.assertEqual(self.registered(CLAUDE_CODE_USE_BEDROCK="0").variables, OURS)
        path = self.settings(CLAUDE_CODE_USE_VERTEX="true")
        self.assert_alone(self.registered(), "CLAUDE_CODE_USE_VERTEX", str(path))

    def test_unreadable(self) -> None:
        """Where settings cannot be read, it is left alone, and they are not shown."""
        for text in ("{hunter2", '["hunter2"]', '{"env": "hunter2"}'):
            path = self.write(".claude/settings.json", text)
            registration = self.registered()
            self.assert_alone(registration, str(path))
            self.assertNotIn("hunter2", registration.notes[0])
        path.unlink()
        self.assert_alone(self.registered("--settings", "absent.json"), "--settings")

    def test_injected(self) -> None:
        """Where the gateway has the key, a stand-in keeps it from asking for a login, unless there is one."""
        self.upstreams["anthropic"] = Upstream("https://api.anthropic.com", injected=True)
        self.assertEqual(self.registered().variables["ANTHROPIC_AUTH_TOKEN"], "the-gateway-has-it")
        self.assertEqual(self.registered(ANTHROPIC_API_KEY="k").variables, OURS)
        logins: list[tuple[str, Any]] = [
            (".claude/.credentials.json", {"claudeAiOauth": {"accessToken": "k"}}),
            (".claude/settings.json", {"apiKeyHelper": "print-key"}),
            (".claude/settings.json", {"env": {"ANTHROPIC_AUTH_TOKEN": "k"}}),
            (".claude.json", {"oauthAccount": {"emailAddress": "me@example.com"}}),
        ]
        for name, value in logins:
            path = self.write(name, value)
            self.assertEqual(self.registered().variables, OURS, name)
            path.unlink()

    def test_past_the_proxy(self) -> None:
        """What goes to the gateway goes past the user's proxy, be it set in the environment or in settings."""
        told = self.registered(HTTPS_PROXY="p", NO_PROXY="a").variables
        self.assertEqual(told, {**OURS, "NO_PROXY": "a,127.0.0.1:9"})
        self.settings(HTTP_PROXY="p")
        self.assertEqual(self.registered().variables, {**OURS, "NO_PROXY": "127.0.0.1:9"})
        self.settings(HTTP_PROXY="p", no_proxy="b")
        self.assertEqual(self.won(self.registered()), {"no_proxy": "b,127.0.0.1:9"})

    def test_moved_settings(self) -> None:
        """C{CLAUDE_CONFIG_DIR} moves the user's own."""
        self.settings(ANTHROPIC_BASE_URL=ELSEWHERE)
        self.assertEqual(self.registered(CLAUDE_CONFIG_DIR=str(self.home / "other")).variables, OURS)
        self.write("other/settings.json", {"env": {"ANTHROPIC_BASE_URL": ELSEWHERE}})
        self.assert_alone(self.registered(CLAUDE_CONFIG_DIR=str(self.home / "other")), "other")


class PromptsTests(ClaudeCase):
    """Its permission prompts go to the inbox by hooks in the one argument for settings."""

    def hooks(self, registration: Registration) -> Any:
        """The hooks, by event."""
        settings = [each for each in registration.arguments if each.startswith("--settings=")]
        self.assertLessEqual(len(settings), 1)
        return json.loads(settings[0].partition("=")[2])["hooks"] if settings else {}

    def test_beside(self) -> None:
        """Where a person sits the hook waits for an hour beside its own dialog, and others tell when that is closed."""
        hooks = self.hooks(self.hooked())
        hook = {
            "type": "http",
            "url": f"{URL}/v1/prompts/claude",
            "headers": {"Authorization": "Bearer $AILERON_TOKEN"},
            "allowedEnvVars": ["AILERON_TOKEN"],
            "timeout": 3600,
        }
        self.assertEqual(hooks["PermissionRequest"], [{"hooks": [hook]}])
        ends = {"PostToolUse", "PostToolUseFailure", "PermissionDenied", "UserPromptSubmit"}
        self.assertEqual(hooks.keys(), {"PermissionRequest", "Elicitation", *ends})
        self.assertEqual(hooks["Elicitation"][0]["matcher"], "aileron")
        self.assertNotIn("onFailure", str(hooks))

    def test_headless(self) -> None:
        """A headless one waits for nobody, unless it is asked for."""
        self.assertEqual(self.hooks(self.hooked("-p", "do it")), {})
        self.assertIn("PermissionRequest", self.hooks(self.hooked("-p", "do it", asks=True)))

    def test_rules(self) -> None:
        """Rules that deny are asked before each call, and nothing runs if they do not answer."""
        hooks = self.hooks(self.hooked("-p", "do it", checks=True))
        (hook,) = hooks["PreToolUse"][0]["hooks"]
        self.assertEqual((hook["onFailure"], hook["timeout"]), ("block", 10))
        self.assertNotIn("PermissionRequest", hooks)

    def test_secrets(self) -> None:
        """No argument has the token."""
        for registration in (self.hooked(), self.hooked(asks=True, checks=True)):
            self.assertNotIn(TOKEN, " ".join(registration.arguments))
            self.assertEqual(registration.variables["AILERON_TOKEN"], TOKEN)

    def test_with_routes(self) -> None:
        """Variables that the gateway has to set in the settings stay beside the hooks."""
        self.write(".claude/settings.json", {"env": {"ANTHROPIC_BASE_URL": "https://api.anthropic.com"}})
        (settings,) = [each for each in self.hooked().arguments if each.startswith("--settings=")]
        merged = json.loads(settings.partition("=")[2])
        self.assertEqual((merged["env"], "hooks" in merged), ({"ANTHROPIC_BASE_URL": URL}, True))

    def test_left_alone(self) -> None:
        """Where the user gives settings by the same option, or turns hooks off, none is added, and it is said so."""
        given = self.hooked("--settings", '{"a": 1}')
        self.write(".claude/settings.json", {"disableAllHooks": True})
        for registration, word in ((given, "--settings"), (self.hooked(), "disableAllHooks")):
            self.assertNotIn("PermissionRequest", str(registration.arguments))
            (note,) = [each for each in registration.notes if "permission prompts" in each]
            self.assertIn(word if word == "--settings" else "turns hooks off", note)

    def test_off(self) -> None:
        """Without the inbox, and in a command of its own, it is launched exactly as it was."""
        self.assertNotIn("hooks", str(self.registered().arguments))
        self.assertEqual(self.hooked("mcp", "list"), self.registered("mcp", "list"))

    def test_proxy(self) -> None:
        """The hook reaches the daemon past the user's proxy."""
        self.through = False
        self.assertIn("127.0.0.1:9", self.hooked(HTTP_PROXY="http://proxy.example").variables["NO_PROXY"])


class WakeTests(ClaudeCase):
    """A hook tells it outcomes when it is idle."""

    def hook(self, registration: Registration) -> Any:
        """The hook at the end of a turn, or None."""
        settings = [each for each in registration.arguments if each.startswith("--settings=")]
        hooks = json.loads(settings[0].partition("=")[2])["hooks"] if settings else {}
        return hooks["Stop"][0]["hooks"][0] if "Stop" in hooks else None

    def test_idle(self) -> None:
        """Where a person sits, a command waits in the background, without the token in its line."""
        registration = self.woken()
        hook = self.hook(registration)
        self.assertEqual((hook["type"], hook["asyncRewake"], hook["timeout"]), ("command", True, 86_400))
        self.assertTrue(hook["command"].endswith("hook.py waits"))
        self.assertNotIn(TOKEN, " ".join(registration.arguments))
        self.assertEqual(registration.variables["AILERON_TOKEN"], TOKEN)

    def test_headless(self) -> None:
        """Headless it only says which conversation it has, and that only if it may be resumed."""
        self.assertIsNone(self.hook(self.woken("-p", "do it")))
        hook = self.hook(self.woken("-p", "do it", resumes=True))
        self.assertNotIn("asyncRewake", hook)
        self.assertTrue(hook["command"].endswith("hook.py says"))

    def test_beside_prompts(self) -> None:
        """Hooks for permission prompts stay beside it in one argument."""
        registration = self.woken(prompts=PromptAccess(URL, asks=True))
        (settings,) = [each for each in registration.arguments if each.startswith("--settings=")]
        self.assertIn("PermissionRequest", settings)
        self.assertIsNotNone(self.hook(registration))

    def test_left_alone(self) -> None:
        """Where the user gives settings by the same option, none is added, and it is said so."""
        registration = self.woken("--settings", '{"a": 1}')
        self.assertNotIn("Stop", str(registration.arguments))
        self.assertIn("claude is not woken by late outcomes: your --settings", registration.notes[-1])
        self.assertEqual(self.woken("mcp", "list"), self.registered("mcp", "list"))
