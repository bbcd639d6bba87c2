"""The installed package of a local MCP server: named in its file, shown, and looked at before each start."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from attrs import evolve
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors._schema import read_file
from aileron.connectors.kinds.mcp._package import InstalledPackage, TreeChanged, digest_tree
from aileron.model.errors import NetworkError

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
        self.package = self.packed(str(self.root / "server"))

    def packed(self, *argv: str) -> InstalledPackage:
        """The package as it is now, and the command that runs it."""
        return InstalledPackage("npm", "x", "1", "y", str(self.root), digest_tree(self.root), argv)

    def link(self, target: str) -> None:
        """Lead the link elsewhere."""
        (self.root / "server").unlink()
        (self.root / "server").symlink_to(target)

    def test_unchanged(self) -> None:
        """The same files have the same digest, wherever they are."""
        self.package.check(None)
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
            self.assertRaises(TreeChanged, self.package.check, None)
            back()
            self.package.check(None)

    def test_gone(self) -> None:
        """A directory that is gone is said to be unreadable."""
        self.root.rename(self.root.with_name("gone"))
        self.assertIn("cannot be read", str(self.assertRaises(TreeChanged, self.package.check, None)))

    def test_leads_elsewhere(self) -> None:
        """A program that is a link out of the package is not started, although the link itself is pinned."""
        self.link("/bin/sh")
        refused = self.assertRaises(TreeChanged, self.packed(str(self.root / "server"), "-c", "true").check, None)
        self.assertIn("its program leads to /", str(refused))

    def test_modules_elsewhere(self) -> None:
        """While node would find modules in a directory around the package, or in two of HOME, it is not started."""
        home = self.root.with_name("home")
        home.mkdir()
        for place in (self.root.parent / "node_modules", home / ".node_modules", home / ".node_libraries"):
            self.package.check(str(home))
            place.mkdir()
            refused = self.assertRaises(TreeChanged, self.package.check, str(home))
            self.assertIn(f"node would also load modules from {place}", str(refused))
            evolve(self.package, registry="pypi").check(str(home))
            place.rmdir()


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

    def problems(self, command: str, before: str = "#", after: str = "#") -> list[str]:
        """What is wrong with the file of a package in /opt/kit that is run so, with a part of the file replaced."""
        text = self.packed("/opt/kit").replace('["/usr/bin/tracker", "--stdio"]', command)
        found = read_file(text.replace(before, after).encode(), "x.toml")
        return [each.message for each in found.problems if "`pin`" not in each.message]

    def test_elsewhere(self) -> None:
        """A file is refused if the program that its command runs is not of its package, wherever else that is named."""
        for command in (
            '["/usr/bin/tracker", "/opt/kit/server.js"]',
            '["/usr/bin/node", "/opt/other/server.js", "/opt/kit/server.js"]',
            '["/usr/bin/node", "--require", "/opt/kit/server.js", "/tmp/other.js"]',
            '["/usr/bin/node", "--require=/tmp/other.js", "/opt/kit/server.js"]',
            '["/usr/bin/node", "/opt/kit/../server.js"]',
            '["/usr/bin/node"]',
            '["/usr/bin/env", "/opt/kit/server.js"]',
            '["/usr/bin/python3", "/opt/kit/server.py"]',
            '["/opt/kit/venv/bin/python", "-c", "import other"]',
            '["/opt/kit/venv/bin/python3.12", "-m", "other"]',
        ):
            found = [each for each in self.problems(command) if "must run a program of the package" in each]
            self.assertEqual(len(found), 1, command)
        for command in (
            '["/opt/kit/server", "/home/me/documents"]',
            '["/usr/bin/node", "/opt/kit/server.js", "--root", "/home/me"]',
            '["/opt/kit/venv/bin/python", "/opt/kit/server.py"]',
        ):
            self.assertEqual(self.problems(command), [], command)

    def test_loaded_code(self) -> None:
        """A variable by which the program loads code that is not of the package is refused, set or inherited."""
        command = '["/usr/bin/node", "/opt/kit/server.js"]'
        (set_,) = self.problems(command, 'LANG = "C.UTF-8"', 'NODE_OPTIONS = "--require /tmp/x.js"')
        self.assertIn("must not have NODE_OPTIONS", set_)
        (inherited,) = self.problems(command, '["PATH"]', '["PATH", "NODE_PATH"]')
        self.assertIn("must not have NODE_PATH", inherited)

    def test_outside_arguments(self) -> None:
        """The review tells which arguments name files that are not part of the package."""
        arguments = ["./a", "--stdio", "--config=/tmp/x.js", "a/b", "/opt/kit/more.js"]
        text = self.packed("/opt/kit").replace('"/usr/bin/tracker", "--stdio"', str(["/opt/kit/x", *arguments])[1:-1])
        shown = self.service.local(spec_of(text.replace("'", '"'))).sessions.review()["package"]
        self.assertTrue(str(shown).endswith("; outside of it: ./a, --config=/tmp/x.js"), shown)
