"""The file of hosts, by project."""

from __future__ import annotations

from pathlib import PurePosixPath

from zope.interface.verify import verifyObject

from aileron.base.json import digest_of_bytes
from aileron.model.errors import Conflict, InvalidRequest
from aileron.model.interfaces.connectors import IConfigFile
from aileron.model.trust import TrustKind
from tests.features.egress.case import HOST, PROJECT, EgressCase


class FileTests(EgressCase):
    """L{EgressFile}."""

    def problems(self) -> list[tuple[int | None, str]]:
        """What is wrong with it."""
        return [(each.line, each.message) for each in self.file.problems()]

    def test_missing(self) -> None:
        """Without a file nothing is allowed, and nothing is wrong."""
        self.assertTrue(verifyObject(IConfigFile, self.file))
        self.assertEqual((self.file.candidates(), self.file.problems()), ((), ()))
        self.assertIsNone(self.file.find(PROJECT, HOST))

    def test_trust(self) -> None:
        """A file counts while it is trusted as it is on disk, and not before, nor after a change."""
        text = self.entry("registry.example")
        self.put(text, trusted=False)
        self.assertIsNone(self.file.find(PROJECT, HOST))
        self.assertIn("not trusted as it is now", self.problems()[0][1])
        (candidate,) = self.file.candidates()
        self.assertEqual((candidate.kind, candidate.name, candidate.text), (TrustKind.CONFIG, "egress.toml", text))
        self.put(text)
        self.assertEqual((self.problems(), self.file.find(PROJECT, HOST) is not None), ([], True))
        self.put(text + "\n", trusted=False)
        self.assertIsNone(self.file.find(PROJECT, HOST))

    def test_projects(self) -> None:
        """An entry is for its directory and what lies below, and for nothing else."""
        self.put(self.entry("registry.example"))
        for project, found in (
            (PROJECT, True),
            (f"{PROJECT}/part", True),
            ("/home/me/shop2", False),
            ("/work", False),
            (f"{PROJECT}/../other", False),
            ("work/shop", False),
        ):
            self.assertEqual(self.file.find(project, HOST) is not None, found, project)

    def test_entries(self) -> None:
        """Entries name presets, and hosts with or without a port; private addresses are meant where one says so."""
        more = 'private_network = true\n[[allow]]\nproject = "/"\npresets = ["npm", "pypi"]\n'
        self.put(self.entry("Registry.Example:8443", more=more))
        rule = self.file.find(PROJECT, "registry.example:8443")
        assert rule is not None
        self.assertEqual((rule.project, rule.private_network), (PurePosixPath(PROJECT), True))
        self.assertIsNone(self.file.find(PROJECT, HOST))
        npm = self.file.find("/anywhere", "registry.npmjs.org:443")
        self.assertEqual(npm and npm.private_network, False)

    def test_private_wins(self) -> None:
        """Where two entries allow a host, the one counts that may lead to a private address."""
        self.put(self.entry("registry.example") + self.entry("registry.example", more="private_network = true\n"))
        rule = self.file.find(PROJECT, HOST)
        self.assertTrue(rule and rule.private_network)

    def test_faults(self) -> None:
        """Each fault is told with its line, and a file with one allows nothing even if it was trusted."""
        for text, line, said in (
            ("x = [", None, "it is not TOML"),
            ("[[allow]]\nproject = 'shop'\n", 2, "`project` must be an absolute path"),
            ("[[allow]]\nproject = '/a/../b'\n", 2, "`project` must be an absolute path"),
            ("[[allow]]\n", 1, "`project` is missing"),
            ("[[allow]]\nproject = '/a'\npresets = ['nmp']\n", 3, "`presets` must be some of: npm, pypi"),
            ("[[allow]]\nproject = '/a'\nhosts = ['10.0.0.1']\n", 3, "must be a name, which TLS can say"),
            ("[[allow]]\nproject = '/a'\nhosts = ['*.example']\n", 3, "must have a proper host"),
            ("[[allow]]\nproject = '/a'\npresets = ['npm']\nprivate_network = true\n", 4, "cannot be set for presets"),
            ("[[allow]]\nproject = '/a'\nhosts = ['a.example']\nport = 1\n", 4, "`port` is not a known key"),
            ("[allow]\nproject = '/a'\n", 1, "`allow` must be an array of tables"),
        ):
            self.put(text)
            ((where, message), *_) = self.problems()
            self.assertEqual((where, self.file.candidates()), (line, ()), text)
            self.assertIn(said, message)
            self.assertIsNone(self.file.find("/a", "a.example:443"))
        self.path.write_bytes(b"\xff")
        self.assertEqual(self.problems(), [(None, "it is not UTF-8")])

    def test_link(self) -> None:
        """A link is no file of ours."""
        self.path.symlink_to("/etc/hostname")
        self.assertEqual((len(self.file.problems()), self.file.candidates()), (1, ()))


class AddingTests(EgressCase):
    """L{EgressFile.adding}."""

    def test_add(self) -> None:
        """An entry is added behind what stands there, which stays in force until all of it is trusted."""
        self.put("# mine\n" + self.entry("a.example"))
        with self.file.adding(PROJECT, HOST) as candidate:
            self.assertIsNotNone(self.file.find(PROJECT, "a.example:443"))
            self.assertIsNone(self.file.find(PROJECT, HOST))
            self.believe(TrustKind.CONFIG, candidate.name, candidate.digest)
        self.assertIsNotNone(self.file.find(PROJECT, HOST))
        self.assertIsNotNone(self.file.find(PROJECT, "a.example:443"))
        self.assertTrue(self.path.read_text().startswith("# mine\n[[allow]]"))
        self.assertEqual(candidate.digest, digest_of_bytes(self.path.read_bytes()))

    def test_odd_names(self) -> None:
        """A project's name is written so that it is read again, whatever it is; what cannot be is refused."""
        for project in ('/home/me/"quoted"\\', "/home/me/ä ☃ 𝄞", "/home/me/\t\x1b"):
            with self.file.adding(project, HOST) as candidate:
                self.believe(TrustKind.CONFIG, candidate.name, candidate.digest)
            self.assertIsNotNone(self.file.find(project, HOST), project)
        before = self.path.read_bytes()
        for project in ("relative", "/home/me/\x7f", "/home/me/\udcff"):
            self.assertRaises(InvalidRequest, self.file.adding(project, HOST).__enter__)
        self.assertEqual(self.path.read_bytes(), before)

    def test_not_trusted(self) -> None:
        """Nothing is added to a file that nobody has read."""
        for text in (self.entry("a.example"), "x = ["):
            self.put(text, trusted=False)
            self.assertRaises(Conflict, self.file.adding(PROJECT, HOST).__enter__)
            self.assertEqual(self.path.read_text(), text)

    def test_taken_back(self) -> None:
        """What was not trusted after all is taken back, but not what somebody else wrote meanwhile."""
        for before in (None, self.entry("a.example")):
            if before is not None:
                self.put(before)
            self.interrupt()
            self.assertEqual(self.path.read_text() if self.path.exists() else None, before)
        self.interrupt("# theirs\n")
        self.assertEqual(self.path.read_text(), "# theirs\n")

    def interrupt(self, meanwhile: str | None = None) -> None:
        """Begin to add an entry, and do not trust it; somebody else may write the file before that."""
        adding = self.file.adding(PROJECT, HOST)
        adding.__enter__()
        if meanwhile is not None:
            self.path.write_text(meanwhile)
        error = ZeroDivisionError()
        self.assertFalse(adding.__exit__(ZeroDivisionError, error, None))
