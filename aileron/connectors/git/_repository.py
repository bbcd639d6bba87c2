"""Reads objects and refs of a local repository, each object checked against its name.

An agent may write to the repository.  So nothing but objects and refs is read: no configuration, hook, attribute,
replacement, alternate or commit graph, and no file that is a link, a pipe or another user's.
"""

from __future__ import annotations

import os
import re
import stat
import time
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha1
from typing import TYPE_CHECKING, Any, Self, TypeVar

from attrs import define, field, frozen

from aileron.errors import InvalidRequest, ResourceLimitExceeded
from aileron.files import Unreadable, read_file

from ._objects import COMMIT, NAMES, TAG, TREE, TYPES, Commit, is_object_id, parse_commit, parse_tag, parse_tree

if TYPE_CHECKING:
    from dulwich.object_store import DiskObjectStore

_T = TypeVar("_T")
MOST_OBJECT_BYTES = 32 * 1024 * 1024
_REF = re.compile(
    r"(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.))[^\x00-\x20\x7f~^:?*\[\\./-][^\x00-\x20\x7f~^:?*\[\\]*(?<![./])"
)
_MOST_REFS_BYTES = 16 * 1024 * 1024
_MOST_TAGS = 8


@frozen
class Deadline:
    """A moment by which a look at a repository is over."""

    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the moment so many seconds from now."""
        return cls(time.monotonic() + seconds)

    def check(self) -> None:
        """Give up if it is past.

        :raises ResourceLimitExceeded: it is.
        """
        if time.monotonic() > self.at:
            raise ResourceLimitExceeded("The local repository could not be read in time; nothing was changed.")


def is_ref_name(name: str) -> bool:
    """Tell whether git would take this as the name of a branch or tag."""
    return _REF.fullmatch(name) is not None and name.isprintable() and len(name) <= 200


@define
class LocalRepository:
    """An open local repository.

    :ivar directory: the one with its objects and refs.
    """

    directory: str
    deadline: Deadline
    _store: DiskObjectStore
    _commits: dict[str, Commit] = field(factory=dict)

    @classmethod
    def open(cls, path: str, deadline: Deadline) -> Self:
        """Open the repository of a working directory, or a bare one.

        :raises InvalidRequest: there is none, or dulwich is not installed.
        """
        inside = os.path.join(path, ".git")
        directory = inside if os.path.lexists(inside) else path
        for part in (directory, os.path.join(directory, "objects"), os.path.join(directory, "refs")):
            try:
                status = os.lstat(part)
            except OSError:
                raise InvalidRequest(f"There is no git repository in {path}.") from None
            if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid():
                raise InvalidRequest(f"{part} is no directory of yours; name the main repository, not a linked one.")
        return cls(directory, deadline, _packed(os.path.join(directory, "objects")))

    def close(self) -> None:
        """Close its packs."""
        self._store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def has(self, name: str) -> bool:
        """Tell whether an object is there."""
        return os.path.lexists(self._loose_path(name)) or self._asked(self._store.contains_packed, name)

    def read(self, name: str, kind: int | None = None) -> tuple[int, bytes]:
        """Return the type and the content of an object; the content is what the name says.

        :raises InvalidRequest: it is missing, of another type, or not what its name says.
        """
        self.deadline.check()
        found, content = self._loose(name) or self._from_pack(name)
        head = b"%s %d\0" % (NAMES.get(found, b"?"), len(content))
        if sha1(head + content, usedforsecurity=False).hexdigest() != name:
            raise InvalidRequest(f"The object {name} of the local repository is damaged.")
        if kind is not None and found != kind:
            raise InvalidRequest(f"The object {name} is no {NAMES[kind].decode()}.")
        return found, content

    def _loose_path(self, name: str) -> str:
        return os.path.join(self.directory, "objects", name[:2], name[2:])

    def _loose(self, name: str) -> tuple[int, bytes] | None:
        path = self._loose_path(name)
        if not os.path.lexists(path):
            return None
        try:
            raw = read_file(path, MOST_OBJECT_BYTES).data
            inflate = zlib.decompressobj()
            data = inflate.decompress(raw, MOST_OBJECT_BYTES)
            whole = inflate.eof
        except (Unreadable, zlib.error):
            whole = False
        if not whole:
            raise InvalidRequest(f"The object {name} of the local repository is damaged or too large.")
        head, _, content = data.partition(b"\0")
        return TYPES.get(head.partition(b" ")[0], 0), content

    def _from_pack(self, name: str) -> tuple[int, bytes]:
        try:
            return self._asked(self._store.get_raw, name)
        except KeyError:
            raise InvalidRequest(f"The object {name} is not in the local repository.") from None

    def _asked(self, ask: Callable[[Any], _T], name: str) -> _T:
        """Ask the packs of an object.

        :raises KeyError: it is in none.
        """
        try:
            return ask(name.encode())
        except KeyError:
            raise
        except Exception as error:  # noqa: BLE001 - whatever a damaged pack makes of its reader
            raise InvalidRequest(f"A pack of the local repository is damaged ({type(error).__name__}).") from None

    def commit(self, name: str) -> Commit:
        """Return a commit."""
        if name not in self._commits:
            self._commits[name] = parse_commit(name, self.read(name, COMMIT)[1])
        return self._commits[name]

    def tree(self, name: str) -> dict[bytes, tuple[int, str]]:
        """Return the entries of a tree: by name their mode and id."""
        return parse_tree(name, self.read(name, TREE)[1])

    def peel(self, name: str) -> Commit:
        """Return the commit that an object is, or that a tag leads to."""
        for _ in range(_MOST_TAGS):
            kind, content = self.read(name)
            if kind != TAG:
                break
            name = parse_tag(name, content)
        return self.commit(name)

    def resolve(self, revision: str) -> str:
        """Find the object that C{revision} names: an id in full, a local branch, a tag or C{HEAD}.

        :raises InvalidRequest: it names none.
        """
        if is_object_id(revision):
            return revision
        if revision == "HEAD":
            head = self._ref_file("HEAD")
            target = head.removeprefix("ref: ")
            return target if is_object_id(target) else self._ref(target) or self._unknown(revision)
        if is_ref_name(revision):
            for place in ("refs/heads/", "refs/tags/", "refs/remotes/"):
                found = self._ref(place + revision)
                if found is not None:
                    return found
        return self._unknown(revision)

    def _unknown(self, revision: str) -> str:
        raise InvalidRequest(
            f"The local repository has no branch, tag or commit {revision!r}; give a commit's id in full."
        )

    def _ref(self, ref: str) -> str | None:
        found = self._ref_file(ref)
        if is_object_id(found):
            return found
        for line in self._ref_file("packed-refs", _MOST_REFS_BYTES).splitlines():
            name, _, place = line.partition(" ")
            if place == ref and is_object_id(name):
                return name
        return None

    def _ref_file(self, place: str, most: int = 1024) -> str:
        path = os.path.join(self.directory, place)
        if not place.startswith("refs/") and place not in ("HEAD", "packed-refs"):
            return ""
        try:
            return read_file(path, most).data.decode("utf-8", "replace").strip() if os.path.lexists(path) else ""
        except Unreadable:
            return ""


def _packed(objects: str) -> DiskObjectStore:
    """Open the packs in a directory of objects; anything but plain files of ours among them is refused."""
    try:
        from dulwich.object_store import DiskObjectStore
    except ImportError:
        raise InvalidRequest("Git connectors need dulwich. Install Aileron with its extra named git.") from None

    class Packs(DiskObjectStore):
        """The packs alone, without what would lead elsewhere."""

        @property
        def alternates(self) -> list[object]:  # type: ignore[override]
            """Lead to no other repository."""
            return []

        def get_midx(self) -> None:
            """Use no index over several packs."""

        def _get_loose_object(self, sha: object) -> None:
            """Read loose objects elsewhere, within bounds."""

    for entry in _scan(os.path.join(objects, "pack")):
        if not entry.is_file(follow_symlinks=False) or entry.stat(follow_symlinks=False).st_uid != os.geteuid():
            raise InvalidRequest(f"{entry.path} is no plain file of yours; the repository is not read.")
    return Packs(objects)


def _scan(directory: str) -> Iterator[os.DirEntry[str]]:
    try:
        with os.scandir(directory) as entries:
            yield from entries
    except FileNotFoundError:
        return
