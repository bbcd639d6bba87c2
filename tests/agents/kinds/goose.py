"""goose."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.agents.kind import Kind
from tests.functional.home import Home
from tests.functional.process import Finished
from tests.functional.script import Call


class Goose(Kind):
    """With OpenAI's responses; with Anthropic's messages it makes a turn's calls one after the other."""

    name = "goose"
    model = "gpt-5.1"
    shell = "shell"
    shortens = "What is longer than 200,000 characters it writes to a file, and tells the model the file's name."
    shown_of_long = r"(?<!\w)/\S+"
    opening = ("session",)
    ready = "goose is ready"
    leaving = ("/exit", "\r")

    def configure_user(self, home: Home, llm_url: str) -> tuple[Path, ...]:
        """See `Kind`."""
        path = home.user / ".config" / "goose" / "config.yaml"
        path.parent.mkdir(parents=True)
        # With a word on telemetry, or it asks for one where a person sits.
        settings = ("GOOSE_PROVIDER: openai", f"GOOSE_MODEL: {self.model}", "GOOSE_TELEMETRY_ENABLED: false")
        path.write_text("\n".join(("# mine", *settings, "")))
        return (path,)

    def arguments(self, prompt: str) -> tuple[str, ...]:
        """See `Kind`."""
        return ("run", "--quiet", "--text", prompt)

    def environment(self, home: Home) -> Mapping[str, str]:
        """See `Kind`."""
        return {"OPENAI_API_KEY": "sk-of-the-user", "GOOSE_DISABLE_KEYRING": "1"}

    def run_in_shell(self, command: str) -> Call:
        """See `Kind`; the model's words follow on the last line of what the shell prints, whose end it leaves out."""
        return super().run_in_shell(f"{command}; echo")

    def late(self, action: str, arguments: Mapping[str, Any]) -> tuple[Call, ...]:
        """See `Kind`; it asks for the list of tools once, and never asks to be told of changes."""
        return (
            Call(self.own_tool("search_actions"), {"query": action}),
            Call(self.own_tool("run_action"), {"name": action, "args": arguments}),
        )

    def texts(self, finished: Finished) -> list[str]:
        """See `Kind`; calls and answers are lines, and what the model says last stands last."""
        return finished.stdout.splitlines()
