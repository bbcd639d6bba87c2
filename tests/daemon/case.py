"""Texts that are configurations or none."""

from __future__ import annotations

from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon._config import read_config
from aileron.daemon._nodes import NotConfig


class ConfigCase(SynchronousTestCase):
    """Reads configurations."""

    def refused(self, text: str, line: int | None, word: str) -> None:
        """Assert that a text is refused, with the line and a word of the reason."""
        error = self.assertRaises(NotConfig, read_config, text)
        self.assertEqual(error.line, line, error)
        self.assertIn(word, error.problem)
