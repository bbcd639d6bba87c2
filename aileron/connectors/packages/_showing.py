"""Shows a package before it is published: its files, and how they differ from the last published version."""

from __future__ import annotations

import posixpath
import re
import time
from collections.abc import Iterator, Mapping, Sequence

from attrs import frozen

from aileron.base.json import JSON, loads_strict
from aileron.base.text import visible
from aileron.connectors._patch import Patch

from ._archives import PackageFile, RefusedArchive, find_odd_names, read_archive
from ._published import NotFetched, PackageRegistry, PublishedPackage
from ._uploads import NPM, PackageUpload

_MOST_LISTED = 1000
_MOST_DIFFERENCES = 2000
_MOST_VALUES = 20_000
_MOST_TOPS = 10
_DIST_INFO = re.compile(r"[^/]+(\.dist-info|\.data)/")
_COMPARED = ("scripts", "bin", "dependencies", "bundleDependencies", "optionalDependencies", "peerDependencies")
_ADDED = ("scripts", "install", "node-gyp rebuild")  # if there is a binding.gyp
_NO_FILES = "The files cannot be shown: {}. You see what the registry is told only."


class TooSlow(Exception):
    """The error for a package that is not read in time."""


@frozen
class PackageShower:
    """Shows one package that a tool publishes.

    :ivar registry: finds the last published version.
    :ivar ends_at: the time by which archives must be read, in seconds of the monotonic clock.
    """

    upload: PackageUpload
    registry: PackageRegistry
    ends_at: float

    async def show(self) -> dict[str, JSON]:
        """Return the description of the package for the review. C{warning} says what is odd or cannot be shown."""
        upload = self.upload
        shown: dict[str, JSON] = {"package": upload.title, "details": _describe(upload)}
        in_thread = self.registry.in_thread
        try:
            members: tuple[PackageFile, ...] = await in_thread(self._read, upload.content, upload.is_zip)
        except (RefusedArchive, TooSlow) as error:
            # guard of own tools: the review says why it shows no files
            #    -> connectors.packages.test_showing.ShowingTests.test_unreadable
            return {**shown, "warning": _NO_FILES.format(error)}
        warnings = [*find_odd_names(members), *_find_disagreements(upload, members)]
        try:
            last = await self.registry.find_last(upload)
            compared = await in_thread(self._compare, members, last)
        except (NotFetched, RefusedArchive, TooSlow) as error:
            compared = {"compared_with": f"Not compared with a published version: {error}."}
        return {**shown, "warning": "\n".join(warnings) or None, "files": _list_files(members), **compared}

    def _read(self, content: bytes, is_zip: bool) -> tuple[PackageFile, ...]:
        return read_archive(content, is_zip=is_zip, check=self._check)

    def _check(self) -> None:
        if time.monotonic() > self.ends_at:
            raise TooSlow("reading the archive takes too long")

    def _compare(self, members: tuple[PackageFile, ...], last: PublishedPackage | None) -> dict[str, JSON]:
        if last is None:
            return {"compared_with": "No version of this package was published yet under this tag or type."}
        is_zip = self.upload.is_zip
        before = {_shorten(each.name, is_zip=is_zip): each for each in self._read(last.content, is_zip)}
        after = {_shorten(each.name, is_zip=is_zip): each for each in members}
        patch = Patch()
        changed = sorted(name for name in before.keys() | after.keys() if not _same(before.get(name), after.get(name)))
        for name in changed[:_MOST_DIFFERENCES]:
            self._check()
            _write_difference(patch, name, before.get(name), after.get(name))
        more = len(changed) - _MOST_DIFFERENCES
        summary = patch.summary() + (f"\nand {more} more files" if more > 0 else "")
        return {
            "compared_with": last.version,
            "changes": summary if changed else "All files are the same.",
            "patch": patch.text or None,
        }


def _describe(upload: PackageUpload) -> str:
    told = upload.to_json()
    facts = {**upload.details, "Archive": f"{upload.file}, {told['size']} bytes", "Digest": told["digest"]}
    return "\n".join(f"{label}: {visible(str(text))}" for label, text in facts.items())


def _list_files(members: tuple[PackageFile, ...]) -> str:
    lines = [visible(f"{each.name} ({each.link or f'{each.size} bytes'})") for each in members[:_MOST_LISTED]]
    more = len(members) - _MOST_LISTED
    total = sum(each.size for each in members)
    return "\n".join(
        (*lines, *([f"and {more} more files"] if more > 0 else []), f"{len(members)} files, {total} bytes")
    )


def _shorten(name: str, *, is_zip: bool) -> str:
    """Return the path of a file in the package, without the part that has the version in it."""
    if is_zip:
        found = _DIST_INFO.match(name)
        return f"{found[1]}/{name[found.end() :]}" if found else name
    return name.partition("/")[2] or name


def _same(old: PackageFile | None, new: PackageFile | None) -> bool:
    return old is not None and new is not None and (old.digest, old.link) == (new.digest, new.link)


def _write_difference(patch: Patch, name: str, old: PackageFile | None, new: PackageFile | None) -> None:
    path = visible(name)
    head = "new file\n" if old is None else "deleted file\n" if new is None else ""
    links = [each.link for each in (old, new) if each is not None and each.link]
    unshown = [each for each in (old, new) if each is not None and each.text is None and not each.link]
    if links or unshown:
        sizes = " and ".join(
            f"{'nothing' if each is None else each.link or f'{each.size} bytes'} {when}"
            for each, when in ((old, "before"), (new, "after"))
        )
        patch.add(f"diff {path}\n{head}Not shown as text: {visible(sizes)}\n")
        patch.count(path, 0, 0)
        return
    patch.add_file(path, head, None if old is None else old.text, None if new is None else new.text)


def _find_disagreements(upload: PackageUpload, members: tuple[PackageFile, ...]) -> Iterator[str]:
    """Yield a sentence for each difference between the archive and the data that the request sends with it."""
    if upload.form != NPM:
        # guard of own tools: an archive of another version is reported
        #    -> connectors.packages.test_showing.ShowingTests.test_other_top
        tops = {each.name.partition("/")[0] for each in members}
        stem = upload.file.removesuffix(".crate").removesuffix(".tar.gz")
        if not upload.is_zip and tops != {stem}:
            yield f"Not all files of the archive are in {stem}, which its name promises."
        return
    roots = sorted({each.name.partition("/")[0] for each in members})
    # guard of own tools: files that npm unpacks to one place are reported
    #    -> connectors.packages.test_showing.ShowingTests.test_several_tops
    if len(roots) > 1:
        named = ", ".join(visible(each[:200]) for each in roots[:_MOST_TOPS])
        yield f"npm removes the first directory of each name, and the archive has several of them: {named}."
    found = [each.text for each in members if _shorten(each.name, is_zip=False) == "package.json"]
    try:
        own = loads_strict(found[-1] or b"", most_values=_MOST_VALUES) if found else None
    except ValueError:
        own = None
    if not isinstance(own, Mapping):
        yield "The archive has no package.json that can be read."
        return
    # guard of own tools: a package.json of another package or version is reported
    #    -> connectors.packages.test_showing.ShowingTests.test_manifest
    if (own.get("name"), own.get("version")) != (upload.name, upload.version):
        named = " ".join(visible(str(own.get(each))[:200]) for each in ("name", "version"))
        yield f"package.json in the archive is of {named}."
    differing = [name for name in _COMPARED if _plain(own, name) != _plain(upload.manifest, name)]
    if differing:
        yield f"The registry is told something else than package.json in the archive has: {', '.join(differing)}."


def _plain(manifest: Mapping[str, JSON], name: str) -> JSON:
    """Return a part of a manifest of npm, without what npm adds to it when it publishes."""
    if name == "bin":
        return _plain_commands(manifest)
    if name == "bundleDependencies":
        return _plain_bundle(manifest)
    found, optional = manifest.get(name), manifest.get("optionalDependencies")
    if not isinstance(found, Mapping):
        return found or {}
    if name == "dependencies" and isinstance(optional, Mapping):
        return {key: value for key, value in found.items() if key not in optional}
    return {key: value for key, value in found.items() if (name, key, value) != _ADDED}


def _plain_commands(manifest: Mapping[str, JSON]) -> JSON:
    """Return the commands that a package of npm installs, by name, as npm writes them when it publishes."""
    found = manifest.get("bin")
    if isinstance(found, str):
        found = {str(manifest.get("name")): found} if found else {}
    if not isinstance(found, Mapping):
        return found or {}
    return {
        posixpath.basename(name): posixpath.normpath(f"/{path}").lstrip("/") if isinstance(path, str) else path
        for name, path in found.items()
    }


def _plain_bundle(manifest: Mapping[str, JSON]) -> JSON:
    """Return the names of the dependencies that a package of npm has within itself, under either of the two keys."""
    found = manifest.get("bundleDependencies", manifest.get("bundledDependencies"))
    if found is True:
        found = [*dependencies] if isinstance(dependencies := manifest.get("dependencies"), Mapping) else []
    return sorted(map(str, found)) if isinstance(found, Sequence) and not isinstance(found, str) else found or []
