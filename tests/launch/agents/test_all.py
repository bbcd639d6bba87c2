"""What holds for each agent that can be launched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from twisted.trial.unittest import SynchronousTestCase

from aileron.launch import GatewayAccess, Invocation, Upstream, find_agents
from tests.launch.agents.case import KEY, SERVER, TOKEN, URL

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


class AgentsTests(SynchronousTestCase):
    """Each of them makes the same promises."""

    def test_full_screen(self) -> None:
        """An agent draws on the whole terminal for a conversation, and not for what only prints."""
        self.assertEqual(set(SCREENS), set(find_agents()))
        for name, sides in SCREENS.items():
            for draws, lines in zip((True, False), sides, strict=True):
                for line in lines:
                    self.assertEqual(find_agents()[name].full_screen(tuple(line.split())), draws, f"{name} {line}")

    def test_no_secret(self) -> None:
        """The session's token and gateway key are in the environment; no argument, note, file or repr shows them."""
        for name, agent in find_agents().items():
            registration = agent.prepare(Invocation((), {"HOME": "/nowhere"}, "/nowhere"))(SERVER, GATEWAY, "/private")
            for secret in (TOKEN, KEY):
                self.assertIn(secret, str(dict(registration.variables)), name)
                self.assertNotIn(secret, str([registration.arguments, registration.notes, registration.files]), name)
                self.assertNotIn(secret, repr((registration, SERVER, GATEWAY)), name)

    def test_past_the_proxy(self) -> None:
        """What goes to the gateway goes past the user's proxy, whichever agent it is, and only then."""
        for name, agent in find_agents().items():
            environment = {"HOME": "/nowhere", "HTTP_PROXY": "http://proxy", "NO_PROXY": "a"}
            register = agent.prepare(Invocation((), environment, "/nowhere"))
            self.assertIn("a,127.0.0.1", register(SERVER, GATEWAY, "/private").variables.get("NO_PROXY", ""), name)
            bare = register(SERVER, None, "/private")
            self.assertNotIn("NO_PROXY", bare.variables, name)
            self.assertEqual(bare.notes, (), name)
