"""What is recorded when is written down."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

import aileron
from aileron.audit import RECORDED


class RecordedTests(SynchronousTestCase):
    def test_written_down(self) -> None:
        """Every type has a dotted name and a whole sentence."""
        for name, sentence in RECORDED.items():
            self.assertTrue(re.fullmatch(r"[a-z]+(\.[a-z_]+)+", name), name)
            self.assertTrue(re.fullmatch(r"[A-Z].*\.", sentence), name)

    def test_nothing_else_is_recorded(self) -> None:
        """Every type that the package records is written down."""
        kinds = "|".join(sorted({name.partition(".")[0] for name in RECORDED}))
        literal = re.compile(rf'"((?:{kinds})\.(?!(?:css|db|html|js|json|key|md|py|sql|toml|xml)")[a-z_]+)"')
        package = Path(aileron.__file__).parent
        used = {name for file in package.rglob("*.py") for name in literal.findall(file.read_text("utf-8"))}
        self.assertEqual(used - set(RECORDED), set())
