"""Finds files that changed during an agent's run: those that other programs obey, and protected ones."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from stat import S_IFMT

from attrs import field, frozen

from aileron.model.errors import InvalidRequest

from ._names import is_configuration, is_known

_GIT = ".git"
_BARE = ({"HEAD", "objects", "refs"}, {"HEAD", "commondir"})
_DEPENDENCIES = "node_modules"
_MOST_OF_ONE = 5
"""The most settings files of one new directory that are listed one by one. If there are more, only the directory is."""
_MOST_HELD = 256  # descriptors

Signature = tuple[int, ...]


@frozen
class TreeSnapshot:
    """A snapshot of the files in a directory that other programs read automatically, such as settings.

    :ivar repositories: the paths of C{.git}, and of directories that git treats as a repository.
    :ivar autorun: the files that shells, editors, package managers and agents obey automatically, and files with a
        second hard link.
    :ivar configuration: other files that look like settings or recipes.
    :ivar directories: all directories.
    """

    repositories: dict[str, Signature] = field(factory=dict)
    autorun: dict[str, Signature] = field(factory=dict)
    configuration: dict[str, Signature] = field(factory=dict)
    directories: set[str] = field(factory=set)

    def changes(self, later: TreeSnapshot, tracked: Collection[str] = frozenset()) -> tuple[str, ...]:
        """Return the new or changed paths in C{later}: repositories, known files, then likely settings.

        :param tracked: files to leave out if they only look like settings, since a repository shows their changes.
        """
        pairs = ((self.repositories, later.repositories), (self.autorun, later.autorun))
        known = tuple(path for old, new in pairs for path in sorted(new) if new[path] != old.get(path))
        old, new = self.configuration, later.configuration
        others = [path for path in sorted(new) if new[path] != old.get(path) and path not in tracked]
        return (*known, *self._summed_up(others))

    def _summed_up(self, paths: Iterable[str]) -> Iterator[str]:
        """Yield paths, but if many of them are in one new directory, yield the directory instead."""
        places = {path: self._new_directory(path) for path in paths}
        counts = Counter(filter(None, places.values()))
        told: set[str] = set()
        for path, place in places.items():
            if counts[place] <= _MOST_OF_ONE:
                yield path
            elif place not in told:
                told.add(place)
                yield f"{place}{os.sep} (new, with {counts[place]} such files)"

    def _new_directory(self, path: str) -> str:
        """Return the outermost new directory of a path, or an empty text if none is new."""
        found, current = "", os.path.dirname(path)
        while current not in self.directories and len(current) > 1:
            found, current = current, os.path.dirname(current)
        return found


def read_tree(root: str) -> TreeSnapshot:
    """Return a snapshot of a directory tree. Links are not followed, and repositories are not entered.

    A file that was changed and restored counts as changed, by its change time. A directory that
    cannot be listed counts as a repository, since git would find one there.
    """
    found = TreeSnapshot()
    waiting = [root]
    while waiting:
        waiting.extend(_read_directory(root, waiting.pop(), found))
    return found


@contextmanager
def hold_open(paths: Iterable[str]) -> Iterator[Mapping[str, int]]:
    """Open paths so that they can be mounted by descriptor, and provide the descriptors within the context.

    :raises InvalidRequest: if another program replaced a path or a directory above it by a link.
    """
    with ExitStack() as held:
        opened = {}
        for path in paths:
            try:
                opened[path] = os.open(path, os.O_PATH | os.O_NOFOLLOW)
            except OSError as error:
                raise InvalidRequest(f"{path} was replaced while the sandbox was made: {error.strerror}.") from error
            held.callback(os.close, opened[path])
            if os.readlink(f"/proc/self/fd/{opened[path]}") != path:
                raise InvalidRequest(f"{path} was replaced by a link while the sandbox was made. Launch again.")
        yield opened


def read_files(paths: Iterable[str]) -> Mapping[str, Mapping[str, Signature]]:
    """Return for each path the files there or below it with their signatures. Links are not followed."""
    return {path: {found: _version(found) for found in _files_below(path)} for path in paths}


def _files_below(path: str) -> Iterator[str]:
    if not os.path.isdir(path):
        yield path
    for directory, _, names in os.walk(path):
        yield from (os.path.join(directory, name) for name in names)


@contextmanager
def watch_replacements(paths: Iterable[str]) -> Iterator[Callable[[], tuple[str, ...]]]:
    """Yield a function that returns the paths that were replaced since.

    A read-only mount ends when its file is replaced: if the user's editor or C{git checkout} does that, the agent may
    write the new file. The original files are held open, so that the kernel cannot reuse their inodes for new files.
    """
    before = {path: identity_of(path) for path in paths}
    with ExitStack() as held:
        for path in list(before)[:_MOST_HELD]:
            held.callback(os.close, os.open(path, os.O_PATH | os.O_NOFOLLOW))
        yield lambda: tuple(path for path, found in before.items() if identity_of(path) not in (found, ()))


def _read_directory(root: str, directory: str, found: TreeSnapshot) -> list[str]:
    """Add the contents of one directory to a snapshot.

    :return: the subdirectories to read.
    """
    try:
        entries = {entry.name: entry.is_dir(follow_symlinks=False) for entry in os.scandir(directory)}
    except OSError:
        # guard against attack: a directory that cannot be listed is reported -> test_breakout.UnreadableTests
        found.repositories[directory] = ()
        return []
    # guard against attack: a new bare repository is reported
    #    -> test_breakout.ToldTests.test_new_bare_repository
    if any(needed <= entries.keys() for needed in _BARE):
        found.repositories[directory] = identity_of(directory)
        return []
    found.directories.add(directory)
    below = directory[len(root) :].split(os.sep)
    counts = _DEPENDENCIES not in below
    for name, is_directory in entries.items():
        path = os.path.join(directory, name)
        if name.lower() == _GIT:
            # guard against attack: a new repository is reported -> test_sandbox_git.GitTests.test_no_repository
            found.repositories[path] = identity_of(path)
        elif not is_directory and ((counts and is_known(name, below)) or _is_shared(path)):
            found.autorun[path] = _version(path)
        elif not is_directory and counts and is_configuration(name, below):
            found.configuration[path] = _version(path)
    return [os.path.join(directory, name) for name, deeper in entries.items() if deeper and name.lower() != _GIT]


def _is_shared(path: str) -> bool:
    """Return whether a file has another hard link, possibly outside, which a write would change."""
    try:
        # guard against attack: a file with another name is reported -> test_breakout.ToldTests.test_hard_link,
        #    instead return False
        return os.lstat(path).st_nlink > 1
    except OSError:
        return False


def identity_of(path: str) -> Signature:
    """Return a signature that identifies the file at a path, or an empty signature if there is no file."""
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return S_IFMT(found.st_mode), found.st_dev, found.st_ino


def _version(path: str) -> Signature:
    try:
        found = os.lstat(path)
    except OSError:
        return ()
    return found.st_mode, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
