"""Codex."""

import json
import re
from pathlib import Path

from tests.agents.kind import Kind
from tests.functional.home import Home
from tests.functional.process import Finished
from tests.functional.script import Call

_BEFORE = re.compile(r"\AWall time: [0-9.]+ seconds\nOutput:\n?")


class Codex(Kind):
    """Logged in with an API key."""

    name = "codex"
    model = "gpt-5.1-codex"
    shell = "exec_command"
    serial = "It sends the second call when the first has been answered."
    shortens = "Of what is longer than 10 000 tokens it shows the model the beginning and the end."
    ready = "Ask Codex to do anything"
    leaving = ("\x03", "\x03")
    notes = True

    def configure_user(self, home: Home, llm_url: str) -> tuple[Path, ...]:
        """See `Kind`."""
        own = home.user / ".codex"
        own.mkdir()
        settings, login = own / "config.toml", own / "auth.json"
        settings.write_text(f'# mine\nmodel = "{self.model}"\n[mcp_servers.mine]\ncommand = "/bin/cat"\n')
        login.write_text(json.dumps({"auth_mode": "apikey", "OPENAI_API_KEY": "sk-of-the-user"}))
        return settings, login

    def arguments(self, prompt: str) -> tuple[str, ...]:
        """See `Kind`."""
        return ("exec", "--skip-git-repo-check", "--json", prompt)

    def unattended(self, prompt: str) -> tuple[str, ...]:
        """See `Kind`."""
        first, *rest = self.arguments(prompt)
        return (first, "--dangerously-bypass-approvals-and-sandbox", *rest)

    def settle(self, home: Home) -> None:
        """See `Kind`; the project is one that its user trusts."""
        with (home.user / ".codex" / "config.toml").open("a") as file:
            file.write(f'[projects."{home.project}"]\ntrust_level = "trusted"\n')

    def texts(self, finished: Finished) -> list[str]:
        """See `Kind`."""
        told = [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]
        items = [each["item"] for each in told if each["type"] == "item.completed"]
        return [item["text"] for item in items if item["type"] == "agent_message"]

    def run_in_shell(self, command: str) -> Call:
        """See `Kind`; what takes longer than the tool waits goes on behind it."""
        return Call(self.shell, {"cmd": command, "yield_time_ms": 30_000})

    def tool(self, action: str) -> str:
        """See `Kind`; it has a namespace for each server."""
        return "mcp__aileron/" + action.replace("-", "_")

    def own_tool(self, name: str) -> str:
        """See `Kind`."""
        return f"mcp__aileron/{name}"

    def result(self, text: str) -> str:
        """See `Kind`; before it stands how long it took."""
        return _BEFORE.sub("", text)
