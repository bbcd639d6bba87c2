"""The key of the next record on the disk: there after every crash, and gone once it was used."""

from __future__ import annotations

import os
from hashlib import sha256
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.audit._key_file import EvolvingKey, KeyFile


class _CrashError(Exception):
    """The process ends here."""


class KeyFileTests(SynchronousTestCase):
    """One file."""

    def setUp(self) -> None:
        """No file yet, and a state."""
        self.path = Path(self.mktemp())
        self.file = KeyFile(self.path)
        self.state = EvolvingKey("stretch-1", 0, b"k" * 32)

    def test_nothing(self) -> None:
        """Where there is no file nothing stands there."""
        self.assertIsNone(self.file.load())

    def test_kept(self) -> None:
        """What was written last stands there, for this user alone."""
        for steps in range(5):
            self.file.save(self.state.advance(steps))
            self.assertEqual(self.file.load(), self.state.advance(steps))
        self.assertEqual(self.path.stat().st_mode & 0o777, 0o600)

    def test_erased(self) -> None:
        """Of a key that was used nothing is left in the file."""
        for steps in range(4):
            self.file.save(self.state.advance(steps))
        data = self.path.read_bytes()
        for steps in range(3):
            self.assertNotIn(self.state.advance(steps).key.hex().encode(), data)

    def test_crash(self) -> None:
        """Wherever a write ends, the old state or the new one stands there whole."""
        self.file.save(self.state)
        for survived in (0, 1):
            left = [survived]

            def sync(descriptor: int, left: list[int] = left) -> None:
                if not left[0]:
                    raise _CrashError
                left[0] -= 1
                os.fsync(descriptor)

            before = self.file.load()
            assert before is not None
            self.assertRaises(_CrashError, KeyFile(self.path, sync).save, before.advance(1))
            self.assertIn(self.file.load(), (before, before.advance(1)))

    def test_torn(self) -> None:
        """A place that was written by half is no state."""
        self.file.save(self.state)
        data = self.path.read_bytes()
        self.path.write_bytes(data[:40] + b"x" + data[41:])
        self.assertIsNone(self.file.load())

    def test_forged_numbers(self) -> None:
        """A place with a number that we never write is no state: nobody is sent along billions of keys."""
        for count, index in ((0, -(10**18)), (-1, 0), (10**200, 0), (0, 10**30)):
            text = f"{count} stretch {index} {'00' * 32}".encode()
            self.path.write_bytes((text + b" " + sha256(text).hexdigest().encode() + b"\n").ljust(512, b"\0"))
            self.assertIsNone(self.file.load(), (count, index))

    def test_pipe(self) -> None:
        """Nobody waits at a pipe that was put in its place."""
        os.mkfifo(self.path)
        self.assertIsNone(self.file.load())

    def test_no_way_back(self) -> None:
        """Steps add up, and the key shows in no repr."""
        self.assertEqual(self.state.advance(2).advance(3), self.state.advance(5))
        self.assertNotIn("kkkk", repr(self.state))
