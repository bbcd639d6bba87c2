"""What holds for each agent that can be launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.launch.agents import find_agents
from aileron.features.launch.registration import GatewayAccess, Invocation, Upstream
from tests.features.launch.agents.case import KEY, SERVER, TOKEN, URL

UPSTREAMS = {name: Upstream(f"https://api.{name}.com", injected=True) for name in ("anthropic", "openai")}
GATEWAY = GatewayAccess(URL, KEY, UPSTREAMS)

SCREENS: Mapping[str, tuple[Sequence[str], Sequence[str]]] = {
    "claude": (
        ("", "do-it", "--continue", "--model opus"),
        ("-p do-it", "do-it --print", "mcp list", "--version"),
    ),
    "codex": (
        ("", "fix-it", "-m exec", "resume --last", "--model=x fork", "-C /tmp"),
        ("exec hi", "-m gpt e hi", "--version", "mcp list", "login", "-h"),
    ),
    "goose": ((), ("", "run")),
    "opencode": (("", "."), ("run hi",)),
    "pi": (
        ("", "tell-the-team", "--model x", "-c", "tell list"),
        ("-p x", "--mode json", "--version", "list", "mcp list"),
    ),
}
"""With which arguments each agent draws on the whole terminal, and with which it does not."""

DIRECTORIES: Sequence[tuple[str, Mapping[str, str], str, str]] = (
    (
        "claude",
        {},
        (
            "/h/.claude/file-history /h/.claude/plans /h/.claude/projects /h/.claude/tasks /h/.claude/todos "
            "/h/.cache/claude-cli-nodejs"
        ),
        "/h/.claude",
    ),
    (
        "claude",
        {"CLAUDE_CONFIG_DIR": "/o", "XDG_CACHE_HOME": "/c"},
        "/o/file-history /o/plans /o/projects /o/tasks /o/todos /c/claude-cli-nodejs",
        "/o",
    ),
    ("codex", {}, "/h/.codex/archived_sessions /h/.codex/log /h/.codex/sessions", "/h/.codex"),
    (
        "goose",
        {"XDG_STATE_HOME": "/s", "XDG_DATA_HOME": "relative"},
        "/h/.local/share/goose/sessions /s/goose/logs",
        "/h/.config/goose /h/.local/share/goose /s/goose",
    ),
    (
        "goose",
        {"GOOSE_PATH_ROOT": "/r", "XDG_STATE_HOME": "/s"},
        "/r/data/sessions /r/state/logs",
        "/r/config /r/data /r/state",
    ),
    (
        "opencode",
        {"XDG_CACHE_HOME": "/c"},
        "/h/.local/share/opencode/log /h/.local/share/opencode/storage /h/.local/share/opencode/tool-output",
        "/h/.config/opencode /h/.local/share/opencode /h/.local/state/opencode /c/opencode",
    ),
    ("pi", {}, "/h/.pi/agent/sessions", "/h/.pi/agent"),
    ("pi", {"PI_CODING_AGENT_SESSION_DIR": "/s"}, "/s", "/h/.pi/agent"),
    ("pi", {"PI_CODING_AGENT_DIR": "/p"}, "/p/sessions", "/p"),
    ("pi", {"PI_CODING_AGENT_DIR": "~/p"}, "/h/p/sessions", "/h/p"),
    ("pi", {"PI_CODING_AGENT_DIR": "~"}, "/h/sessions", "/h"),
)
"""What each agent writes in a sandbox, and where its settings lie, with which variables."""


class AgentsTests(SynchronousTestCase):
    """Each of them makes the same promises."""

    def test_full_screen(self) -> None:
        """An agent draws on the whole terminal for a conversation, and not for what only prints."""
        self.assertEqual(set(SCREENS), set(find_agents()))
        for name, sides in SCREENS.items():
            for draws, lines in zip((True, False), sides, strict=True):
                for line in lines:
                    self.assertEqual(find_agents()[name].full_screen(tuple(line.split())), draws, f"{name} {line}")

    def test_directories(self) -> None:
        """In a sandbox an agent keeps its sessions and logs, and nothing that it reads as settings or starts."""
        self.assertEqual({name for name, *_ in DIRECTORIES}, set(find_agents()))
        for name, variables, own, settings in DIRECTORIES:
            agent, environment = find_agents()[name], {"HOME": "/h", **variables}
            self.assertEqual(agent.own_directories(environment), tuple(own.split()), name)
            self.assertEqual(agent.settings_directories(environment), tuple(settings.split()), name)
        files = find_agents()["opencode"].own_paths({"HOME": "/h"})
        self.assertEqual(files, tuple(f"/h/.local/share/opencode/opencode.db{end}" for end in ("", "-wal", "-shm")))

    def test_no_secret(self) -> None:
        """The session's token and gateway key are in the environment; no argument, note, file or repr shows them."""
        for name, agent in find_agents().items():
            registration = agent.prepare(Invocation((), {"HOME": "/nowhere"}, "/nowhere"))(SERVER, GATEWAY, "/private")
            for secret in (TOKEN, KEY):
                self.assertIn(secret, str(dict(registration.variables)), name)
                self.assertNotIn(secret, str([registration.arguments, registration.notes, registration.files]), name)
                self.assertNotIn(secret, repr((registration, SERVER, GATEWAY)), name)

    def test_past_the_proxy(self) -> None:
        """What goes to the gateway goes past the user's proxy, in words that the agent understands, and only then."""
        for name, agent in find_agents().items():
            environment = {"HOME": "/nowhere", "HTTP_PROXY": "http://proxy", "NO_PROXY": "a"}
            register = agent.prepare(Invocation((), environment, "/nowhere"))
            host = "127.0.0.1" if name in ("codex", "goose") else "127.0.0.1:9"
            self.assertEqual(register(SERVER, GATEWAY, "/private").variables.get("NO_PROXY"), f"a,{host}", name)
            bare = register(SERVER, None, "/private")
            self.assertNotIn("NO_PROXY", bare.variables, name)
            self.assertEqual(bare.notes, (), name)
