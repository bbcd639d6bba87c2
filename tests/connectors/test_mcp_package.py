"""The installed package of a local MCP server: named in its file, shown, and looked at before each start."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._schema import read_file
from aileron.connectors.mcp._package import InstalledPackage, TreeChanged, digest_tree
from aileron.errors import NetworkError

from .test_mcp_local import FILE, LocalCase, spec_of

_TABLE = """
[mcp.package]
registry = "npm"
name = "@x/tracker"
version = "1.2.3"
integrity = "sha512-abc"
directory = "{directory}"
digest = "{digest}"
"""


class DigestTests(SynchronousTestCase):
    """The digest of a directory."""

    def setUp(self) -> None:
        self.root = Path(self.mktemp()).absolute()
        (self.root / "lib").mkdir(parents=True)
        (self.root / "lib" / "server.js").write_text("one")
        (self.root / "server").symlink_to("lib/server.js")
        self.package = InstalledPackage("npm", "x", "1", "y", str(self.root), digest_tree(self.root))

    def link(self, target: str) -> None:
        """Lead the link elsewhere."""
        (self.root / "server").unlink()
        (self.root / "server").symlink_to(target)

    def test_unchanged(self) -> None:
        """The same files have the same digest, wherever they are."""
        self.package.check()
        moved = self.root.rename(self.root.with_name("elsewhere"))
        self.assertEqual(digest_tree(moved), self.package.digest)
        moved.rename(self.root)

    def test_changed(self) -> None:
        """Any change of contents, name, kind or permission to run is found, and so are files that were added."""
        server = self.root / "lib" / "server.js"
        changes: tuple[tuple[Callable[[], object], Callable[[], object]], ...] = (
            (lambda: server.write_text("two"), lambda: server.write_text("one")),
            (lambda: server.chmod(0o755), lambda: server.chmod(0o644)),
            (lambda: server.rename(self.root / "other.js"), lambda: (self.root / "other.js").rename(server)),
            ((self.root / "new").touch, (self.root / "new").unlink),
            ((self.root / "new").mkdir, (self.root / "new").rmdir),
            (lambda: self.link("/etc"), lambda: self.link("lib/server.js")),
            (lambda: os.mkfifo(self.root / "pipe"), (self.root / "pipe").unlink),
        )
        server.chmod(0o644)
        for change, back in changes:
            change()
            self.assertRaises(TreeChanged, self.package.check)
            back()
            self.package.check()

    def test_gone(self) -> None:
        """A directory that is gone is said to be unreadable."""
        self.root.rename(self.root.with_name("gone"))
        self.assertIn("cannot be read", str(self.assertRaises(TreeChanged, self.package.check)))


class StartTests(LocalCase):
    """A server that runs from a package."""

    def packed(self, directory: str = "/usr/bin") -> str:
        """The file of such a server, whose program is in that directory."""
        root = Path(self.mktemp()).absolute()
        root.mkdir()
        return FILE + _TABLE.format(directory=directory, digest=digest_tree(root))

    def test_shown(self) -> None:
        """The review of a call names the package, its version, its integrity and the digest of its files."""
        connector = self.service.local(spec_of(self.packed()))
        shown = str(connector.sessions.review()["package"])
        for part in ("@x/tracker 1.2.3", "npm", "sha512-abc", "sha256:"):
            self.assertIn(part, shown)

    def test_changed(self) -> None:
        """Where its files are others, nothing is started, and the call says why."""
        connector = self.service.local(spec_of(self.packed()))
        refused = self.failureResultOf(self.start(connector), NetworkError).value
        self.assertIn("have changed since it was installed", str(refused))
        self.assertEqual(self.service.started, [])

    def test_elsewhere(self) -> None:
        """A file whose program is not of its package is refused, also where only the beginning of its path is."""
        outside = self.packed().replace('command = ["/usr/bin/', 'command = ["/opt/node", "/usr/bin/../')
        self.assertIn("/../", outside)
        for text in (self.packed("/opt/other"), outside):
            found = [each.message for each in read_file(text.encode(), "x.toml").problems]
            self.assertEqual(len([each for each in found if "must run a program of the package" in each]), 1, found)
