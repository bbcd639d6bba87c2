"""Finds the version of a package that was published last, and fetches its archive from the registry."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from attrs import field, frozen

from aileron.base.json import JSON, loads_strict

from ._uploads import CRATES, NPM, PackageUpload

MOST_ANSWER_BYTES = 16 * 1024 * 1024
"""The longest answer of a registry that is read."""

_MOST_VALUES = 500_000
_FOUND, _NOT_FOUND = 200, 404
_JSON = "application/json"
_PLACES: Mapping[str, tuple[str, str]] = {
    "https://crates.io": ("https://crates.io", "https://static.crates.io"),
    "https://upload.pypi.org": ("https://pypi.org", "https://files.pythonhosted.org"),
    "https://test.pypi.org": ("https://test.pypi.org", "https://test-files.pythonhosted.org"),
}
"""The origin of the index and that of the archives, by the origin to which packages are uploaded."""


class NotFetched(Exception):
    """The error for a published version that cannot be fetched. The message is a clause."""


@frozen
class FetchedAnswer:
    """The answer of a registry."""

    status: int
    body: bytes = field(repr=False)


Fetch = Callable[[str, str], Awaitable[FetchedAnswer]]
"""Sends a C{GET} to a URL with an C{Accept} header.

:raises NotFetched: if the connector does not declare the host, or there is no answer.
"""


@frozen
class PublishedPackage:
    """A published version.

    :ivar content: its archive.
    """

    version: str
    file: str
    content: bytes = field(repr=False)


@frozen
class PackageRegistry:
    """A registry in which the last published version of a package is looked up.

    :ivar origin: the origin to which packages are uploaded, such as C{https://registry.npmjs.org}.
    :ivar in_thread: calls a function with arguments in another thread.
    """

    origin: str
    fetch: Fetch
    in_thread: Callable[..., Awaitable[Any]]

    async def find_last(self, upload: PackageUpload) -> PublishedPackage | None:
        """Return the version that was published last, or None if there is none.

        :raises NotFetched: if it cannot be found or fetched.
        """
        if upload.form == NPM:
            found = await self._find_npm(upload)
        else:
            index, files = _PLACES.get(self.origin, ("", ""))
            if not index:
                raise NotFetched(f"how versions are found at {self.origin} is not known")
            finder = self._find_crate if upload.form == CRATES else self._find_project
            found = await finder(upload, index, files)
        if found is None:
            return None
        version, url = found
        archive = await self.fetch(url, "*/*")
        if archive.status != _FOUND:
            raise NotFetched(f"the archive of version {version} was answered with status {archive.status}")
        return PublishedPackage(version, url.rpartition("/")[2], archive.body)

    async def _find_npm(self, upload: PackageUpload) -> tuple[str, str] | None:
        """Return the version that has the tag, or else C{latest}, and the URL of its archive."""
        place = f"{self.origin}/{quote(upload.name, safe='@')}"
        for tag in dict.fromkeys((upload.details["Tag"], "latest")):
            found = await self._fetch_json(f"{place}/{quote(tag, safe='')}")
            if found is not None:
                version, url = _look_up(found, "version"), _look_up(found, "dist", "tarball")
                return self._check_version(version, url, self.origin)
        return None

    async def _find_crate(self, upload: PackageUpload, index: str, files: str) -> tuple[str, str] | None:
        found = await self._fetch_json(f"{index}/api/v1/crates/{upload.name}")
        if found is None:
            return None
        version = _look_up(found, "crate", "newest_version")
        path = f"/crates/{upload.name}/{upload.name}-{version}.crate"
        return self._check_version(version, f"{files}{quote(path)}", files)

    async def _find_project(self, upload: PackageUpload, index: str, files: str) -> tuple[str, str] | None:
        found = await self._fetch_json(f"{index}/pypi/{upload.name}/json")
        if found is None:
            return None
        suffix = ".whl" if upload.is_zip else ".tar.gz"
        candidates = [each for each in _list_files(found) if each[1] != upload.version and each[2].endswith(suffix)]
        if not candidates:
            return None
        _, version, url = max(candidates)
        return self._check_version(version, url, files)

    async def _fetch_json(self, url: str) -> JSON:
        """Return the JSON object at a URL, or None if there is none.

        :raises NotFetched: if the registry returns another status than 200 or 404, or no JSON object.
        """
        answer = await self.fetch(url, _JSON)
        if answer.status == _NOT_FOUND:
            return None
        if answer.status != _FOUND:
            raise NotFetched(f"the registry answered with status {answer.status}")
        try:
            found = await self.in_thread(lambda: loads_strict(answer.body, most_values=_MOST_VALUES))
        except ValueError:
            found = None
        if not isinstance(found, Mapping):
            raise NotFetched("the registry's answer cannot be read")
        return found

    def _check_version(self, version: JSON, url: JSON, origin: str) -> tuple[str, str]:
        """Return the version and the URL of its archive.

        :raises NotFetched: if one of them is not text, or the archive is at another host.
        """
        if not isinstance(version, str) or not isinstance(url, str):
            raise NotFetched("the registry's answer cannot be read")
        # guard of own tools: a registry's answer leads to no other host
        #    -> connectors.packages.test_showing.PublishedTests.test_other_host
        if not url.startswith(f"{origin}/"):
            raise NotFetched("its archive is at another host")
        return version[:100], url


def _look_up(found: JSON, *names: str) -> JSON:
    for name in names:
        found = found.get(name) if isinstance(found, Mapping) else None
    return found


def _list_files(found: JSON) -> Iterator[tuple[str, str, str]]:
    """Yield the files of a project at PyPI, as the time of the upload, the version and the URL."""
    releases = _look_up(found, "releases")
    for version, files in releases.items() if isinstance(releases, Mapping) else ():
        for each in files if isinstance(files, list) else ():
            uploaded, url = _look_up(each, "upload_time_iso_8601"), _look_up(each, "url")
            if isinstance(uploaded, str) and isinstance(url, str):
                yield uploaded, version, url
