"""Imports what an agent staged: the entries of the index that differ, and the objects that they name."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

from ._git import Git, copy_objects

GITLINK = b"160000"
"""The mode of an entry that is a repository of its own."""

Entries = Mapping[bytes, frozenset[bytes]]
"""Of each path of an index its entries: mode, object name and stage."""


def entries_of(git: Git, index: Path) -> Entries:
    """The entries of an index; none where there is no such file.

    :raises GitError: it cannot be read.
    """
    found: dict[bytes, frozenset[bytes]] = {}
    for record in git.with_index(index).records("ls-files", "--stage", "-z"):
        entry, _, path = record.partition(b"\t")
        found[path] = found.get(path, frozenset()) | {entry}
    return found


def linked_paths(entries: Entries) -> set[bytes]:
    """The paths of an index that are repositories of their own."""
    return {path for path, found in entries.items() if any(entry.startswith(GITLINK) for entry in found)}


def import_index(before: Entries, after: Entries, source: Git, target: Git) -> list[str]:
    """Stage in the real repository what was staged in the copy.

    Only entries that differ are written, so that the others keep what git knows of their files.

    :return: the paths that are repositories of their own there and were none before: they are not staged.
    :raises GitError: an object is missing or malformed, or the index is locked.
    """
    changed = {path: after.get(path, frozenset()) for path in {*before, *after} if before.get(path) != after.get(path)}
    linked = linked_paths(changed)
    staged = {path: entries for path, entries in changed.items() if path not in linked}
    names = sorted({entry.split(b" ")[1] for entries in staged.values() for entry in entries})
    if names:
        copy_objects(source, target, given=b"".join(name + b"\n" for name in names))
    if staged:
        some = next(entry for entries in (*before.values(), *after.values()) for entry in entries)
        target.run("update-index", "-z", "--index-info", given=b"".join(_records(staged, len(some.split(b" ")[1]))))
    target.text("update-index", "-q", "--ignore-submodules", "--refresh")
    return sorted(map(os.fsdecode, linked))


def _records(staged: Entries, digits: int) -> list[bytes]:
    """The input of C{git update-index}: each path without an entry, then with those that it has now.

    :param digits: of an object's name.
    """
    removed = [b"0 " + b"0" * digits + b"\t" + path + b"\0" for path in sorted(staged)]
    added = [entry + b"\t" + path + b"\0" for path, entries in sorted(staged.items()) for entry in sorted(entries)]
    return [*removed, *added]
