"""The table of legal steps, as it is told."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.runner.runs import LEGAL

_PAGE = Path(__file__).parents[2] / "doc" / "architecture.md"


class PageTests(SynchronousTestCase):
    """C{doc/architecture.md}."""

    def test_steps(self) -> None:
        """The page tells the steps that the table allows, each once, and no other."""
        told = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", _PAGE.read_text("utf-8"), re.MULTILINE)
        self.assertEqual(sorted(told), sorted((start.value, end.value) for start, end in LEGAL))
