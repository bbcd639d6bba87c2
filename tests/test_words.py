"""The words of everything that people and models read: phrases that needed a second reading do not come back."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from tests.web.test_wording import words

ROOT = Path(__file__).parents[1]
PACKAGE, DOC = ROOT / "aileron", ROOT / "doc"
BANNED = re.compile(
    r"\b(anew|approve the ticked|be let in|begins at \{|does nothing before you trust|done twice it happens"
    r"|from now on allow|hangs in the chain|it was never done|long blanks|more calls like it|no terminal to ask in"
    r"|nobody (can say|here|says)|not begun|take it back|the ticked|those that there are|what goes to models"
    r"|what it goes to|what waits for you|whatever you do)\b",
    re.IGNORECASE,
)
GENERATED = frozenset(("files.md",))
"""What is made of docstrings, which speak to those who change the code."""


def texts() -> Iterator[tuple[str, str]]:
    """Yield what the package and the documentation say, each with its place."""
    for path in sorted(PACKAGE.rglob("*")):
        if path.suffix in (".py", ".js", ".xml", ".html") and "testing" not in path.parts:
            yield str(path.relative_to(ROOT)), words(path)
    for path in (
        *sorted(DOC.glob("*.md")),
        *sorted(DOC.glob("services/*.md")),
        ROOT / "README.md",
        ROOT / "SECURITY.md",
    ):
        if path.name not in GENERATED:
            yield str(path.relative_to(ROOT)), " ".join(path.read_text("utf-8").split())


class WordsTests(SynchronousTestCase):
    """Errors, commands, notifications, texts for models, pages and documentation."""

    def test_banned(self) -> None:
        """No phrase of the old wording is there."""
        found = [(place, each[0]) for place, text in texts() for each in BANNED.finditer(text)]
        self.assertEqual(found, [])

    def test_read(self) -> None:
        """All of it is read."""
        everything = "\n".join(text for _, text in texts())
        for each in (
            "There is no vault yet",  # a command
            "needs your approval again",  # a notification
            "the user can undo it until then",  # for a model
            "Approve selected",  # a page
            "The passphrase of a vault cannot be recovered",  # the documentation
        ):
            self.assertIn(each, everything)

    def test_glossary(self) -> None:
        """Each word of the table of words that users meet is explained in the glossary, which is in order."""
        terms = re.findall(r"^(\w[\w ]*)\n  \w", (DOC / "glossary.md").read_text("utf-8"), re.MULTILINE)
        self.assertEqual(terms, sorted(terms, key=str.casefold))
        contributing = (ROOT / "CONTRIBUTING.md").read_text("utf-8").partition("## Words")[2].partition("\n## ")[0]
        rows = re.findall(r"^\| ([^|]+) \| [^|]+ \|$", contributing, re.MULTILINE)[1:]
        known = {word for row in rows for word in row.split(", ")}
        self.assertEqual(known - set(terms) - INTERNAL, set())


INTERNAL = frozenset(("agent site", "operator site", "launcher", "room", "record", "audit event", "plan"))
"""Words of those who change the code."""
