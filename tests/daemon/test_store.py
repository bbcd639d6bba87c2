"""The place of the store: the file, or the server that a trusted configuration names, and never the wrong one."""

from __future__ import annotations

import os
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron import __version__
from aileron.daemon._config import StoreSettings
from aileron.daemon._store import find_place, read_password, tuning_of
from aileron.home.paths import Home
from aileron.model.errors import InvalidRequest, StoreUnavailable
from aileron.store import ServerAddress, Tuning

_URL = "postgresql://aileron@db.example.org/aileron"


class PlaceTests(SynchronousTestCase):
    def setUp(self) -> None:
        self.home = Home(Path(self.mktemp()).absolute())
        self.home.root.mkdir()

    def test_file(self) -> None:
        """Without a setting it is the file, there or not."""
        self.assertEqual(find_place(self.home, StoreSettings()), self.home.database)

    def test_server(self) -> None:
        """With one it is the server, and the file must be gone."""
        place = find_place(self.home, StoreSettings(_URL))
        self.assertIsInstance(place, ServerAddress)
        self.home.database.touch()
        error = self.assertRaises(InvalidRequest, find_place, self.home, StoreSettings(_URL))
        self.assertIn(f"aileron store migrate --to {_URL}.", error.message)

    def test_command(self) -> None:
        """The command that moves the file is quoted for a shell, and names the file of the password."""
        self.home.database.touch()
        settings = StoreSettings("postgresql://u@/a?host=/run", Path("/home/a b/password"))
        error = self.assertRaises(InvalidRequest, find_place, self.home, settings)
        command = "--to 'postgresql://u@/a?host=/run' --password-file '/home/a b/password'. Or"
        self.assertIn(command, error.message)

    def test_moved(self) -> None:
        """A home whose store was moved gets no empty one: as if config.yaml were not trusted."""
        self.home.moved_database.touch()
        error = self.assertRaises(InvalidRequest, find_place, self.home, StoreSettings())
        self.assertIn("aileron vault unlock", error.message)
        self.assertIsInstance(find_place(self.home, StoreSettings(_URL)), ServerAddress)
        self.home.database.touch()  # moved back
        self.assertEqual(find_place(self.home, StoreSettings()), self.home.database)

    def test_password(self) -> None:
        """It is the file's text without the end of its line; a missing or odd file refuses."""
        path = self.home.root / "password"
        self.assertRaises(StoreUnavailable, read_password, path)
        for content in (b"", b"\n", b"\xff", b"a\0b"):
            path.write_bytes(content)
            self.assertRaises(StoreUnavailable, read_password, path)
        path.write_bytes("sécret 1\n".encode())
        self.assertEqual(read_password(path), "sécret 1")
        place = find_place(self.home, StoreSettings(_URL, path))
        assert isinstance(place, ServerAddress)
        self.assertEqual(place.with_password()["password"], "sécret 1")
        link = self.home.root / "link"
        link.symlink_to(path)
        self.assertRaises(StoreUnavailable, read_password, link)


class SeveralTests(SynchronousTestCase):
    def test_one(self) -> None:
        """By default a daemon is alone, on a server too."""
        for settings in (StoreSettings(), StoreSettings(_URL)):
            tuning = tuning_of(settings)
            self.assertEqual(tuning, Tuning(process=tuning.process))
            self.assertEqual((tuning.process.pid, tuning.process.version), (os.getpid(), __version__))

    def test_several(self) -> None:
        """Each start of one of several daemons has a name of its own."""
        settings = StoreSettings(_URL, daemons="several", lease_seconds=20)
        one, other = tuning_of(settings), tuning_of(settings)
        self.assertNotEqual(one.process.id, other.process.id)
        self.assertEqual((one.several, one.lease_seconds), (True, 20.0))

    def test_file(self) -> None:
        """A file has one daemon: that several use one is refused."""
        error = self.assertRaises(InvalidRequest, tuning_of, StoreSettings(daemons="several"))
        self.assertIn("store.url", error.message)
