"""Reduces an agent's copy of a repository to its data (refs, index and objects), with the settings of the original."""

from __future__ import annotations

import filecmp
import os
import shutil
from pathlib import Path
from stat import S_ISDIR, S_ISREG

from ._copy import MERGE_FILES, OPERATIONS, RepositoryCopy

_DATA = ("HEAD", "index", "packed-refs", "refs", "reftable", "logs", "objects", *MERGE_FILES)
_CACHES = ("objects/info", "objects/pack/multi-pack-index", "objects/pack/multi-pack-index.d")
_RESTORED = ("config", "config.worktree", "shallow")
_MERGE_FILE_BYTES = 1 << 16


def sanitize(copy: RepositoryCopy) -> tuple[list[str], str]:
    """Remove everything but data from a copy, and restore its original settings. Idempotent.

    The removed files are afterwards in C{discarded} beside the copy.

    :return: the settings, hooks and redirecting directories, relative to the repository, that are new or changed
        since the copy was made, and the unfinished operation of several steps in the copy, or an empty text.
    :raises OSError: if something could not be moved or deleted.
    """
    _open_directories(copy.git_dir)
    found = _find_changed(copy), _operation(copy)
    aside = copy.directory / "discarded"
    aside.mkdir(exist_ok=True)
    for name in os.listdir(copy.git_dir):
        # guard against attack: git does not read the settings that the agent wrote
        #    -> test_sandbox_git.GitTests.test_configuration
        # guard against attack: what is no data is taken out of the copy before git reads it
        #    -> test_sandbox_git.GitTests.test_commondir
        if name not in _DATA and not name.startswith("sharedindex."):
            _delete(aside / name)
            (copy.git_dir / name).rename(aside / name)
    for name in _CACHES:
        _delete(copy.git_dir / name)
    _delete_links(copy.git_dir)
    for name in filter(lambda each: (copy.before / each).is_file(), _RESTORED):
        # guard against attack: git does not read the settings that the agent wrote
        shutil.copy2(copy.before / name, copy.git_dir / name)
    (copy.git_dir / "objects" / "info").mkdir(parents=True)
    objects = Path(copy.snapshot.repository.common_dir) / "objects"
    (copy.git_dir / "objects" / "info" / "alternates").write_text(f"{objects}\n")
    return found


def merge_file(directory: Path, name: str) -> bytes | None:
    """Return the content of one of L{MERGE_FILES}, or None if the file is missing or too long."""
    path = directory / name
    if path.is_symlink() or not path.is_file() or path.stat().st_size > _MERGE_FILE_BYTES:
        return None
    return path.read_bytes()


def _find_changed(copy: RepositoryCopy) -> list[str]:
    """Return the changed files that configure git."""
    real = Path(copy.snapshot.repository.common_dir)
    settings = [name for name in _RESTORED if not _is_same(copy.git_dir / name, copy.before / name)]
    leading = [name for name in ("commondir", "gitdir") if os.path.lexists(copy.git_dir / name)]
    below = [
        f"{directory}/{name}"
        for directory in ("hooks", "info", "worktrees", "modules")
        for name in _list_names(copy.git_dir / directory)
        if not _is_same(copy.git_dir / directory / name, real / directory / name)
    ]
    return [*settings, *leading, *below]


def _is_same(one: Path, other: Path) -> bool:
    """Return whether two plain files have equal content, or both are missing."""
    if not os.path.lexists(one) and not os.path.lexists(other):
        return True
    plain = all(path.is_file() and not path.is_symlink() for path in (one, other))
    return plain and filecmp.cmp(one, other, shallow=False)


def _list_names(directory: Path) -> list[str]:
    return sorted(os.listdir(directory)) if directory.is_dir() and not directory.is_symlink() else []


def _operation(copy: RepositoryCopy) -> str:
    places = (copy.git_dir, copy.directory / "discarded")
    return next((name for name in OPERATIONS for place in places if os.path.lexists(place / name)), "")


def _open_directories(root: Path) -> None:
    """Make every directory readable and writable for this process."""
    root.chmod(0o700)
    for directory, directories, _ in os.walk(root):
        for name in directories:
            path = Path(directory) / name
            if not path.is_symlink():
                path.chmod(0o700)


def _delete_links(root: Path) -> None:
    """Delete everything that is neither a directory nor a plain file."""
    for directory, directories, names in os.walk(root):
        for name in (*directories, *names):
            mode = os.lstat(os.path.join(directory, name)).st_mode
            if not S_ISDIR(mode) and not S_ISREG(mode):
                os.unlink(os.path.join(directory, name))


def _delete(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    elif os.path.lexists(path):
        path.unlink()
