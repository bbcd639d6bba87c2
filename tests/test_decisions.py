"""The list of decisions names each page once, and asks a newcomer to read at most twenty."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

_PAGES = Path(__file__).resolve().parent.parent / "doc" / "adr"
_LINK = re.compile(r"^(?:\* |\| )\[(?P<number>\d+)\. (?P<title>.+?)\]\((?P<file>0[\w-]+\.md)\)", re.MULTILINE)


class ListTests(SynchronousTestCase):
    """The page C{doc/adr/index.md}."""

    def setUp(self) -> None:
        self.text = (_PAGES / "index.md").read_text(encoding="utf-8")

    def test_each_once(self) -> None:
        """Each page is listed once, under its own number and title."""
        listed = [match.groups() for match in _LINK.finditer(self.text)]
        pages = sorted(path.name for path in _PAGES.glob("0*.md"))
        self.assertEqual(Counter(file for _, _, file in listed), Counter(pages))
        for number, title, file in listed:
            head = (_PAGES / file).read_text(encoding="utf-8").splitlines()[0]
            self.assertEqual(head, f"# ADR {number}: {title}")

    def test_to_read(self) -> None:
        """A newcomer is asked to read twenty pages at most."""
        first = self.text.partition("## Read these")[2].partition("\n## ")[0]
        self.assertLessEqual(len(_LINK.findall(first)), 20)
