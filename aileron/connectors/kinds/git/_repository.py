"""Reads objects and refs of a local repository, and checks each object against its id.

An agent may write to the repository. So only objects and refs are read: no configuration, hook, attribute, replacement,
alternate or commit graph, and no file that is a link, a pipe or another user's.
"""

from __future__ import annotations

import os
import re
import time
import zlib
from contextlib import ExitStack
from typing import Self

from attrs import define, field, frozen

from aileron.base.files import Unreadable, is_there, open_directory, read_file
from aileron.model.errors import InvalidRequest, ResourceLimitExceeded

from ._objects import (
    COMMIT,
    MOST_OBJECT_BYTES,
    NAMES,
    TAG,
    TREE,
    TYPES,
    Commit,
    check_size,
    is_object_id,
    name_object,
    parse_commit,
    parse_tag,
    parse_tree,
    show_message,
)
from ._packs import Packs

_REF = re.compile(
    r"(?!.*(?:\.\.|//|@\{|\.lock(?:/|$)|/\.))[^\x00-\x20\x7f~^:?*\[\\./-][^\x00-\x20\x7f~^:?*\[\\]*(?<![./])"
)
_MOST_REFS_BYTES = 16 * 1024 * 1024
MOST_TAGS = 8
_MOST_HEAD_BYTES = 64


@frozen
class Deadline:
    """The time by which reading a repository must end.

    :ivar at: the deadline, in seconds of the monotonic clock.
    """

    at: float

    @classmethod
    def after(cls, seconds: float) -> Self:
        """Return the deadline that is C{seconds} from now."""
        return cls(time.monotonic() + seconds)

    def left(self) -> float:
        """Return the seconds until the deadline, at least 0."""
        return max(0.0, self.at - time.monotonic())

    def check(self) -> None:
        """Check that the deadline has not passed.

        :raises ResourceLimitExceeded: if the deadline has passed.
        """
        if time.monotonic() > self.at:
            raise ResourceLimitExceeded("The repository could not be read in time; nothing was changed.")


def is_ref_name(name: str) -> bool:
    """Return True if C{name} is valid as the name of a branch or tag."""
    return _REF.fullmatch(name) is not None and name.isprintable() and len(name) <= 200


@define
class GitObjects:
    """Objects that are read by their ids. Each is checked against its id."""

    deadline: Deadline
    _commits: dict[str, Commit] = field(factory=dict, init=False)

    def has(self, name: str) -> bool:
        """Return True if the repository has the object.

        :raises ResourceLimitExceeded: if the deadline has passed.
        :raises InvalidRequest: if the index of a pack is damaged.
        """
        raise NotImplementedError

    def read(self, name: str, kind: int | None = None) -> tuple[int, bytes]:
        """Return the type and content of an object. The content is checked against the object's id.

        :param kind: the required type, or None for any type.
        :raises InvalidRequest: if the object is missing, damaged, too large or of another type.
        :raises ResourceLimitExceeded: if the deadline has passed.
        """
        raise NotImplementedError

    def commit(self, name: str) -> Commit:
        """Return the commit with an id. Parsed commits are cached.

        :raises InvalidRequest: if the commit is missing or malformed, or the object is not a commit.
        :raises ResourceLimitExceeded: if the deadline has passed.
        """
        if name not in self._commits:
            self._commits[name] = parse_commit(name, self.read(name, COMMIT)[1])
        return self._commits[name]

    def message(self, name: str) -> str:
        """Return the message of a commit, cut if it is long. The message is not cached.

        :raises InvalidRequest: if the commit is missing, damaged or too large, or the object is not a commit.
        :raises ResourceLimitExceeded: if the deadline has passed.
        """
        return show_message(self.read(name, COMMIT)[1])

    def tree(self, name: str) -> dict[bytes, tuple[int, str]]:
        """Return the mode and id of each entry of a tree, by the entry's name.

        :raises InvalidRequest: if the tree is missing or malformed, or the object is not a tree.
        :raises ResourceLimitExceeded: if the deadline has passed.
        """
        return parse_tree(name, self.read(name, TREE)[1])

    def peel(self, name: str) -> Commit:
        """Return the commit with an id, or the commit that a tag with this id points to.

        :raises InvalidRequest: if the object is missing or malformed, or does not point to a commit.
        :raises ResourceLimitExceeded: if the deadline has passed.
        """
        for _ in range(MOST_TAGS):
            kind, content = self.read(name)
            if kind != TAG:
                break
            name = parse_tag(name, content)
        return self.commit(name)


@define
class LocalRepository(GitObjects):
    """An open local repository."""

    _directory: int
    _objects: int
    _packs: Packs
    _opened: ExitStack

    @classmethod
    def open(cls, path: str, deadline: Deadline) -> Self:
        """Open the repository of a working directory, or a bare repository.

        :raises InvalidRequest: if there is no repository, or it cannot be read, belongs to another user or has damaged
            packs.
        """
        with ExitStack() as opened:
            here = _open_directory(opened, path)
            if _is_there(".git", here):
                path = os.path.join(path, ".git")
                here = _open_directory(opened, path, here)
            objects, _ = (_open_directory(opened, os.path.join(path, part), here) for part in ("objects", "refs"))
            packs = Packs.open(objects, deadline.check)
            opened.callback(packs.close)
            return cls(deadline, here, objects, packs, opened.pop_all())

    def close(self) -> None:
        """Close the open files of the repository."""
        self._opened.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def has(self, name: str) -> bool:
        self.deadline.check()
        return is_object_id(name) and (_is_there(_loose(name), self._objects) or self._packs.has(name))

    def read(self, name: str, kind: int | None = None) -> tuple[int, bytes]:
        self.deadline.check()
        if not is_object_id(name):
            raise InvalidRequest("An object of the local repository leads to what is no object.")
        read = self._read_loose(name) if _is_there(_loose(name), self._objects) else self._packs.read(name)
        if read is None:
            raise InvalidRequest(f"The object {name} is not in the local repository.")
        found, content = read
        check_size(found, len(content))
        if name_object(found, content) != name:
            raise InvalidRequest(f"The object {name} of the local repository is damaged.")
        if kind is not None and found != kind:
            raise InvalidRequest(f"The object {name} is no {NAMES[kind].decode()}.")
        return read

    def _read_loose(self, name: str) -> tuple[int, bytes]:
        try:
            raw = read_file(_loose(name), MOST_OBJECT_BYTES, self._objects).data
            inflate = zlib.decompressobj()
            head, _, content = inflate.decompress(raw, _MOST_HEAD_BYTES).partition(b"\0")
            kind, size = head.split(b" ")
            found, left = TYPES[kind], int(size) - len(content)
            check_size(found, int(size))
            content += inflate.decompress(inflate.unconsumed_tail, max(left, 0) + 1)
            whole = inflate.eof
        except (Unreadable, ValueError, KeyError, zlib.error):
            whole = False
        if not whole:
            raise InvalidRequest(f"The object {name} of the local repository is damaged or too large.")
        return found, content

    def resolve(self, revision: str) -> str:
        """Return the id of the object that C{revision} names: a full id, C{HEAD}, a branch, a tag or a remote branch.

        If several have the name, they win in this order. A full id is returned without a check that the object exists.

        :raises InvalidRequest: if the revision does not exist.
        """
        if is_object_id(revision):
            return revision
        if revision == "HEAD":
            return self._head() or self._unknown(revision)
        if is_ref_name(revision):
            for place in ("refs/heads/", "refs/tags/", "refs/remotes/"):
                found = self._ref(place + revision)
                if found is not None:
                    return found
        return self._unknown(revision)

    def _head(self) -> str | None:
        """Return the id of the commit that is checked out.

        If no commit is checked out or C{HEAD} is malformed, return None.
        """
        head = self._ref_file("HEAD")
        target = head.removeprefix("ref: ")
        if is_object_id(head):
            return head
        return self._ref(target) if target != head and target.startswith("refs/") and is_ref_name(target) else None

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
        if not _is_there(place, self._directory):
            return ""
        try:
            return read_file(place, most, self._directory).data.decode("utf-8", "replace").strip()
        except Unreadable:
            return ""


def _loose(name: str) -> str:
    """Return the path of a loose object below the directory of objects."""
    return f"{name[:2]}/{name[2:]}"


def _is_there(path: str, directory: int) -> bool:
    try:
        return is_there(path, directory)
    except Unreadable as error:
        raise InvalidRequest(f"The local repository cannot be read: {error.problem}.") from None


def _open_directory(opened: ExitStack, path: str, beneath: int | None = None) -> int:
    try:
        name = path if beneath is None else os.path.basename(path)
        return opened.enter_context(open_directory(name, beneath))
    except FileNotFoundError:
        raise InvalidRequest(f"There is no git repository in {path}.") from None
    except Unreadable:
        raise InvalidRequest(f"{path} is no directory of yours; name the main repository, not a linked one.") from None
