"""The page about agents shows what is so."""

from __future__ import annotations

import re
from pathlib import Path
from textwrap import dedent

from twisted.trial.unittest import SynchronousTestCase

from aileron.client._session import CA, PLAIN_HOST, URL

_TESTS = Path(__file__).parents[1]
_PAGE = (_TESTS.parent / "doc" / "agents.md").read_text(encoding="utf-8")


class ElsewhereTests(SynchronousTestCase):
    """An agent elsewhere."""

    def test_front(self) -> None:
        """What nginx is to be told is what a test runs it with."""
        [shown] = re.findall(r"```nginx\n(.*?)```", _PAGE, re.DOTALL)
        self.assertEqual(dedent(shown), (_TESTS / "functional" / "nginx.conf").read_text(encoding="utf-8"))

    def test_variables(self) -> None:
        """The variables are those that are read."""
        [_, section] = _PAGE.split("## An agent elsewhere\n")
        rows = re.findall(r"^\| `(AILERON_\w+)` \|", section.partition("\n## ")[0], re.MULTILINE)
        self.assertEqual(rows, [URL, CA, PLAIN_HOST])
