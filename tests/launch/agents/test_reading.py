"""What is read of users' files."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.launch.agents.reading import MOST_BYTES, text_of


class ReadingTests(SynchronousTestCase):
    """A file, nothing, or a refusal."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp())

    def test_text(self) -> None:
        """A file is read whole, in its encoding."""
        self.path.write_bytes("\ufeffé".encode())
        self.assertEqual((text_of(self.path), text_of(self.path, "utf-8-sig")), ("\ufeffé", "é"))

    def test_nothing(self) -> None:
        """Where nothing lies there is no text, and where a directory should be there is nothing."""
        self.assertIsNone(text_of(self.path))
        self.assertIsNone(text_of(self.path / "below"))

    def test_no_file(self) -> None:
        """A directory, a pipe, what is too long and what is no text are refused, and nobody waits for a writer."""
        self.path.mkdir()
        pipe, long, bytes_ = (self.path / name for name in ("pipe", "long", "bytes"))
        os.mkfifo(pipe)
        long.write_bytes(b" " * (MOST_BYTES + 1))
        bytes_.write_bytes(b"\xff")
        for path in (self.path, pipe, long, bytes_):
            self.assertRaises(ValueError, text_of, path)
