"""Fetches a package from its source: a directory, an archive, or a tag of a Git repository."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from pathlib import Path

from attrs import field, frozen

from aileron.addresses import read_base_url
from aileron.connectors import RemoteRepository
from aileron.errors import InvalidRequest
from aileron.files import Unreadable, read_file
from aileron.values import SEMVER

from ._files import MOST_ARCHIVE_BYTES, FileSet, read_archive, read_directory
from ._package import MANIFEST, Package, read_package

_PATH, _VERSION = r"[\w.-]+(?:/[\w.-]+)*", r"(?:@(?P<version>[\w.+-]{1,100}))?"
_GITHUB = re.compile(rf"github://(?P<repository>[\w.-]+/[\w.-]+)(?:/(?P<path>{_PATH}))?{_VERSION}", re.ASCII)
_GIT = re.compile(rf"(?P<url>(?:https?|ssh)://[^/]+(?:/[\w.~-]+)+)(?://(?P<path>{_PATH}))?{_VERSION}", re.ASCII)
_ARCHIVE = re.compile(r"(.+?)(?:\.zip|\.tar|\.tar\.gz|\.tgz)")
_RELEASE = re.compile(rf"v?({SEMVER})")
_SIGNATURE, _PUBLIC_KEY = ".minisig", "minisign.pub"


@frozen
class Source:
    """A source.

    :ivar text: as it is recorded, without a version.
    :ivar url: of a Git repository; empty: it is on this machine.
    :ivar path: the directory in the repository, or the path on this machine.
    :ivar version: the tag that was asked for; empty: the newest.
    """

    text: str
    url: str
    path: str
    version: str


@frozen
class Fetched:
    """A package that was fetched, and what was signed of it.

    :ivar commit: the id of the commit; empty: it did not come from Git.
    :ivar signed: the bytes that the signature is for.
    :ivar signature: empty: it is not signed.
    :ivar offered_key: the publisher's key, as the package itself says.
    """

    source: Source
    package: Package
    commit: str
    signed: bytes = field(repr=False)
    signature: str
    offered_key: str


Connect = Callable[[Source], RemoteRepository]


def read_source(text: str, github: str) -> Source:
    """Read a source as people write it.

    :param github: what C{github://} stands for.
    :raises InvalidRequest: it is none.
    """
    if found := _GITHUB.fullmatch(text):
        url = f"{github.rstrip('/')}/{found['repository'].removesuffix('.git')}.git"
    elif found := _GIT.fullmatch(text):
        url = found["url"]
    elif "://" in text:
        raise InvalidRequest(f"{text} is no source, such as github://owner/repo/path@1.0.0. Nothing was installed.")
    else:
        path = str(Path(text).expanduser().absolute())
        return Source(path, "", path, "")
    try:
        read_base_url(url, ssh=True)
    except ValueError as error:
        raise InvalidRequest(f"The URL of a package {error}.") from None
    version = found["version"] or ""
    return Source(text.removesuffix(f"@{version}"), url, found["path"] or "", version)


async def fetch(source: Source, connect: Connect) -> Fetched:
    """Fetch a package into memory.

    :raises AileronError: there is none, or it is not read.
    """
    name = Path(source.path or source.url.removesuffix(".git")).name
    if source.url:
        repository = connect(source)
        tags = await repository.tags()
        tag = _choose(tags, source)
        found, files = await repository.fetch(tags[tag], source.path), FileSet()
        for path, data in found.files:
            files.add(path, data)
        return _read(source, files.files, name=name, tag=tag.removeprefix("v"), commit=found.commit)
    if Path(source.path).is_dir():
        return _read(source, read_directory(Path(source.path)), name=name)
    if (archive := _ARCHIVE.fullmatch(name)) is None:
        raise InvalidRequest(f"{source.path} is no directory and no .zip, .tar or .tar.gz.")
    data = _read_file(source.path)
    signature = _read_file(source.path + _SIGNATURE) if Path(source.path + _SIGNATURE).exists() else b""
    return _read(source, read_archive(name, data), name=archive[1], signed=data, signature=signature)


def version_key(version: str) -> tuple[object, ...]:
    """Return what versions are ordered by (Semantic Versioning 2.0.0, 11)."""
    numbers, _, before = version.partition("+")[0].partition("-")
    labels = [(0, int(each), "") if each.isdecimal() else (1, 0, each) for each in before.split(".")]
    return [int(each) for each in numbers.split(".")], not before, labels


def _choose(tags: Collection[str], source: Source) -> str:
    """Choose the tag of a version, or the newest release."""
    versions = {found[1]: tag for tag in sorted(tags) if (found := _RELEASE.fullmatch(tag))}
    releases = sorted((each for each in versions if "-" not in each), key=version_key)
    for tag in (source.version, f"v{source.version}") if source.version else [versions[each] for each in releases[-1:]]:
        if tag in tags:
            return tag
    what = f"tag {source.version}" if source.version else "tag with a version, such as 1.0.0"
    raise InvalidRequest(f"{source.text} has no {what}. Nothing was installed.")


def _read(
    source: Source,
    files: Mapping[str, bytes],
    *,
    name: str,
    tag: str = "",
    commit: str = "",
    signed: bytes = b"",
    signature: bytes = b"",
) -> Fetched:
    package = read_package(files, name, tag if _RELEASE.fullmatch(tag) else "")
    if _RELEASE.fullmatch(tag) and package.version != tag:
        raise InvalidRequest(f"The tag {tag} has version {package.version} of {package.name}. Nothing was installed.")
    if not signature:
        signed, signature = package.manifest, files.get(MANIFEST + _SIGNATURE, b"")
    texts = (each.decode("utf-8", "replace") for each in (signature, files.get(_PUBLIC_KEY, b"")))
    return Fetched(source, package, commit, signed, *texts)


def _read_file(path: str) -> bytes:
    try:
        data = read_file(path, MOST_ARCHIVE_BYTES).data
    except Unreadable as error:
        raise InvalidRequest(f"{error.path} is refused: {error.problem}.") from None
    if len(data) > MOST_ARCHIVE_BYTES:
        raise InvalidRequest(f"{path} has more than {MOST_ARCHIVE_BYTES} bytes.")
    return data
