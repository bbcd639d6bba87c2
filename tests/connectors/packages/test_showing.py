"""What a person sees of a package, and of the difference to the version that was published last."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from typing import Any

from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON
from aileron.connectors.packages import (
    FetchedAnswer,
    NotFetched,
    PackageRegistry,
    PackageShower,
    UploadRequest,
    read_upload,
)

from .kit import cargo_request, npm_body, npm_package, npm_request, targz, twine_parts, twine_request, wheel

REGISTRY = "https://registry.npmjs.org"
TARBALL = f"{REGISTRY}/@acme/app/-/app-1.2.0.tgz"


def found(value: JSON) -> FetchedAnswer:
    """Return an answer with JSON."""
    return FetchedAnswer(200, json.dumps(value).encode())


async def call(work: Callable[..., Any], *args: Any) -> Any:
    """Call a function in this thread."""
    return work(*args)


class ShowingCase(SynchronousTestCase):
    """Packages at a registry of which a test says what it has.

    :ivar answers: the answers of the registry, by URL. For others there is none.
    """

    def setUp(self) -> None:
        self.answers: dict[str, FetchedAnswer] = {}
        self.asked: list[str] = []

    async def fetch(self, url: str, accept: str) -> FetchedAnswer:
        """Answer."""
        self.asked.append(url)
        if url not in self.answers:
            raise NotFetched("there is no answer")
        return self.answers[url]

    def show(self, form: str, request: UploadRequest, origin: str, seconds: float = 60) -> Mapping[str, Any]:
        """Return what is shown of a request."""
        upload = read_upload(form, request)
        assert upload is not None
        shower = PackageShower(upload, PackageRegistry(origin, self.fetch, call), time.monotonic() + seconds)
        return self.successResultOf(Deferred.fromCoroutine(shower.show()))

    def npm(self, content: bytes, **more: Any) -> Mapping[str, Any]:
        """Return what is shown of a publish of npm."""
        return self.show("npm", npm_request(npm_body(content, **more)), REGISTRY)

    def publish(self, content: bytes, version: str = "1.2.0", tag: str = "next") -> None:
        """Have a version at the registry."""
        url = f"{REGISTRY}/@acme/app/-/app-{version}.tgz"
        self.answers[f"{REGISTRY}/@acme%2Fapp/{tag}"] = found({"version": version, "dist": {"tarball": url}})
        self.answers[url] = FetchedAnswer(200, content)


class ShowingTests(ShowingCase):
    """L{PackageShower}."""

    def test_files(self) -> None:
        """The files, the tag, the access, and the archive are shown."""
        shown = self.npm(npm_package())
        self.assertEqual(shown["package"], "@acme/app 1.3.0")
        self.assertIn("Tag: next\nAccess: not given\nArchive: app-1.3.0.tgz, ", shown["details"])
        self.assertEqual(
            shown["files"].splitlines(),
            ["package/package.json (41 bytes)", "package/index.js (4 bytes)", "2 files, 45 bytes"],
        )
        self.assertIsNone(shown["warning"])
        self.assertEqual(shown["compared_with"], "Not compared with a published version: there is no answer.")

    def test_difference(self) -> None:
        """Files that were added, removed and changed are listed, and texts are compared line by line."""
        self.publish(npm_package(version="1.2.0", more={"package/index.js": b"one\ntwo\n", "package/old.js": b"x\n"}))
        shown = self.npm(npm_package(more={"package/index.js": b"one\n2\n", "package/new.bin": b"\0\0"}))
        self.assertEqual(shown["compared_with"], "1.2.0")
        self.assertIn("-two\n+2\n", shown["patch"])
        self.assertIn("--- a/old.js\n+++ /dev/null\n", shown["patch"])
        self.assertIn("diff new.bin\nnew file\nNot shown as text: nothing before and 2 bytes after\n", shown["patch"])
        lines = shown["changes"].splitlines()
        self.assertEqual(lines[0], "index.js | +1 -1")
        self.assertEqual(lines[-1], "4 files changed, 2 lines added, 3 lines removed")

    def test_same(self) -> None:
        """If nothing but the version differs, no other file is in the patch."""
        self.publish(npm_package())
        shown = self.npm(npm_package())
        self.assertEqual((shown["changes"], shown["patch"]), ("All files are the same.", None))

    def test_first(self) -> None:
        """A package that was never published is told to be so, once neither the tag nor C{latest} is there."""
        for tag in ("next", "latest"):
            self.answers[f"{REGISTRY}/@acme%2Fapp/{tag}"] = FetchedAnswer(404, b"{}")
        self.assertIn("No version of this package was published yet", self.npm(npm_package())["compared_with"])
        self.publish(npm_package(version="1.2.0"), tag="latest")
        self.assertEqual(self.npm(npm_package())["compared_with"], "1.2.0")

    def test_manifest(self) -> None:
        """A package.json of another version, or with other parts than the registry is told, warns."""
        self.assertIn(
            "package.json in the archive is of @acme/app 6.6.6.", self.npm(npm_package(version="6.6.6"))["warning"]
        )
        body = npm_body(npm_package())
        body["versions"]["1.3.0"] |= {"dependencies": {"evil": "1"}, "scripts": {"install": "node-gyp rebuild"}}
        shown = self.show("npm", npm_request(body), REGISTRY)
        self.assertIn("something else than package.json in the archive has: dependencies.", shown["warning"])
        for content in (targz({"package/index.js": b""}), targz({"package/package.json": b"[]"})):
            self.assertIn("no package.json that can be read", self.npm(content)["warning"])

    def test_optional(self) -> None:
        """What npm changes itself when it publishes does not warn."""
        own = {"name": "@acme/app", "version": "1.3.0", "optionalDependencies": {"a": "1"}}
        body = npm_body(targz({"package/package.json": json.dumps(own).encode()}))
        body["versions"]["1.3.0"] |= {"optionalDependencies": {"a": "1"}, "dependencies": {"a": "1"}}
        self.assertIsNone(self.show("npm", npm_request(body), REGISTRY)["warning"])

    def test_commands(self) -> None:
        """Another command or bundled package than package.json has warns; the two ways to write the same do not."""
        own = {
            "name": "@acme/app",
            "version": "1.3.0",
            "bin": "./cli.js",
            "dependencies": {"a": "1"},
            "bundledDependencies": True,
        }
        body = npm_body(targz({"package/package.json": json.dumps(own).encode()}))
        told = body["versions"]["1.3.0"]
        told |= {"bin": {"app": "cli.js"}, "dependencies": {"a": "1"}, "bundleDependencies": ["a"]}
        self.assertIsNone(self.show("npm", npm_request(body), REGISTRY)["warning"])
        told |= {"bin": {"app": "evil.js"}, "bundleDependencies": ["a", "b"]}
        warning = self.show("npm", npm_request(body), REGISTRY)["warning"]
        self.assertIn("package.json in the archive has: bin, bundleDependencies.", warning)

    def test_unreadable(self) -> None:
        """If the archive is refused, the reason is shown, and nothing is fetched."""
        shown = self.npm(b"nothing")
        self.assertIn("The files cannot be shown: it is not compressed with gzip, or damaged.", shown["warning"])
        self.assertNotIn("files", shown)
        self.assertEqual(self.asked, [])

    def test_unreadable_before(self) -> None:
        """If the published archive is refused, the files are shown without a comparison."""
        self.publish(b"nothing")
        shown = self.npm(npm_package())
        self.assertIn("Not compared with a published version: it is not compressed", shown["compared_with"])
        self.assertIn("2 files", shown["files"])

    def test_slow(self) -> None:
        """If the time is up, the review says so."""
        request = npm_request(npm_body(npm_package()))
        self.assertIn("takes too long", self.show("npm", request, REGISTRY, -1)["warning"])

    def test_odd_names(self) -> None:
        """Odd names warn, and are shown so that nothing in them acts on a terminal."""
        shown = self.npm(npm_package(more={"package/../../\x1bx": b""}))
        self.assertIn("lead out of the package", shown["warning"])
        self.assertNotIn("\x1b", shown["files"] + shown["warning"])

    def test_several_tops(self) -> None:
        """Files of npm in several directories, which it unpacks to one place, warn."""
        shown = self.npm(npm_package(more={"package/index.js": b"one\n", "other/index.js": b"two\n"}))
        self.assertIn("the archive has several of them: other, package.", shown["warning"])

    def test_other_top(self) -> None:
        """A crate whose files are in a directory of another name warns."""
        for top, warns in (("acme-app-1.3.0", False), ("other-1.3.0", True)):
            shown = self.show("crates", cargo_request(targz({f"{top}/src/lib.rs": b"x\n"})), "https://crates.io")
            self.assertEqual(shown["warning"] is not None, warns)


class PublishedTests(ShowingCase):
    """The version that was published last."""

    def test_other_host(self) -> None:
        """An archive at another host is not fetched."""
        elsewhere = "https://registry.npmjs.org.evil.example/app-1.2.0.tgz"
        self.answers[f"{REGISTRY}/@acme%2Fapp/next"] = found({"version": "1.2.0", "dist": {"tarball": elsewhere}})
        self.assertIn("its archive is at another host", self.npm(npm_package())["compared_with"])
        self.assertEqual(len(self.asked), 1)

    def test_odd_answers(self) -> None:
        """An answer of the registry that cannot be read ends the comparison."""
        place = f"{REGISTRY}/@acme%2Fapp/next"
        for answer, why in (
            (FetchedAnswer(500, b""), "status 500"),
            (FetchedAnswer(200, b"x"), "cannot be read"),
            (found([]), "cannot be read"),
            (found({"version": 1, "dist": {}}), "cannot be read"),
        ):
            self.answers[place] = answer
            self.assertIn(why, self.npm(npm_package())["compared_with"])
        self.publish(b"")
        self.answers[TARBALL] = FetchedAnswer(404, b"")
        self.assertIn(
            "the archive of version 1.2.0 was answered with status 404", self.npm(npm_package())["compared_with"]
        )

    def test_crates(self) -> None:
        """A crate is compared with the newest version."""
        self.answers["https://crates.io/api/v1/crates/acme-app"] = found({"crate": {"newest_version": "1.2.0"}})
        old = targz({"acme-app-1.2.0/src/lib.rs": b"one\n"})
        self.answers["https://static.crates.io/crates/acme-app/acme-app-1.2.0.crate"] = FetchedAnswer(200, old)
        shown = self.show("crates", cargo_request(targz({"acme-app-1.3.0/src/lib.rs": b"2\n"})), "https://crates.io")
        self.assertEqual(shown["compared_with"], "1.2.0")
        self.assertIn("--- a/src/lib.rs\n+++ b/src/lib.rs\n@@ -1,1 +1,1 @@\n-one\n+2\n", shown["patch"])

    def test_pypi(self) -> None:
        """A wheel is compared with the newest wheel of another version."""
        place = "https://files.pythonhosted.org/packages"
        files = {
            version: [{"upload_time_iso_8601": f"2030-01-0{day}", "url": f"{place}/{day}/{name}"}]
            for day, version, name in (
                (1, "1.1.0", "acme_app-1.1.0-py3-none-any.whl"),
                (2, "1.2.0", "acme_app-1.2.0-py3-none-any.whl"),
                (3, "1.2.5", "acme_app-1.2.5.tar.gz"),
                (4, "1.3.0", "acme_app-1.3.0-cp311-x.whl"),
            )
        }
        self.answers["https://pypi.org/pypi/acme-app/json"] = found({"releases": files})
        old = wheel({"acme/__init__.py": b"x = 1\n", "acme_app-1.2.0.dist-info/METADATA": b"same\n"})
        self.answers[f"{place}/2/acme_app-1.2.0-py3-none-any.whl"] = FetchedAnswer(200, old)
        new = wheel({"acme/__init__.py": b"x = 2\n", "acme_app-1.3.0.dist-info/METADATA": b"same\n"})
        parts = twine_parts(new, "acme_app-1.3.0-py3-none-any.whl")
        shown = self.show("pypi", twine_request(parts), "https://upload.pypi.org")
        self.assertEqual(shown["compared_with"], "1.2.0")
        self.assertEqual(shown["changes"], "acme/__init__.py | +1 -1\n1 files changed, 1 lines added, 1 lines removed")
        self.answers["https://pypi.org/pypi/acme-app/json"] = found({"releases": {}})
        shown = self.show("pypi", twine_request(parts), "https://upload.pypi.org")
        self.assertIn("No version of this package", shown["compared_with"])

    def test_unknown_registry(self) -> None:
        """Where another index is, is not guessed."""
        shown = self.show("crates", cargo_request(targz({})), "https://crates.example")
        self.assertIn("how versions are found at https://crates.example is not known", shown["compared_with"])
        self.assertEqual(self.asked, [])
