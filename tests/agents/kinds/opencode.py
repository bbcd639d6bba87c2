"""OpenCode."""

from collections.abc import Mapping
from pathlib import Path

from tests.agents.kind import Kind
from tests.functional import opencode
from tests.functional.home import Home
from tests.functional.process import Finished


class OpenCode(Kind):
    """With OpenAI's responses, its default for that provider."""

    name = "opencode"
    model = "gpt-5.1"
    shortens = (
        "What is longer than 50 KB it writes to a file, and shows the model the whole lines of its beginning that fit, "
        "and the file's name."
    )
    shown_of_long = r"saved to: /\S+"  # it is one line
    ready = "Ask anything"
    leaving = ("/exit", "\r")

    def configure_user(self, home: Home, llm_url: str) -> tuple[Path, ...]:
        """See `Kind`."""
        return (opencode.configure_user(home, f'{{"model": "openai/{self.model}"}}'),)

    def arguments(self, prompt: str) -> tuple[str, ...]:
        """See `Kind`."""
        return opencode.arguments(prompt)

    def environment(self, home: Home) -> Mapping[str, str]:
        """See `Kind`."""
        return {**opencode.QUIET, "OPENAI_API_KEY": "sk-of-the-user"}

    def texts(self, finished: Finished) -> list[str]:
        """See `Kind`."""
        return opencode.texts(finished)
