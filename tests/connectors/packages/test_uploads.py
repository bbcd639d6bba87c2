"""Requests by which tools publish packages: read strictly, refused, or left to others."""

from __future__ import annotations

import contextlib
import hashlib
import json
from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.connectors.packages import PACKAGE_FORMS, NotAPackage, PackageUpload, UploadRequest, read_upload

from .kit import cargo_request, npm_body, npm_package, npm_request, targz, twine_parts, twine_request, wheel


class UploadCase(SynchronousTestCase):
    """Requests of one form."""

    form: str

    def upload(self, request: UploadRequest) -> PackageUpload:
        """Return the package that a request publishes."""
        found = read_upload(self.form, request)
        assert found is not None
        return found

    def refused(self, request: UploadRequest, why: str) -> None:
        """Check that a request is refused, and why."""
        self.assertIn(why, str(self.assertRaises(NotAPackage, read_upload, self.form, request)))


class NpmTests(UploadCase):
    """npm."""

    form = "npm"

    def setUp(self) -> None:
        self.content = npm_package()
        self.body = npm_body(self.content)

    def test_publish(self) -> None:
        """A publish has the name, the version, the archive, the tag, the access and scripts that installing runs."""
        self.body["versions"]["1.3.0"]["scripts"] = {"test": "x", "postinstall": "node x"}
        found = self.upload(npm_request({**self.body, "access": "public"}))
        self.assertEqual((found.title, found.file, found.content), ("@acme/app 1.3.0", "app-1.3.0.tgz", self.content))
        self.assertEqual(
            found.details, {"Tag": "next", "Access": "public", "Runs when installed": "postinstall: node x"}
        )
        digest = f"sha256:{hashlib.sha256(self.content).hexdigest()}"
        members = {"name": "@acme/app", "version": "1.3.0", "file": "app-1.3.0.tgz", "size": len(self.content)}
        self.assertEqual(found.to_json(), {**members, "digest": digest})
        plain = npm_request(npm_body(self.content, "app"), "/app")
        self.assertEqual(self.upload(plain).name, "app")

    def test_others(self) -> None:
        """What publishes no package is left to others: tags, deprecations, removals and reads."""
        deprecation = {name: value for name, value in self.body.items() if name != "_attachments"}
        for request in (
            npm_request(json.dumps("1.3.0").encode(), "/-/package/@acme%2fapp/dist-tags/latest"),
            npm_request(deprecation),
            npm_request(self.body, "/app/-rev/7"),
            npm_request(b"", method="DELETE"),
            npm_request(b"[]"),
            npm_request(self.body, method="POST"),
        ):
            self.assertIsNone(read_upload("npm", request))

    def test_spelling(self) -> None:
        """A publish with a slash behind the name is refused, and is not left to others."""
        self.refused(npm_request(npm_body(self.content, "app"), "/app/"), "several packages")

    def test_second_version(self) -> None:
        """A request that publishes two versions, two files or two tags is refused."""
        for name in ("versions", "dist-tags", "_attachments"):
            both = {**self.body, name: {**self.body[name], "9.9.9": {}}}
            self.refused(npm_request(both), "exactly one version")
        self.refused(npm_request({**self.body, "dist-tags": {}}), "exactly one version")
        self.refused(npm_request({**self.body, "_attachments": [1]}), "exactly one version")

    def test_names(self) -> None:
        """All names and versions must agree: in the URL, the document, the version, the tag and the file."""
        manifest = self.body["versions"]["1.3.0"]
        changed: list[dict[str, Any]] = [
            {"name": "other"},
            {"_id": "other"},
            {"dist-tags": {"latest": "1.2.0"}},
            {"versions": {"1.3.1": manifest}},
            {"versions": {"1.3.0": {**manifest, "name": "other"}}},
            {"versions": {"1.3.0": {**manifest, "version": "1.3.1"}}},
            {"_attachments": {"@acme/app-1.3.1.tgz": self.body["_attachments"]["@acme/app-1.3.0.tgz"]}},
        ]
        for each in changed:
            self.refused(npm_request({**self.body, **each}), "several packages or versions")
        self.refused(npm_request(self.body, "/@acme%2fother"), "several packages or versions")
        self.refused(npm_request(self.body, "/@acme%2fapp?x=1"), "several packages or versions")
        self.refused(npm_request({**self.body, "dist-tags": {"a/b": "1.3.0"}}), "no plain text")

    def test_further_members(self) -> None:
        """Members that npm does not send are refused: they could do something that is not shown."""
        self.refused(npm_request({**self.body, "users": {"me": True}}), "members that npm does not send")

    def test_digest(self) -> None:
        """An archive with another length or digest than the registry is told is refused."""
        other = npm_body(npm_package(version="6.6.6"))["_attachments"]["@acme/app-1.3.0.tgz"]
        self.refused(npm_request({**self.body, "_attachments": {"@acme/app-1.3.0.tgz": other}}), "length or digest")
        for wrong in ({"data": "?"}, {"data": None}):
            attached = {"@acme/app-1.3.0.tgz": {**other, **wrong}}
            self.refused(npm_request({**self.body, "_attachments": attached}), "no base64")

    def test_unclear(self) -> None:
        """JSON that servers read in different ways, or that is encoded, is refused."""
        self.refused(npm_request(b'{"a": 1, "a": 2}'), "one way only")
        self.refused(evolve(npm_request(self.body), headers=()), "not of the type")
        headers = (("Content-Type", "application/json"), ("Content-Encoding", "gzip"))
        self.refused(evolve(npm_request(self.body), headers=headers), "not of the type")


class PyPITests(UploadCase):
    """twine."""

    form = "pypi"

    def setUp(self) -> None:
        self.file = "acme_app-1.3.0-py3-none-any.whl"
        self.content = wheel({"acme/__init__.py": b""})
        self.parts = twine_parts(self.content, self.file, requires_python=">=3.11")

    def test_upload(self) -> None:
        """An upload has the name, the version, the file and its type."""
        found = self.upload(twine_request(self.parts))
        self.assertEqual((found.title, found.file, found.content), ("acme-app 1.3.0", self.file, self.content))
        self.assertEqual(found.details, {"Type": "bdist_wheel", "Requires Python": ">=3.11"})
        self.assertTrue(found.is_zip)
        for name in ("acme_app-1.3.0.tar.gz", "acme-app-1.3.0.tar.gz"):
            self.assertFalse(self.upload(twine_request(twine_parts(targz({}), name))).is_zip)

    def test_others(self) -> None:
        """Reads are left to others."""
        self.assertIsNone(read_upload("pypi", UploadRequest("GET", "/legacy/", (), b"")))

    def test_twice(self) -> None:
        """A form that has a field twice, several files or another action is refused."""
        for name in ("name", "content", ":action", "sha256_digest"):
            twice = next(each for each in self.parts if each[0] == name)
            self.refused(twine_request([*self.parts, twice]), "exactly one file")
            self.refused(twine_request([each for each in self.parts if each is not twice]), "exactly one file")
        self.refused(twine_request([*self.parts, ("gpg_signature", "x.asc", b"x")]), "exactly one file")
        self.refused(twine_request(twine_parts(self.content, self.file, **{":action": "submit"})), "exactly one file")

    def test_names(self) -> None:
        """The file must be named as the name, the version and the type say."""
        self.refused(twine_request(twine_parts(self.content, self.file, version="1.3.1")), "named as another")
        self.refused(twine_request(twine_parts(self.content, self.file, name="other")), "named as another")
        self.refused(twine_request(twine_parts(self.content, self.file, filetype="sdist")), "neither a .tar.gz")
        self.refused(twine_request(twine_parts(self.content, "acme_app-1.3.0.exe")), "neither a .tar.gz")
        self.refused(twine_request(twine_parts(self.content, "a/acme_app-1.3.0.tar.gz")), "no plain text")

    def test_digest(self) -> None:
        """A file with another digest than the index is told is refused."""
        self.refused(twine_request(twine_parts(self.content, self.file, sha256_digest="0" * 64)), "another digest")

    def test_boundary(self) -> None:
        """What stands before, between or behind the parts is refused, and so are unusual parts."""
        request = twine_request(self.parts)
        self.refused(evolve(request, body=b"x" + request.body), "one way only")
        self.refused(evolve(request, body=request.body + b"x"), "one way only")
        self.refused(evolve(request, body=request.body[:-6]), "one way only")
        self.refused(evolve(request, headers=()), "multipart/form-data")
        self.refused(evolve(request, headers=(*request.headers, ("Content-Encoding", "gzip"))), "multipart/form-data")
        for old, new in (
            (b'; name="name"', b"; name=name"),
            (b'name="name"\r\n', b'name="name"\r\nContent-Transfer-Encoding: base64\r\n'),
            (b'name="name"\r\n', b'name="name"\r\nContent-Type: a\r\ncontent-type: b\r\n'),
            (b'name="name"', b'name="name"; name="version"'),
        ):
            self.refused(evolve(request, body=request.body.replace(old, new)), "not as twine sends it")


class CratesTests(UploadCase):
    """cargo."""

    form = "crates"

    def test_publish(self) -> None:
        """A publish has the name, the version and the crate."""
        found = self.upload(cargo_request(b"the crate"))
        self.assertEqual(
            (found.title, found.file, found.content), ("acme-app 1.3.0", "acme-app-1.3.0.crate", b"the crate")
        )

    def test_others(self) -> None:
        """Yanks and reads are left to others."""
        self.assertIsNone(read_upload("crates", cargo_request(b"", target="/api/v1/crates/acme/1.0.0/unyank")))

    def test_spelling(self) -> None:
        """A publish whose path is encoded, or ends in a slash, is refused, and is not left to others."""
        for target in ("/api/v1/crates/%6eew", "/api/v1/crates/new/", "/api/v1/crates/NEW"):
            self.refused(cargo_request(b"the crate", target=target), "is not spelled")

    def test_lengths(self) -> None:
        """What is cut off, or followed by something else, is refused."""
        request = cargo_request(b"the crate")
        self.refused(cargo_request(b"the crate", b"more"), "data after the crate")
        self.refused(evolve(request, body=request.body[:-1]), "cut off")
        self.refused(evolve(request, body=request.body[:3]), "cut off")
        self.refused(evolve(request, target=f"{request.target}?x"), "parameters")

    def test_description(self) -> None:
        """A description without a plain name and version is refused."""
        self.refused(cargo_request(b"", name="a/b"), "no plain text")
        self.refused(cargo_request(b"", vers=1), "names no crate")
        request = cargo_request(b"")
        self.refused(evolve(request, body=request.body.replace(b'"vers"', b'"name"')), "one way only")


class AnyTests(SynchronousTestCase):
    """Foreign bytes."""

    @given(st.sampled_from(PACKAGE_FORMS), st.binary(max_size=500))
    def test_any(self, form: str, body: bytes) -> None:
        """Whatever a request has, it is read, refused or left to others."""
        for request in (npm_request(body), cargo_request(body), evolve(twine_request([]), body=body)):
            with contextlib.suppress(NotAPackage):
                read_upload(form, request)
