"""Fetches a package from its source: a directory, an archive, or a tag of a Git repository."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from pathlib import Path

from attrs import frozen

from aileron.base.addresses import read_base_url
from aileron.connectors import RemoteRepository
from aileron.model.errors import InvalidRequest

from ._files import MOST_ARCHIVE_BYTES, FileSet, read_archive, read_directory, read_local
from ._minisign import read_key, verify
from ._package import MANIFEST, VERSION, Package, read_package

_PATH, _VERSION = r"[\w.-]+(?:/[\w.-]+)*", rf"(?:@v?(?P<version>{VERSION}))?"
_GITHUB = re.compile(rf"github://(?P<repository>[\w.-]+/[\w.-]+)(?:/(?P<path>{_PATH}))?{_VERSION}", re.ASCII)
_GIT = re.compile(rf"(?P<url>(?:https?|ssh)://[^/]+(?:/[\w.~-]+)+)(?://(?P<path>{_PATH}))?{_VERSION}", re.ASCII)
_ARCHIVE = re.compile(r"(.+?)(?:\.zip|\.tar|\.tar\.gz|\.tgz)")
_RELEASE = re.compile(rf"v?({VERSION})")


@frozen
class Source:
    """A source of a package.

    :ivar text: the source as it is recorded, without a version.
    :ivar url: the URL of a Git repository; empty for a local source.
    :ivar path: the directory in the repository, or the local path.
    :ivar version: the requested version; empty for the newest.
    """

    text: str
    url: str
    path: str
    version: str


@frozen
class Fetched:
    """A fetched package with its origin.

    :ivar commit: the id of the commit; empty if the package did not come from Git.
    :ivar publisher: the key that signed the package; empty if it is not signed.
    """

    source: Source
    package: Package
    commit: str
    publisher: str


def read_source(text: str, github: str) -> Source:
    """Parse the place of a package as the user writes it: C{github://owner/repo@version}, a URL of git or a path.

    :param github: the URL that replaces C{github://}.
    :raises InvalidRequest: if the source is malformed.
    """
    if found := _GITHUB.fullmatch(text):
        url = f"{github.rstrip('/')}/{found['repository'].removesuffix('.git')}.git"
    elif found := _GIT.fullmatch(text):
        url = found["url"]
    elif "://" in text:
        raise InvalidRequest(f"{text} is not a source such as github://owner/repo/path@1.0.0. Nothing was installed.")
    else:
        path = str(Path(text).expanduser().absolute())
        return Source(path, "", path, "")
    try:
        read_base_url(url, ssh=True)
    except ValueError as error:
        raise InvalidRequest(f"The URL of a package {error}.") from None
    version = found["version"] or ""
    return Source(text.rpartition("@")[0] if version else text, url, found["path"] or "", version)


async def fetch(source: Source, repository: RemoteRepository | None, keys: Collection[str]) -> Fetched:
    """Fetch a package into memory and verify its signature, if it has one.

    :param repository: the source's repository, or None for a local source.
    :param keys: the publishers' keys that the operator knows. A key inside the package is accepted too.
    :raises AileronError: if the package is missing or invalid, or its signature is wrong.
    """
    name = Path(source.path or source.url.removesuffix(".git")).name
    version, commit = "", ""
    if repository is not None:
        found = FileSet()
        version, at = _choose(await repository.tags(), source)
        commit, fetched = await repository.fetch(at, source.path)
        for path, data in fetched.items():
            found.add(path, data)
        files: Mapping[str, bytes] = found.files
    elif Path(source.path).is_dir():
        files = read_directory(Path(source.path))
    elif archive := _ARCHIVE.fullmatch(name):
        files, name = read_archive(name, read_local(source.path, MOST_ARCHIVE_BYTES)), archive[1]
    else:
        raise InvalidRequest(f"{source.path} is not a directory, .zip, .tar or .tar.gz file.")
    package = read_package(files, name, version)
    if version and package.version != version:
        raise InvalidRequest(
            f"The tag of version {version} has version {package.version} of {package.name}. Nothing was installed."
        )
    return Fetched(source, package, commit, _find_signer(files, keys))


def _find_signer(files: Mapping[str, bytes], keys: Collection[str]) -> str:
    signature = files.get(MANIFEST + ".minisig")
    if signature is None:
        return ""
    if MANIFEST not in files:
        raise InvalidRequest(f"The package has a signature, but no {MANIFEST}. Nothing was installed.")
    offered = files.get("minisign.pub", b"").decode("utf-8", "replace")
    every_key = [*keys, *([read_key(offered)] if offered else [])]
    return verify(files[MANIFEST], signature.decode("utf-8", "replace"), every_key)


def version_key(version: str) -> tuple[object, ...]:
    """Return the sort key of a version, by the precedence of Semantic Versioning 2.0.0, section 11."""
    numbers, _, before = version.partition("+")[0].partition("-")
    labels = [(0, int(each), "") if each.isdecimal() else (1, 0, each) for each in before.split(".")]
    return [int(each) for each in numbers.split(".")], not before, labels


def _choose(tags: Mapping[str, str], source: Source) -> tuple[str, str]:
    """Return the requested version, or else the newest release, and the object to which its tag points.

    :raises InvalidRequest: if there is no such version.
    """
    versions = {found[1]: at for tag, at in sorted(tags.items()) if (found := _RELEASE.fullmatch(tag))}
    releases = (each for each in versions if "-" not in each.partition("+")[0])
    version = source.version or max(releases, key=version_key, default="")
    if version not in versions:
        what = f"tag of version {version}" if version else "tag with a version, such as 1.0.0"
        raise InvalidRequest(f"{source.text} has no {what}. Nothing was installed.")
    return version, versions[version]
