"""The listings of the page on packages are what they say."""

from __future__ import annotations

import re
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.packages._files import _MOST_BYTES, _MOST_FILES, MOST_ARCHIVE_BYTES
from aileron.features.packages._minisign import read_key
from aileron.features.packages._package import read_package
from aileron.features.packages._source import read_source

PAGE = Path(__file__).parents[3] / "doc" / "packages.md"
MEGABYTE = 1024 * 1024


class PageTests(SynchronousTestCase):
    """C{doc/packages.md}."""

    def setUp(self) -> None:
        self.page = PAGE.read_text("utf-8")

    def test_manifest(self) -> None:
        """The manifest of the page is one, for files with the digests that it lists."""
        listing = re.findall(r"^```toml\n(.*?)^```$", self.page, re.MULTILINE | re.DOTALL)[0]
        files = {"aileron-package.toml": listing.encode(), "tracker.toml": b"", "actions/file-ticket.md": b""}
        package = read_package(files, "other", "")
        self.assertEqual((package.name, package.version), ("tracker", "1.2.0"))
        self.assertEqual(package.files.keys(), {"connectors/tracker.toml", "actions/file-ticket.md"})
        keys = set(re.findall(r"^\| `\[?(\w+)\]?` \|", self.page, re.MULTILINE))
        self.assertEqual(keys, {"name", "version", "description", "files", "packages"})

    def test_sources(self) -> None:
        """Every source of the page is read as what the page says."""
        found = {
            text: read_source(text, "https://github.com/")
            for text in re.findall(r"(?:github|https|ssh)://\S+@1\.2\.0", self.page)
        }
        self.assertGreater(len(found), 3)
        for source in found.values():
            self.assertEqual(source.version, "1.2.0")
            self.assertTrue(source.url.endswith(".git"), source)
        self.assertEqual(found["github://owner/repo/path@1.2.0"].path, "path")
        self.assertEqual(found["https://git.example.com/team/repo.git//path@1.2.0"].path, "path")

    def test_bounds(self) -> None:
        """The bounds of the page are those that hold, and its key is one."""
        for text in (f"{_MOST_FILES} files", f"{_MOST_BYTES // MEGABYTE} MiB", f"{MOST_ARCHIVE_BYTES // MEGABYTE} MiB"):
            self.assertIn(text, self.page)
        read_key(re.findall(r"RW[A-Za-z0-9+/]{54}", self.page)[0])
