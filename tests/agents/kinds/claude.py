"""Claude Code."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tests.agents.kind import Kind
from tests.functional.home import Home
from tests.functional.process import Finished
from tests.functional.script import Call, Received, found

SUBSCRIPTION = "sk-ant-oat01-of-the-user"
_QUIET = {"CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1", "DISABLE_AUTOUPDATER": "1"}


class Claude(Kind):
    """With a key of its user's; for a conversation with a subscription, as it would ask about a key."""

    name = "claude"
    model = "claude-sonnet-4-5"
    shell = "Bash"
    shortens = (
        "What is longer than 25000 tokens it writes to a file, and shows the model its beginning and the file's name."
    )
    shown_of_long = r"(?s)saved to: /\S+.*number 199:"  # the newest message comes first
    ready = "? for shortcuts"
    leaving = ("\x03", "\x03")
    serial = "It makes the second call when the first is answered."

    def configure_user(self, home: Home, llm_url: str) -> tuple[Path, ...]:
        """See `Kind`."""
        settings = home.user / ".claude" / "settings.json"
        settings.parent.mkdir(exist_ok=True)
        settings.write_text(json.dumps({"model": self.model, "env": {"MINE": "kept"}}))
        return (settings,)

    def arguments(self, prompt: str) -> tuple[str, ...]:
        """See `Kind`."""
        return ("-p", "--output-format", "stream-json", "--verbose", prompt)

    def unattended(self, prompt: str) -> tuple[str, ...]:
        """See `Kind`."""
        return ("--allowedTools=Bash", *self.arguments(prompt))

    def environment(self, home: Home) -> Mapping[str, str]:
        """See `Kind`."""
        return {**_QUIET, "ANTHROPIC_API_KEY": "sk-ant-of-the-user"}

    def settle(self, home: Home) -> None:
        """See `Kind`; the project is one that its user trusts."""
        there = {"hasCompletedOnboarding": True, "projects": {str(home.project): {"hasTrustDialogAccepted": True}}}
        (home.user / ".claude.json").write_text(json.dumps(there))

    def login(self, home: Home) -> Mapping[str, str]:
        """See `Kind`."""
        return {**_QUIET, "CLAUDE_CODE_OAUTH_TOKEN": SUBSCRIPTION}

    def texts(self, finished: Finished) -> list[str]:
        """See `Kind`."""
        told = [json.loads(line) for line in finished.stdout.splitlines() if line.startswith("{")]
        parts = [part for each in told if each["type"] == "assistant" for part in each["message"]["content"]]
        return [part["text"] for part in parts if part["type"] == "text"]

    def late(self, action: str, arguments: Mapping[str, Any]) -> tuple[Call, ...]:
        """See `Kind`; it names the tool behind a result, and offers it when it was looked up by that name."""
        named = rf"(?m)^(\S+{re.escape(self.tool(action))})$"

        def by_name(received: Received) -> Mapping[str, Any]:
            return {"query": f"select:{found(named, received)}", "max_results": 1}

        return (Call("ToolSearch", by_name), *super().late(action, arguments))

    def result(self, text: str) -> str:
        """See `Kind`; behind it stands how much room is left."""
        return re.sub(r"\s*<system-reminder>.*</system-reminder>\s*\Z", "", text, flags=re.DOTALL)
