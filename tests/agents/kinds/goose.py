"""goose."""

from collections.abc import Mapping
from pathlib import Path

from tests.agents.kind import Kind
from tests.functional.home import Home
from tests.functional.process import Finished


class Goose(Kind):
    """With Anthropic's messages."""

    name = "goose"
    model = "claude-sonnet-4-5"
    never_offers_late = "It asks for the list of tools once for each of the user's turns."
    serial = "It sends the second call when the first has been answered."
    shortens = "What is longer than 200,000 characters it writes to a file, and shows the model the file's name."

    def configure_user(self, home: Home, llm_url: str) -> tuple[Path, ...]:
        """See `Kind`."""
        path = home.user / ".config" / "goose" / "config.yaml"
        path.parent.mkdir(parents=True)
        path.write_text(f"# mine\nGOOSE_PROVIDER: anthropic\nGOOSE_MODEL: {self.model}\n")
        return (path,)

    def arguments(self, prompt: str) -> tuple[str, ...]:
        """See `Kind`."""
        return ("run", "--no-session", "--quiet", "--text", prompt)

    def environment(self, home: Home) -> Mapping[str, str]:
        """See `Kind`."""
        return {"ANTHROPIC_API_KEY": "sk-of-the-user", "GOOSE_DISABLE_KEYRING": "1", "GOOSE_TELEMETRY_OFF": "1"}

    def texts(self, finished: Finished) -> list[str]:
        """See `Kind`; calls and answers are lines, and what the model says last stands last."""
        return finished.stdout.splitlines()
