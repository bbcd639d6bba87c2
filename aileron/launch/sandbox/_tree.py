"""Finds in a project what other programs obey by themselves: repositories, and settings that run code."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from stat import S_IFMT

from attrs import field, frozen

_GIT = ".git"
_BARE = ({"HEAD", "objects", "refs"}, {"HEAD", "commondir"})
_DEPENDENCIES = "node_modules"
_DIRECTORIES = frozenset(
    ".bundle .cargo .claude .codex .cursor .devcontainer .fleet .gemini .githooks .goose .husky .idea .mise .mvn .nvim "
    ".opencode .pi .vscode .windsurf .yarn .zed".split()
)
_FILES = re.compile(
    r"\.(?:envrc|autoenv(?:\.zsh)?|exrc|n?vimrc|nvim\.lua|lvimrc|dir-locals(?:-2)?\.el|gdbinit(?:\.py)?|lldbinit|pdbrc"
    r"|irbrc|pryrc|rspec|npmrc|yarnrc(?:\.yml)?|pnpmfile\.cjs|pnp\.cjs|bazelrc|mise(?:\.local)?\.toml|sbtopts|jvmopts"
    r"|pre-commit-config\.yaml|lefthook\.ya?ml|devcontainer\.json|mcp\.json|gitmodules|gitattributes|aider\.conf\.yml"
    r"|(?:eslintrc|prettierrc|stylelintrc|babelrc|lintstagedrc|huskyrc)(?:\.[a-z]+)?)"
    r"|mise(?:\.local)?\.toml|lefthook\.ya?ml|bunfig\.toml|opencode\.jsonc?|pyvenv\.cfg|(?:site|user)customize\.py"
    r"|[^/]*\.(?:pth|code-workspace|sublime-project)",
    re.IGNORECASE,
).fullmatch

Signature = tuple[int, ...]


@frozen
class TreeSnapshot:
    """What lay in a directory at one moment.

    :ivar repositories: the paths of C{.git}, and of directories that git takes for a repository.
    :ivar autorun: the files that shells, editors, package managers and agents obey by themselves.
    """

    repositories: Mapping[str, Signature] = field(factory=dict)
    autorun: Mapping[str, Signature] = field(factory=dict)

    def changes(self, later: TreeSnapshot) -> tuple[str, ...]:
        """The paths that are new or changed in C{later}, repositories first."""
        pairs = ((self.repositories, later.repositories), (self.autorun, later.autorun))
        return tuple(path for old, new in pairs for path in sorted(new) if new[path] != old.get(path))


def read_tree(root: str) -> TreeSnapshot:
    """A snapshot of a directory and all below it; links are not followed, and no repository is entered.

    A file that was written and put back as it was counts as changed: the kernel notes when that was.
    """
    repositories: dict[str, Signature] = {}
    autorun: dict[str, Signature] = {}
    for directory, directories, names in os.walk(root):
        inside = set(directories).union(names)
        if directory != root and any(needed <= inside for needed in _BARE):
            repositories[directory] = _identity(directory)
            directories.clear()
            continue
        found = [os.path.join(directory, name) for name in inside if name.lower() == _GIT]
        repositories.update((path, _identity(path)) for path in found)
        directories[:] = [name for name in directories if name.lower() != _GIT]
        below = directory[len(root) :].split(os.sep)
        if _DEPENDENCIES not in below:
            whole = not _DIRECTORIES.isdisjoint(below)
            paths = (os.path.join(directory, name) for name in names if whole or _FILES(name))
            autorun.update((path, _version(path)) for path in paths)
    return TreeSnapshot(repositories, autorun)


def _identity(path: str) -> Signature:
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
