"""Copies the project's repository for a sandbox, in which the real one is hidden.

The copy has the refs, the index and the configuration, and reads the objects of the real repository, which are
mounted beside its own.  See ADR 31.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import field, frozen

from aileron.model.errors import InvalidRequest

from ._git import Git, GitError
from ._repository import Repository

REAL_OBJECTS = "aileron-objects"
"""The directory of the copy where the real repository's objects are mounted."""

OPERATIONS = ("rebase-merge", "rebase-apply", "sequencer", "BISECT_LOG")
"""The files of a repository during an operation of several steps that may run commands."""

MERGE_FILES = ("MERGE_HEAD", "MERGE_MSG", "MERGE_MODE", "CHERRY_PICK_HEAD", "REVERT_HEAD", "SQUASH_MSG", "AUTO_MERGE")
"""The files of a repository during a merge, a cherry-pick or a revert before its commit: object names and text."""

_SNAPSHOT = "snapshot.json"
_MOUNTED = ("modules", "lfs")
_NOT_COPIED = {*_MOUNTED, "objects", "worktrees", "annex", "commondir", "gitdir", "locked", REAL_OBJECTS}
_OF_ONE_WORK_TREE = {"HEAD", "index", "ORIG_HEAD", "FETCH_HEAD", "config.worktree", *OPERATIONS, *MERGE_FILES}
_KEPT_AS_WERE = ("index", "config", "config.worktree", "shallow", *MERGE_FILES)


@frozen
class Snapshot:
    """The refs of a repository when it was copied.

    :ivar refs: object names by ref.
    :ivar head: the ref that C{HEAD} names, or an object name if it is detached.
    """

    repository: Repository
    refs: Mapping[str, str]
    head: str

    def to_json(self) -> str:
        """Return the text that L{from_json} reads."""
        places = [self.repository.root, self.repository.git_dir, self.repository.common_dir]
        return json.dumps({"repository": places, "refs": dict(self.refs), "head": self.head})

    @classmethod
    def from_json(cls, text: str) -> Snapshot:
        """Return the snapshot that L{to_json} wrote."""
        read: Mapping[str, Any] = json.loads(text)
        return cls(Repository(*read["repository"]), read["refs"], read["head"])


@frozen
class RepositoryCopy:
    """A copy of a repository for a sandbox, and the snapshot of the original's refs.

    :ivar directory: contains the copy (C{git}), the snapshot, the original files of the repository (C{before}), and the
        files removed from the copy before the import (C{discarded}).
    """

    directory: Path
    git: Git = field(repr=False)
    snapshot: Snapshot

    @property
    def git_dir(self) -> Path:
        """The copy, which is mounted in place of the real repository."""
        return self.directory / "git"

    @property
    def before(self) -> Path:
        """The files of the real repository at the time of the copy."""
        return self.directory / "before"

    def mounts(self) -> Iterator[str]:
        """Yield the options of bubblewrap that mount the copy in place of the repository."""
        place, common = self.snapshot.repository.git_dir, Path(self.snapshot.repository.common_dir)
        # guard against attack: the repository is a copy -> test_sandbox_git.GitTests.test_hooks,
        #    instead yield from ("--bind", place, place)
        yield from ("--bind", str(self.git_dir), place)
        # guard against attack: the repository's objects stay as they are -> test_sandbox_git.GitTests.test_objects,
        #    instead yield from ("--bind", str(common / "objects"), f"{place}/{REAL_OBJECTS}")
        yield from ("--ro-bind", str(common / "objects"), f"{place}/{REAL_OBJECTS}")
        for name in _MOUNTED:
            if (self.git_dir / name).is_dir():
                # guard against attack: what Git LFS keeps stays as it is -> test_breakout.LostTests.test_large_files,
                #    instead yield from ("--bind", str(common / name), f"{place}/{name}")
                yield from ("--ro-bind", str(common / name), f"{place}/{name}")


def make_copy(repository: Repository, git: Git, directory: Path) -> RepositoryCopy:
    """Copy a repository into an empty private directory.

    :raises InvalidRequest: if a part of the repository could not be copied. The directory is then removed.
    """
    copy, before = directory / "git", directory / "before"
    try:
        _copy(repository, copy)
        _link_objects(repository, copy)
        made = git.at(copy, repository.root)
        if repository.is_linked:  # the settings of the main work tree do not apply here
            made.run("config", "--file", str(copy / "config"), "core.bare", "false")
        before.mkdir()
        for name in filter(lambda each: (copy / each).is_file(), _KEPT_AS_WERE):
            shutil.copy2(copy / name, before / name)
        snapshot = Snapshot(repository, refs_of(made), head_of(made))
        (directory / _SNAPSHOT).write_text(snapshot.to_json(), encoding="utf-8")
    except (OSError, GitError) as error:
        shutil.rmtree(directory, ignore_errors=True)
        raise InvalidRequest(f"The repository could not be copied for the sandbox: {error}") from error
    return RepositoryCopy(directory, git, snapshot)


def was_copied(directory: Path) -> bool:
    """Return whether the directory contains a complete copy that was not deleted since."""
    return (directory / _SNAPSHOT).exists()


def read_copy(directory: Path, git: Git) -> RepositoryCopy | None:
    """Return the copy in a directory, or None if there is no complete copy."""
    try:
        snapshot = Snapshot.from_json((directory / _SNAPSHOT).read_text(encoding="utf-8"))
    except (OSError, ValueError, LookupError, TypeError):
        return None
    copy = RepositoryCopy(directory, git, snapshot)
    whole = (copy.git_dir / "index").exists() or not (copy.before / "index").exists()
    return copy if whole else None


def forget_copy(copy: RepositoryCopy) -> None:
    """Delete a copy. A partly deleted copy does not count as a copy."""
    (copy.directory / _SNAPSHOT).unlink(missing_ok=True)
    shutil.rmtree(copy.directory, ignore_errors=True)


def refs_of(git: Git) -> Mapping[str, str]:
    """Return the object name of every ref that is not symbolic, by ref.

    :raises GitError: if the refs cannot be read.
    """
    lines = os.fsdecode(git.run("for-each-ref", "--format=%(objectname) %(refname) %(symref)")).split("\n")
    return {ref: name for name, ref, symbolic in (line.split(" ") for line in lines if line) if not symbolic}


def head_of(git: Git) -> str:
    """Return the ref that C{HEAD} names, or the object name if it is detached, or an empty text if there is none."""
    return git.text("symbolic-ref", "-q", "HEAD") or git.text("rev-parse", "--verify", "-q", "HEAD")


def _copy(repository: Repository, copy: Path) -> None:
    shared = _OF_ONE_WORK_TREE if repository.is_linked else set()
    _copy_files(repository.common_dir, copy, _NOT_COPIED | shared)
    if repository.is_linked:
        _copy_files(repository.git_dir, copy, _NOT_COPIED)
    for name in _MOUNTED:
        if (Path(repository.common_dir) / name).is_dir():
            (copy / name).mkdir()


def _copy_files(source: str, target: Path, left_out: set[str]) -> None:
    """Copy directories and plain files, but no links, sockets or lock files."""

    def ignored(directory: str, names: list[str]) -> list[str]:
        top = left_out if directory == source else frozenset()
        return [name for name in names if name in top or name.endswith(".lock") or not _is_plain(directory, name)]

    shutil.copytree(source, target, ignore=ignored, dirs_exist_ok=True)


def _is_plain(directory: str, name: str) -> bool:
    path = Path(directory) / name
    return not path.is_symlink() and (path.is_file() or path.is_dir())


def _link_objects(repository: Repository, copy: Path) -> None:
    """Configure the copy to read the real repository's objects, which are mounted in it."""
    for name in (REAL_OBJECTS, "objects/pack", "objects/info"):
        (copy / name).mkdir(parents=True)
    lines = [f"{repository.git_dir}/{REAL_OBJECTS}", *_alternates(Path(repository.common_dir) / "objects")]
    (copy / "objects/info/alternates").write_text("".join(f"{line}\n" for line in lines))


def _alternates(objects: Path) -> Iterator[str]:
    """Yield the paths of the other object directories from which the real repository borrows objects."""
    listed = objects / "info" / "alternates"
    for line in listed.read_text().splitlines() if listed.is_file() else ():
        if line and not line.startswith("#"):
            yield os.path.normpath(objects / line)
