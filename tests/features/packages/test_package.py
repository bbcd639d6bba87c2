"""Of manifests, of packages without one, of sources and versions, and of the file that remembers them."""

from __future__ import annotations

from pathlib import Path

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import digest_of_bytes
from aileron.features.packages._lock import Installed, Lock, LockFile, read_lock
from aileron.features.packages._package import read_package
from aileron.features.packages._source import _choose, _find_signer, read_source, version_key
from aileron.model.errors import InvalidRequest
from aileron.model.trust import TrustKind
from aileron.testing import MemoryTrust, trusted_word
from tests.features.packages.kit import CONNECTOR, FILES, Publisher, manifest, package

GITHUB = "https://github.com/"


class PackageTests(SynchronousTestCase):
    """What is a package."""

    def test_identity(self) -> None:
        """The digest covers names, bytes and the manifest, and nothing else that lies beside them."""
        digest = read_package(package(), "x", "").digest
        self.assertEqual(read_package({**package(), "LICENSE": b"x", "more.md": b"y"}, "y", "2.0.0").digest, digest)
        moved = {f"deep/{name}": data for name, data in FILES.items()}
        others = (
            package(version="1.0.1"),
            package({**FILES, "tracker.toml": b"#\n"}),
            package({"a.toml": FILES["tracker.toml"], "file-ticket.md": FILES["file-ticket.md"]}),
            package(moved),
        )
        self.assertEqual(len({digest, *(read_package(each, "x", "").digest for each in others)}), 5)

    def test_without_manifest(self) -> None:
        """Without a manifest all connector and action files whose names are restricted are the package."""
        files = {**FILES, "README.md": b"x", "tracker.fixtures.toml": b"x", "egress.toml": b"x", "setup.py": b"x"}
        found = read_package(files, "kit", "1.2.0")
        self.assertEqual((found.name, found.version), ("kit", "1.2.0"))
        self.assertEqual(found.files.keys(), {"connectors/tracker.toml", "actions/file-ticket.md"})
        for name, beside in (("Kit", FILES), ("kit", {"README.md": b"x"})):
            self.assertRaises(InvalidRequest, read_package, beside, name, "")

    def test_manifest(self) -> None:
        """A manifest with an error is refused, with its line."""
        for text, why in (
            ('name = 1\nversion = "1.0.0"', "`name` must be a string"),
            ('name = "x"\nversion = "v1"', "line 2: `version` must be a version"),
            ("=", "is not TOML"),
            ('name = "x"\nversion = "1.0.0"\nhooks = "x"', "`hooks` is not a known key"),
            ('name = "x"\nversion = "1.0.0"', "no connector and no action"),
            (manifest({"b.toml": b"x"}).decode(), "`b.toml` is not in the package"),
            (manifest({"tracker.toml": b"x"}).decode(), f"must be {digest_of_bytes(CONNECTOR.encode())}"),
            (manifest(version="9" * 99 + ".0.0").decode(), "line 2: `version` must be a version"),
            ('name = "x"\nversion = "1.0.0"\ndescription = "' + "x" * 201 + '"', "200 characters at most"),
            ("#" * 300_000, "more than 262144 bytes"),
            (manifest({}, more=f"packages = ['{'x' * 201}']").decode(), "200 characters each"),
            (manifest({}, more=f"packages = {[str(each) for each in range(33)]}").decode(), "32 at most"),
        ):
            files = {**FILES, "aileron-package.toml": text.encode()}
            self.assertIn(why, self.assertRaises(InvalidRequest, read_package, files, "x", "").message)

    def test_names(self) -> None:
        """A file goes to one place, under a name that cannot pass for another of the home."""
        for name in (
            "egress.toml",
            "packages.toml",
            "A.toml",
            ".a.toml",
            "a.py",
            "ü.md",
            "a.fixtures.toml",
            "x/A/b.md",
        ):
            with self.assertRaises(InvalidRequest, msg=name):
                read_package({name: b"x", "aileron-package.toml": manifest({name: b"x"})}, "x", "")
        for files in ({"a/b.md": b"x", "c/b.md": b"y"}, {"a.md": b"x" * 300_000}):
            self.assertRaises(InvalidRequest, read_package, {**files, "aileron-package.toml": manifest(files)}, "x", "")

    @given(st.binary(max_size=300))
    def test_any_manifest(self, data: bytes) -> None:
        """No bytes do more than be refused."""
        self.assertRaises(InvalidRequest, read_package, {"aileron-package.toml": data}, "x", "")


class SourceTests(SynchronousTestCase):
    """Sources and versions."""

    def test_choice(self) -> None:
        """The newest release is chosen unless a version is named; tags that are no versions do not count."""
        tags = {f"{'9' * 5000}.0.0": "a", "v1.0.0": "b", "1.10.0": "c", "1.9.0": "d", "2.0.0-rc.1": "e", "main": "f"}
        for version, found in (
            ("", ("1.10.0", "c")),
            ("@1.0.0", ("1.0.0", "b")),
            ("@v2.0.0-rc.1", ("2.0.0-rc.1", "e")),
        ):
            self.assertEqual(_choose(tags, read_source(f"github://o/r{version}", GITHUB)), found)
        self.assertRaises(InvalidRequest, _choose, {"main": "f"}, read_source("github://o/r", GITHUB))

    def test_sources(self) -> None:
        """A source is taken apart; the version is no part of what is remembered."""
        for text, url, path, version in (
            ("github://o/r", "https://github.com/o/r.git", "", ""),
            ("github://o/r.git/a/b@1.0.0", "https://github.com/o/r.git", "a/b", "1.0.0"),
            ("https://h.example/a/b.git//c@v2.0.0-a", "https://h.example/a/b.git", "c", "2.0.0-a"),
            ("ssh://git@h.example:22/a.git@1.0.0", "ssh://git@h.example:22/a.git", "", "1.0.0"),
            ("ssh://git@h.example/a", "ssh://git@h.example/a", "", ""),
        ):
            found = read_source(text, GITHUB)
            self.assertEqual((found.url, found.path, found.version), (url, path, version))
            self.assertEqual(found.text, text.removesuffix(f"@{version}").removesuffix(f"@v{version}"))
        self.assertEqual(read_source("github://o/r", "https://git.example/x").url, "https://git.example/x/o/r.git")
        for text in (
            "github://o",
            "github://../..//x",
            "https://h.example",
            "https://h/x y",
            "git://h/x",
            "ssh://h/x",
            "github://o/r@main",
        ):
            self.assertRaises(InvalidRequest, read_source, text, GITHUB)

    def test_signature_of_nothing(self) -> None:
        """A signature without the manifest that it signs counts for nothing."""
        publisher = Publisher()
        files = {**FILES, "aileron-package.toml.minisig": publisher.sign(b"")}
        self.assertRaises(InvalidRequest, _find_signer, files, [publisher.key])

    def test_order(self) -> None:
        """Versions are ordered as Semantic Versioning orders them."""
        before = ("alpha", "alpha.1", "alpha.beta", "beta", "beta.2", "beta.11", "rc.1")
        ordered = [*(f"1.0.0-{each}" for each in before), "1.0.0", "1.0.2", "1.0.10", "1.10.0", "2.0.0-a"]
        self.assertEqual(sorted(sorted(ordered), key=version_key), ordered)


class LockTests(SynchronousTestCase):
    """C{packages.json}."""

    def setUp(self) -> None:
        self.path = Path(self.mktemp()).absolute()
        self.trust = MemoryTrust()
        self.file = LockFile(self.path, self.trust)

    def test_form(self) -> None:
        """It is read as it is written, and with anything missing, unknown or of another type it is refused."""
        self.assertEqual(read_lock(None), Lock())
        lock = evolve(Lock(), publishers=("a",))
        self.assertEqual(read_lock(lock.encode()), lock)
        for data in (b"", b"[]", b"{}", b'{"github": 1, "publishers": [], "packages": []}', lock.encode() * 2):
            self.assertRaises(InvalidRequest, read_lock, data)

    def test_package(self) -> None:
        """It names no file outside of the directories of connectors and actions, and no version that is none."""
        place, digest = "actions/file-ticket.md", digest_of_bytes(b"x")
        package = Installed("tracker", "1.0.0", "/kit", "", digest, "", "", {place: digest})
        data = evolve(Lock(), packages=(package,)).encode()
        self.assertEqual(read_lock(data).packages, (package,))
        for name in ("../.bashrc", "/etc/passwd", "actions/../config.yaml", "config.yaml", "actions/.x.md"):
            self.assertRaises(InvalidRequest, read_lock, data.replace(place.encode(), name.encode()))
        self.assertRaises(InvalidRequest, read_lock, data.replace(b"1.0.0", b"new"))
        self.assertNotIn(b"highest", data)
        higher = evolve(Lock(), packages=(evolve(package, highest="1.1.0"),))
        self.assertEqual(read_lock(higher.encode()), higher)
        self.assertRaises(InvalidRequest, read_lock, higher.encode().replace(b"1.1.0", b"new"))

    def test_uninstalled(self) -> None:
        """What was uninstalled stays, without its files; a file of an earlier release has no such member."""
        place, digest = "actions/file-ticket.md", digest_of_bytes(b"x")
        package = Installed("tracker", "1.0.0", "/kit", "", digest, "key", "", {place: digest})
        lock = Lock().replace("tracker", package)
        self.assertNotIn(b"uninstalled", lock.encode())
        removed = read_lock(lock.replace("tracker", None).encode())
        self.assertEqual((removed.packages, removed.uninstalled), ((), (evolve(package, files={}),)))
        self.assertEqual(removed.digests, set())
        self.assertEqual(removed.replace("tracker", package), lock)

    def test_trust(self) -> None:
        """The daemon offers it to be trusted, says why it is not, and calls a damaged one by its fault."""
        self.assertEqual((self.file.candidates(), self.file.problems()), ((), ()))
        self.path.write_bytes(Lock().encode())
        (found,) = self.file.candidates()
        self.assertEqual((found.name, found.digest), ("packages.json", digest_of_bytes(Lock().encode())))
        self.assertEqual([each.kind for each in self.file.problems()], ["untrusted"])
        self.trust.put([trusted_word("packages.json", TrustKind.CONFIG, found.digest)])
        self.assertEqual(self.file.problems(), ())
        self.path.write_bytes(b"{}")
        self.assertEqual(self.file.candidates(), ())
        self.assertIn("has an error", self.file.problems()[0].message)
        self.path.unlink()
        self.path.symlink_to("/etc/passwd")
        self.assertEqual([each.kind for each in self.file.problems()], ["validation_error"])
