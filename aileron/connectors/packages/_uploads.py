"""Reads the request by which a tool publishes a package: npm, twine or cargo.

Each form is read strictly. A request that could publish a package in another way is refused. A request that
publishes none is not read here.
"""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from urllib.parse import unquote

from attrs import field, frozen

from aileron.base.attachments import regular_base64
from aileron.base.json import JSON, digest, digest_of_bytes, loads_strict

NPM, PYPI, CRATES = "npm", "pypi", "crates"

_MOST_VALUES = 50_000
_NPM_NAME = re.compile(r"(?:@[a-z0-9~-][a-z0-9._~-]{0,100}/)?[a-zA-Z0-9~_-][a-zA-Z0-9._~-]{0,200}")
_NAME = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9._-]{0,98}[A-Za-z0-9])?")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]{0,127}")
_TAG = re.compile(r"[A-Za-z0-9._~-]{1,100}")
_FILE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+!-]{0,250}")
_SEPARATORS = re.compile(r"[-_.+!]+")
_PART_NAME = re.compile(r"[A-Za-z0-9:_.-]{1,100}")
_BOUNDARY = re.compile(
    r'multipart/form-data; ?boundary=(?:"([0-9A-Za-z\'()+_,./:=? -]{1,70})"|([0-9A-Za-z\'+_./-]{1,70}))', re.IGNORECASE
)
_DISPOSITION = re.compile(rb'form-data; name="([^"\r\n\\]{1,100})"(?:; filename="([^"\r\n\\]{1,250})")?')
_SUFFIXES = {"sdist": ".tar.gz", "bdist_wheel": ".whl"}
_MOST_PARTS = 2000
_SINGLE = ("content", ":action", "name", "version", "filetype", "sha256_digest")
_MOST_SHOWN = 200
_NPM_MEMBERS = frozenset(
    ("_id", "name", "description", "dist-tags", "versions", "access", "_attachments", "readme", "maintainers")
)
_CRATES_PATH = "/api/v1/crates/new"
_SCRIPTS = ("preinstall", "install", "postinstall")


class NotAPackage(ValueError):
    """The error for a request that may publish a package, but not in a form that can be shown.

    The message is a clause that begins with C{it}.
    """


@frozen
class PackageUpload:
    """A package that a request publishes.

    :ivar form: L{NPM}, L{PYPI} or L{CRATES}.
    :ivar file: the name of the archive.
    :ivar content: the archive.
    :ivar details: further facts for people, by their labels.
    :ivar manifest: the data about the package that the request sends besides the archive.
    :ivar same: the digest of the content's normal form, which does not depend on the order of a form's parts, or empty
        if equal commands send equal bytes.
    """

    form: str
    name: str
    version: str
    file: str
    content: bytes = field(repr=False)
    details: Mapping[str, str] = field(factory=dict)
    manifest: Mapping[str, JSON] = field(factory=dict, repr=False)
    same: str = ""

    @property
    def title(self) -> str:
        """The name and the version."""
        return f"{self.name} {self.version}"

    @property
    def is_zip(self) -> bool:
        """True if the archive is a zip file."""
        return self.file.endswith(".whl")

    def to_json(self) -> dict[str, JSON]:
        """Return the package as it is named in the arguments of its run."""
        return {
            "name": self.name,
            "version": self.version,
            "file": self.file,
            "size": len(self.content),
            "digest": digest_of_bytes(self.content),
        }


@frozen
class UploadRequest:
    """A request that may publish a package.

    :ivar target: path and query, as they were sent.
    :ivar headers: the headers as pairs.
    """

    method: str
    target: str
    headers: Sequence[tuple[str, str]]
    body: bytes = field(repr=False)

    def header(self, wanted: str) -> str:
        """Return the value of a header, or an empty text."""
        return next((value for name, value in self.headers if name.lower() == wanted), "")


def read_upload(form: str, request: UploadRequest) -> PackageUpload | None:
    """Return the package that a request publishes, or None if it publishes none.

    :param form: L{NPM}, L{PYPI} or L{CRATES}.
    :raises NotAPackage: if the request may publish a package, but cannot be read in one way only.
    """
    return _READERS[form](request)


# npm -------------------------------------------------------------------------------------------


def _read_npm(request: UploadRequest) -> PackageUpload | None:
    path = request.target[1:]
    if request.method != "PUT" or path.startswith("-/"):
        return None
    # guard of own tools: a publish of npm that is spelled differently is refused
    #    -> connectors.packages.test_uploads.NpmTests.test_spelling, instead if "/" in path and path[:1] != "@"
    if "/" in path.removesuffix("/") and not path.startswith("@"):
        return None
    body = _read_json(request)
    if not isinstance(body, Mapping) or not body.get("_attachments"):
        return None
    # guard of own tools: what a publish does besides is shown, or refused
    #    -> connectors.packages.test_uploads.NpmTests.test_further_members
    if not body.keys() <= _NPM_MEMBERS:
        raise NotAPackage("it has members that npm does not send when it publishes")
    name = unquote(path)
    versions, tags, attached = (_mapping(body, key) for key in ("versions", "dist-tags", "_attachments"))
    # guard of own tools: one request publishes one version
    #    -> connectors.packages.test_uploads.NpmTests.test_second_version
    if len(versions) != 1 or len(attached) != 1 or len(tags) != 1:
        raise NotAPackage("it does not publish exactly one version, in one file, with one tag")
    (version, manifest), (file, attachment), (tag, tagged) = (*versions.items(), *attached.items(), *tags.items())
    if not isinstance(manifest, Mapping) or not isinstance(attachment, Mapping):
        raise NotAPackage("it is no publish of npm")
    names = {name, body.get("name"), body.get("_id"), manifest.get("name")}
    # guard of own tools: what is shown is what is published: all names and versions of a publish agree
    #    -> connectors.packages.test_uploads.NpmTests.test_names
    if names != {name} or {version, manifest.get("version"), tagged} != {version} or file != f"{name}-{version}.tgz":
        raise NotAPackage("it names several packages or versions")
    _check(_NPM_NAME, name)
    _check(_VERSION, version)
    _check(_TAG, tag)
    content = _read_attachment(attachment, manifest)
    access = body.get("access")
    details = {"Tag": tag, "Access": access if isinstance(access, str) else "not given", **_list_scripts(manifest)}
    return PackageUpload(NPM, name, version, file.rpartition("/")[2], content, details, manifest)


def _read_json(request: UploadRequest) -> JSON:
    """Return the body as JSON.

    :raises NotAPackage: if it is not JSON, or could be read in several ways.
    """
    if not request.body:
        return None
    media_type = request.header("content-type").partition(";")[0].strip().lower()
    if media_type != "application/json" or request.header("content-encoding"):
        raise NotAPackage("its content is not of the type application/json")
    try:
        return loads_strict(request.body, most_values=_MOST_VALUES)
    except ValueError:
        raise NotAPackage("its content is no JSON that is read in one way only") from None


def _mapping(body: Mapping[str, JSON], name: str) -> Mapping[str, JSON]:
    found = body.get(name)
    return found if isinstance(found, Mapping) else {}


def _read_attachment(attachment: Mapping[str, JSON], manifest: Mapping[str, JSON]) -> bytes:
    """Return the archive of a publish of npm.

    :raises NotAPackage: if it is not base64, or its length or digest is not the one that the request states.
    """
    data, dist = attachment.get("data"), manifest.get("dist")
    regular = regular_base64(data) if isinstance(data, str) else None
    if regular is None or not isinstance(dist, Mapping):
        raise NotAPackage("its archive is no base64")
    content = base64.b64decode(regular)
    sha1, sha512 = hashlib.sha1(content, usedforsecurity=False).hexdigest(), hashlib.sha512(content).digest()
    integrity = f"sha512-{base64.b64encode(sha512).decode()}"
    # guard of own tools: the archive is the one whose digest the request states
    #    -> connectors.packages.test_uploads.NpmTests.test_digest
    if attachment.get("length") != len(content) or dist.get("shasum") != sha1 or dist.get("integrity") != integrity:
        raise NotAPackage("its archive has another length or digest than it says")
    return content


def _list_scripts(manifest: Mapping[str, JSON]) -> Mapping[str, str]:
    scripts = _mapping(manifest, "scripts")
    run = [f"{name}: {scripts[name]}"[:_MOST_SHOWN] for name in _SCRIPTS if scripts.get(name)]
    return {"Runs when installed": "; ".join(run)} if run else {}


# PyPI ------------------------------------------------------------------------------------------


def _read_pypi(request: UploadRequest) -> PackageUpload | None:
    if request.method != "POST":
        return None
    parts = list(_read_parts(request))
    names = [name for name, _, _ in parts]
    values = {name: content for name, _, content in parts}
    # guard of own tools: one request uploads one file -> connectors.packages.test_uploads.PyPITests.test_twice
    if any(names.count(each) != 1 for each in _SINGLE) or values[":action"] != b"file_upload":
        raise NotAPackage("it does not upload exactly one file, as twine does")
    name, version, kind = (values[each].decode("utf-8", "replace") for each in ("name", "version", "filetype"))
    _check(_NAME, name)
    _check(_VERSION, version)
    files = {key: file for key, file, _ in parts if file is not None}
    file = files.get("content") or ""
    if files.keys() != {"content"}:
        raise NotAPackage("it does not have exactly one file")
    _check(_FILE, file)
    if not file.endswith(_SUFFIXES.get(kind, "/")):
        raise NotAPackage("its file is neither a .tar.gz nor a .whl, as its type says")
    # guard of own tools: the file is named as the version that is published
    #    -> connectors.packages.test_uploads.PyPITests.test_names
    if not _is_named(file, name, version):
        raise NotAPackage("its file is named as another package or version")
    content = values["content"]
    _check_digests(values, content)
    details = {"Type": kind}
    if values.get("requires_python"):
        details["Requires Python"] = _show(values["requires_python"])
    requirements = [_show(each) for key, _, each in parts if key == "requires_dist"]
    manifest: dict[str, JSON] = {"requires_dist": [*requirements]}
    same = digest(sorted([key, given or "", digest_of_bytes(each)] for key, given, each in parts))
    return PackageUpload(PYPI, name, version, file, content, details, manifest, same)


def _show(content: bytes) -> str:
    return content.decode("utf-8", "replace")[:_MOST_SHOWN]


def _is_named(file: str, name: str, version: str) -> bool:
    """Return whether a file is named as this name and version, which tools write in slightly different ways."""
    stem = file.removesuffix(".tar.gz").removesuffix(".whl")
    plain = _plain(stem)
    wanted = f"{_plain(name)}-{_plain(version)}"
    return plain == wanted or (file.endswith(".whl") and plain.startswith(f"{wanted}-"))


def _plain(text: str) -> str:
    return _SEPARATORS.sub("-", text).lower()


def _check_digests(values: Mapping[str, bytes], content: bytes) -> None:
    """Check that the digests of an upload are those of its file.

    :raises NotAPackage: if one is of another file, or there is none.
    """
    found = values.get("sha256_digest", b"").decode("ascii", "replace").lower()
    # guard of own tools: the file is the one whose digest the request states
    #    -> connectors.packages.test_uploads.PyPITests.test_digest
    if found != hashlib.sha256(content).hexdigest():
        raise NotAPackage("its file has another digest than it says")


def _read_parts(request: UploadRequest) -> Iterator[tuple[str, str | None, bytes]]:
    """Yield the parts of a form: the name, the file's name or None, and the content.

    :raises NotAPackage: if the body is no form, or could be read in several ways.
    """
    found = _BOUNDARY.fullmatch(request.header("content-type"))
    if found is None or request.header("content-encoding"):
        raise NotAPackage("its content is not of the type multipart/form-data, as twine sends it")
    mark = b"--" + (found[1] or found[2]).encode("ascii")
    if request.body.count(mark) > _MOST_PARTS:
        raise NotAPackage(f"it has more than {_MOST_PARTS} parts")
    first, *pieces = (b"\r\n" + request.body).split(b"\r\n" + mark)
    # guard of own tools: nothing stands before, between or behind the parts of an upload
    #    -> connectors.packages.test_uploads.PyPITests.test_boundary
    if first or not pieces or pieces.pop() not in (b"--\r\n", b"--"):
        raise NotAPackage("it is no form that is read in one way only")
    for piece in pieces:
        yield _read_part(piece)


def _read_part(piece: bytes) -> tuple[str, str | None, bytes]:
    head, end, content = piece.partition(b"\r\n\r\n")
    lines = head.split(b"\r\n")
    if not end or lines.pop(0) or len(lines) > 4:
        raise NotAPackage("it has a part that is not as twine sends it")
    fields = dict[bytes, bytes]()
    for line in lines:
        key, colon, value = line.partition(b":")
        if not colon or key.lower() in fields or key.lower() not in (b"content-disposition", b"content-type"):
            raise NotAPackage("it has a part that is not as twine sends it")
        fields[key.lower()] = value.strip(b" ")
    found = _DISPOSITION.fullmatch(fields.get(b"content-disposition", b""))
    if found is None or not _PART_NAME.fullmatch(found[1].decode("ascii", "replace")):
        raise NotAPackage("it has a part that is not as twine sends it")
    return found[1].decode("ascii"), None if found[2] is None else found[2].decode("utf-8", "replace"), content


# crates.io -------------------------------------------------------------------------------------


def _read_crates(request: UploadRequest) -> PackageUpload | None:
    path = request.target.partition("?")[0]
    if request.method != "PUT" or unquote(path).removesuffix("/").lower() != _CRATES_PATH:
        return None
    # guard of own tools: a publish of cargo that is spelled differently is refused
    #    -> connectors.packages.test_uploads.CratesTests.test_spelling, instead if path != request.target
    if request.target != _CRATES_PATH:
        raise NotAPackage("its URL has parameters, or is not spelled as cargo does")
    text, rest = _split_by_length(request.body)
    content, rest = _split_by_length(rest)
    # guard of own tools: nothing follows the crate -> connectors.packages.test_uploads.CratesTests.test_lengths
    if rest or request.header("content-encoding"):
        raise NotAPackage("it has data after the crate")
    try:
        manifest = loads_strict(text, most_values=_MOST_VALUES)
    except ValueError:
        raise NotAPackage("its description is no JSON that is read in one way only") from None
    if not isinstance(manifest, Mapping):
        raise NotAPackage("its description is no object")
    name, version = manifest.get("name"), manifest.get("vers")
    if not isinstance(name, str) or not isinstance(version, str):
        raise NotAPackage("it names no crate")
    _check(_NAME, name)
    _check(_VERSION, version)
    return PackageUpload(CRATES, name, version, f"{name}-{version}.crate", content, {}, manifest)


def _split_by_length(data: bytes) -> tuple[bytes, bytes]:
    """Split data that begins with a length in four bytes: return as many bytes as it states, and the rest.

    :raises NotAPackage: if there are fewer.
    """
    end = 4 + int.from_bytes(data[:4], "little")
    if len(data) < 4 or len(data) < end:
        raise NotAPackage("it is cut off")
    return data[4:end], data[end:]


def _check(pattern: re.Pattern[str], text: object) -> None:
    if not isinstance(text, str) or not pattern.fullmatch(text):
        raise NotAPackage("it has a name, version, tag or file name that is no plain text")


_READERS: Mapping[str, Callable[[UploadRequest], PackageUpload | None]] = {
    NPM: _read_npm,
    PYPI: _read_pypi,
    CRATES: _read_crates,
}

PACKAGE_FORMS = tuple(_READERS)
"""The forms in which tools publish packages."""
