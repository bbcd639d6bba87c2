"""Contents that are too long for a run's arguments are kept whole and private, and only as they were stored."""

from __future__ import annotations

import stat
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import digest_of_bytes
from aileron.home.stored_contents import StoredContents
from aileron.model.errors import AileronError

ONE, OTHER = b"one" * 1000, b"other"


class StoredContentsTests(SynchronousTestCase):
    """The files of one home."""

    def setUp(self) -> None:
        self.home = Path(self.mktemp()).absolute()
        self.home.mkdir(mode=0o700)
        self.stored = StoredContents.of_home(self.home)

    def store(self, content: bytes) -> str:
        """Store a content in two pieces, and return its digest."""
        unfinished = self.stored.begin()
        for piece in (content[:2], content[2:]):
            unfinished.add(piece)
        return unfinished.store()

    def test_kept(self) -> None:
        """A content is found by its digest until it is removed; storing or removing it again changes nothing."""
        digest = self.store(ONE)
        self.assertEqual(digest_of_bytes(ONE), digest)
        self.assertEqual(digest, self.store(ONE))
        self.assertEqual(ONE, self.stored.read(digest))
        self.assertEqual({digest: len(ONE)}, self.stored.list_sizes())
        for _ in range(2):
            self.stored.remove(digest)
            self.assertIsNone(self.stored.read(digest))
        self.assertEqual({}, self.stored.list_sizes())

    def test_private(self) -> None:
        """Nobody else may read the files or the directory."""
        digest = self.store(ONE)
        path = self.stored.directory / digest.removeprefix("sha256:")
        modes = [stat.S_IMODE(each.stat().st_mode) for each in (path, self.stored.directory)]
        self.assertEqual([0o600, 0o700], modes)

    def test_changed(self) -> None:
        """A content that was changed, or replaced by a link, is not returned."""
        digest, other = self.store(ONE), self.store(OTHER)
        path = self.stored.directory / digest.removeprefix("sha256:")
        path.write_bytes(ONE + b"!")
        self.assertIsNone(self.stored.read(digest))
        path.unlink()
        path.symlink_to(self.stored.directory / other.removeprefix("sha256:"))
        self.assertRaises(AileronError, self.stored.read, digest)

    def test_opened(self) -> None:
        """The file of a content can be read piece by piece. A link, and a digest that is none, are refused."""
        digest = self.store(ONE)
        opened = self.stored.open(digest)
        assert opened is not None
        with opened:
            self.assertEqual(ONE, opened.read())
        self.assertIsNone(self.stored.open(digest_of_bytes(OTHER)))
        self.assertIsNone(self.stored.open("../vault"))
        path = self.stored.directory / digest.removeprefix("sha256:")
        path.rename(self.home / "moved")
        path.symlink_to(self.home / "moved")
        self.assertRaises(AileronError, self.stored.open, digest)

    def test_discarded(self) -> None:
        """A content that is discarded leaves nothing behind. One that was stored stays."""
        unfinished = self.stored.begin()
        unfinished.add(ONE)
        self.assertEqual((digest_of_bytes(ONE), len(ONE)), (unfinished.digest, unfinished.size))
        for _ in range(2):
            unfinished.discard()
        self.assertEqual([], [*self.stored.directory.iterdir()])
        kept = self.stored.begin()
        kept.add(OTHER)
        digest = kept.store()
        kept.discard()
        self.assertEqual(OTHER, self.stored.read(digest))

    def test_other_names(self) -> None:
        """A digest that is none names no file, whatever path it looks like."""
        (self.home / "vault").write_bytes(b"secret")
        for name in ("", "sha256:", "sha256:../vault", "../vault", f"sha256:{'A' * 64}", f"sha256:{'a' * 64}/../vault"):
            self.assertIsNone(self.stored.read(name), name)
            self.assertRaises(ValueError, self.stored.remove, name)

    def test_unfinished(self) -> None:
        """What a crash left unfinished is no content, and is deleted at the next start."""
        digest = self.store(ONE)
        self.stored.begin().add(b"hal")
        self.assertEqual({digest: len(ONE)}, self.stored.list_sizes())
        self.stored.remove_unfinished()
        self.assertEqual([digest.removeprefix("sha256:")], [each.name for each in self.stored.directory.iterdir()])

    def test_empty(self) -> None:
        """Nothing is made until something is stored."""
        self.stored.remove_unfinished()
        self.assertEqual({}, self.stored.list_sizes())
        self.assertFalse(self.stored.directory.exists())
