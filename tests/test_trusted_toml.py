"""A TOML file of a home counts only as the operator trusts it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase
from zope.interface.verify import verifyObject

from aileron.base.json import digest_of_bytes
from aileron.base.tables import FileTable
from aileron.home.trusted_toml import TomlVersion, TrustedToml
from aileron.model.errors import Conflict
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.trust import Trusted, TrustKind
from aileron.testing import MemoryTrust


def _parse(table: FileTable) -> str:
    return table.text("name")


class TrustedTomlTests(SynchronousTestCase):
    """L{TrustedToml}."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp()) / "names.toml"
        self.path.parent.mkdir()
        self.trust = MemoryTrust()
        self.file = TrustedToml(self.path, self.trust, _parse, "", "it is not trusted")

    def put(self, data: bytes, *, trusted: bool = True) -> None:
        """Write the file, and trust it as written unless C{trusted} is false."""
        self.path.write_bytes(data)
        if trusted:
            word = Trusted(TrustKind.CONFIG, "names.toml", digest_of_bytes(data), datetime.now(UTC), "operator")
            self.trust.put([word])

    def messages(self) -> list[str]:
        """Return what is wrong with the file on disk."""
        return [each.message for each in self.file.problems()]

    def test_missing(self) -> None:
        """A missing file has no errors and the empty contents, and may be written."""
        self.assertTrue(verifyObject(IConfigFile, self.file))
        found = self.file.require_trusted("no")
        self.assertEqual((found.data, found.candidate, found.contents, self.messages()), (None, None, "", []))
        self.assertIsNone(self.file.find_trusted_digest())

    def test_trust(self) -> None:
        """A version is trusted if the operator trusts exactly its bytes and the bytes are valid."""
        self.put(b"name = 'a'\n", trusted=False)
        self.assertFalse(self.file.is_trusted(self.file.read_version()))
        self.assertEqual(self.messages(), ["it is not trusted"])
        self.put(b"name = 'a'\n")
        found = self.file.read_version()
        self.assertEqual((self.file.is_trusted(found), found.contents, self.messages()), (True, "a", []))
        self.put(b"name = 'a' \n", trusted=False)
        self.assertFalse(self.file.is_trusted(self.file.read_version()))
        self.put(b"other = 1\n")
        found = self.file.read_version()
        self.assertEqual((self.file.is_trusted(found), found.contents, found.candidate), (False, "", None))
        self.assertEqual(self.file.candidates(), ())

    def test_not_utf8(self) -> None:
        """Bytes that are no text are an error."""
        self.put(b"name = '\xff'\n")
        self.assertEqual(self.messages(), ["it is not UTF-8"])

    def test_unreadable(self) -> None:
        """A link is not followed: its version has an error and no bytes."""
        self.put(b"name = 'a'\n")
        target = self.path.with_name("elsewhere.toml")
        self.path.rename(target)
        self.path.symlink_to(target)
        found = self.file.read_version()
        self.assertEqual((found.data, found.contents, len(found.errors)), (None, "", 1))

    def test_require(self) -> None:
        """A file with errors, or one that is not trusted, is refused before it is changed."""
        for data, trusted in ((b"name = 'a'\n", False), (b"name = \n", True), (b"\xff", True)):
            self.put(data, trusted=trusted)
            refused = self.assertRaises(Conflict, self.file.require_trusted, "Not trusted.")
            self.assertEqual(refused.message, "Not trusted.")
        self.put(b"name = 'a'\n")
        self.assertEqual(self.file.require_trusted("no").contents, "a")

    def test_replacing(self) -> None:
        """A version is on disk within the context, and stays if the context does not raise."""
        before, after = self.file.read_version(), self.file.parse_version(b"name = 'b'\n")
        with self.file.replacing(before, after):
            self.assertEqual(self.path.read_bytes(), b"name = 'b'\n")
        self.assertEqual(self.file.read_version(), after)

    def test_restored(self) -> None:
        """If the context raises, the earlier version is restored, unless another program wrote the file."""
        after = self.file.parse_version(b"name = 'b'\n")
        for earlier in (None, b"name = 'a'\n"):
            if earlier is not None:
                self.put(earlier)
            self.assertRaises(ZeroDivisionError, self.interrupt, after)
            self.assertEqual(self.path.read_bytes() if self.path.exists() else None, earlier)
        self.assertRaises(ZeroDivisionError, self.interrupt, after, b"name = 'c'\n")
        self.assertEqual(self.path.read_bytes(), b"name = 'c'\n")

    def interrupt(self, after: TomlVersion[str], meanwhile: bytes | None = None) -> None:
        """Begin to replace the file, write C{meanwhile} to it unless that is None, and raise."""
        with self.file.replacing(self.file.read_version(), after):
            if meanwhile is not None:
                self.path.write_bytes(meanwhile)
            raise ZeroDivisionError
