"""Writes the differences between two trees as a patch."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import frozen

from aileron.connectors._patch import Patch
from aileron.model.errors import InvalidRequest, ResourceLimitExceeded

from ._objects import BLOB, DIRECTORY, SUBMODULE, Commit
from ._repository import GitObjects

_MOST_DEPTH, _MOST_FILES = 100, 100_000
_MOST_PATH_BYTES, _MOST_PATHS_CHARACTERS = 4096, 16 * 1024 * 1024
_MOST_OPEN_ENTRIES = 300_000  # entries of the trees being compared and of their parent trees
_Entry = tuple[int, str]


@frozen
class FileDifference:
    """A file that differs between two trees.

    :ivar old: the mode and id of the file before, or None if the file is new.
    :ivar new: the mode and id of the file after, or None if the file was deleted.
    """

    path: str
    old: _Entry | None
    new: _Entry | None


def write_patch(repository: GitObjects, old: str | None, new: str | None) -> Patch:
    """Return the patch between two trees. None is the empty tree. The patch is cut if it is long.

    :raises InvalidRequest: if an object is missing or malformed, or the trees are too large.
    :raises ResourceLimitExceeded: if the deadline has passed.
    """
    patch = Patch()
    _write_all(repository, changes(repository, old, new), patch)
    return patch


def write_commit(repository: GitObjects, commit: Commit, patch: Patch) -> None:
    """Append the changes of a commit to a patch.

    For a merge, append only the files that differ from every parent, compared with the first parent.

    :raises InvalidRequest: if an object is missing or malformed, or the trees are too large.
    :raises ResourceLimitExceeded: if the deadline has passed.
    """
    before: list[str | None] = [repository.commit(parent).tree for parent in commit.parents]
    first, *others = before or [None]
    found = _limited(changes(repository, first, commit.tree))
    for other in others:
        new = {(each.path, each.new) for each in _limited(changes(repository, other, commit.tree))}
        found = [each for each in found if (each.path, each.new) in new]
    _write_all(repository, found, patch)


def _limited(found: Iterable[FileDifference]) -> list[FileDifference]:
    differences, size = [], 0
    for each in found:
        differences.append(each)
        size += len(each.path)
        if len(differences) > _MOST_FILES or size > _MOST_PATHS_CHARACTERS:
            raise ResourceLimitExceeded(f"A commit changes more than {_MOST_FILES} files, or ones with too long names.")
    return differences


def _write_all(repository: GitObjects, found: Iterable[FileDifference], patch: Patch) -> None:
    for change in found:
        repository.deadline.check()
        _write(repository, change, patch)


def changes(
    repository: GitObjects, old: str | None, new: str | None, above: bytes = b"", entries: int = 0
) -> Iterator[FileDifference]:
    """Yield the files that differ between two trees, ordered by path.

    :param above: the path of both trees, with a slash at its end.
    :param entries: the number of entries of the parent trees, which are still open.
    :raises InvalidRequest: if a tree is missing, malformed, too large or too deep, or a path is too long.
    :raises ResourceLimitExceeded: if the deadline has passed.
    """
    if old == new:
        return
    before, after = ({} if each is None else repository.tree(each) for each in (old, new))
    entries += len(before) + len(after)
    if entries > _MOST_OPEN_ENTRIES or above.count(b"/") > _MOST_DEPTH:
        raise InvalidRequest("A tree of the local repository is too large, or nested too deep.")
    for name in sorted(before.keys() | after.keys()):
        path, then, now = above + name, before.get(name), after.get(name)
        if then == now:
            continue
        if len(path) > _MOST_PATH_BYTES:
            raise InvalidRequest(f"A path in the local repository is longer than {_MOST_PATH_BYTES} bytes.")
        trees = [each[1] if each and each[0] == DIRECTORY else None for each in (then, now)]
        if any(trees):
            yield from changes(repository, trees[0], trees[1], path + b"/", entries)
        then, now = (None if each and each[0] == DIRECTORY else each for each in (then, now))
        if then or now:
            yield FileDifference(_show_path(path), then, now)


def _show_path(path: bytes) -> str:
    """Return a path as text, quoted and escaped if it has quotes, backslashes or unprintable characters."""
    text = path.decode("utf-8", "backslashreplace")
    return text if text.isprintable() and '"' not in text and "\\" not in text else repr(text)


def _write(repository: GitObjects, change: FileDifference, patch: Patch) -> None:
    old, new = (None if each is None else _content(repository, each) for each in (change.old, change.new))
    patch.add_file(change.path, "".join(_modes(change)), old, new)


def _modes(change: FileDifference) -> Iterator[str]:
    old, new = change.old, change.new
    if old is None and new is not None:
        yield f"new file mode {new[0]:06o}\n"
    elif new is None and old is not None:
        yield f"deleted file mode {old[0]:06o}\n"
    elif old is not None and new is not None and old[0] != new[0]:
        yield f"old mode {old[0]:06o}\nnew mode {new[0]:06o}\n"
    yield f"index {old[1] if old else '0' * 40}..{new[1] if new else '0' * 40}\n"


def _content(repository: GitObjects, entry: _Entry) -> bytes:
    mode, name = entry
    return f"Subproject commit {name}\n".encode() if mode == SUBMODULE else repository.read(name, BLOB)[1]
