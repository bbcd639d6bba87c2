"""The page on importing an API is what it says."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.importing._documents import MOST_BYTES
from aileron.features.importing.commands import MOST_BYTES as MOST_FETCHED
from aileron.features.importing.files import write_connector
from aileron.features.importing.readers import read_api
from tests.features.importing import trial, trial_models

PAGE = Path(__file__).parents[3] / "doc" / "importing-an-api.md"


class PageTests(SynchronousTestCase):
    """C{doc/importing-an-api.md}; L{tests.functional.listings} plays its commands."""

    def setUp(self) -> None:
        self.page = PAGE.read_text("utf-8")

    def test_files(self) -> None:
        """The document becomes the files that the page names, with one line to be completed."""
        (document,) = re.findall(r"^```yaml\n(.*?)^```$", self.page, re.MULTILINE | re.DOTALL)
        reader = read_api(document.encode())
        written = write_connector(reader.describe("local://me/chat", reader.list_operations()))
        self.assertEqual((written.connector.name, written.actions[0].name), ("chat.toml", "chat-post-message.md"))
        self.assertEqual(len(written.marks), 1)
        self.assertIn('error = {when = "ok == false", message = "error"}', written.connector.text)

    def test_numbers(self) -> None:
        """The size and the packages that the page names are those of the program and of the trial."""
        self.assertEqual(MOST_FETCHED, MOST_BYTES)
        self.assertIn(f"at most {MOST_BYTES // 1024 // 1024} MiB", self.page)
        for name, version in {**trial.PACKAGES, **trial_models.PACKAGES}.items():
            self.assertIn(f"`{name}` {version}", self.page)

    def test_table(self) -> None:
        """The table has a row for each specification that is tried."""
        table = self.page[self.page.index(trial.TITLES) :]
        names = re.findall(r"^\| ([^|]+?) \| [0-9.]+ MB \|", table, re.MULTILINE)
        self.assertEqual(names, [*trial.SPECIFICATIONS, *trial_models.NAMES])
