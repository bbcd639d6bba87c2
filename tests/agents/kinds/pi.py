"""pi."""

import json
from collections.abc import Mapping
from pathlib import Path

from tests.agents.kind import Kind
from tests.functional.home import Home
from tests.functional.process import Finished


class Pi(Kind):
    """With OpenAI's responses."""

    name = "pi"
    model = "gpt-5.1"
    shortens = "Of what is longer than 20 KB it shows the model the beginning, the end and a file's name."
    ready = model
    leaving = ("/quit", "\r")

    def configure_user(self, home: Home, llm_url: str) -> tuple[Path, ...]:
        """See `Kind`."""
        path = home.user / ".pi" / "agent" / "settings.json"
        path.parent.mkdir(parents=True)
        settings = {"defaultProvider": "openai", "defaultModel": self.model, "lastChangelogVersion": "0.99.1"}
        path.write_text(json.dumps(settings, indent=2))  # as it writes them itself as soon as its version is another
        return (path,)

    def arguments(self, prompt: str) -> tuple[str, ...]:
        """See `Kind`."""
        return ("--print", prompt)

    def environment(self, home: Home) -> Mapping[str, str]:
        """See `Kind`."""
        return {"OPENAI_API_KEY": "sk-of-the-user", "PI_OFFLINE": "1", "PI_SKIP_VERSION_CHECK": "1"}

    def texts(self, finished: Finished) -> list[str]:
        """See `Kind`; it prints what the model says last."""
        return finished.stdout.splitlines()
