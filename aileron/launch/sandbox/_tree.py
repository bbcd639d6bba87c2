"""Finds what changes while an agent runs: what other programs obey by themselves, and what it was not to write."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from stat import S_IFMT

from attrs import field, frozen

_GIT = ".git"
_BARE = ({"HEAD", "objects", "refs"}, {"HEAD", "commondir"})
_DEPENDENCIES = "node_modules"
_DIRECTORIES = frozenset(
    ".amazonq .bundle .cargo .claude .codex .config .continue .cursor .devcontainer .direnv .externalToolBuilders "
    ".fleet .gemini .githooks .goose .helix .hg .husky .idea .jj .kiro .mise .mvn .nvim .opencode .pi .qwen .roo "
    ".settings .sl .svn .vs .vscode .windsurf .yarn .zed".split()
)
_FILES = re.compile(
    r"\.(?:env(?:rc)?(?:\.[a-z.]+)?|autoenv[^/]*|exrc|n?vimrc|nvim\.lua|lvimrc|dir-locals(?:-2)?\.el|gdbinit(?:\.py)?|lldbinit|pdbrc"
    r"|irbrc|pryrc|rspec|ghci|iex\.exs|ocamlinit|octaverc|pylintrc|Rprofile|npmrc|yarnrc(?:\.yml)?|pnpmfile\.cjs|pnp\.cjs|bazelrc|mise(?:\.local)?\.toml|sbtopts|jvmopts"
    r"|pre-commit-config\.yaml|lefthook\.ya?ml|devcontainer\.json|mcp\.json|gitmodules|gitattributes|aider\.conf\.yml"
    r"|tool-versions|rvmrc|latexmkrc|luarc\.json|clangd|rubocop\.yml|flake8|coveragerc|Renviron|RData|perldb|proverc"
    r"|[^/]*\.exs|ycm_extra_conf\.py|php-cs-fixer(?:\.dist)?\.php|pnp\.loader\.mjs|kateproject|project|crush\.json"
    r"|(?:eslintrc|prettierrc|stylelintrc|babelrc|lintstagedrc|huskyrc)(?:\.[a-z]+)?)"
    r"|mise(?:\.local)?\.toml|lefthook\.ya?ml|bunfig\.toml|(?:flake|shell|default|devenv)\.nix|devenv\.ya?ml|crush\.json|opencode\.jsonc?|pyvenv\.cfg|(?:site|user)customize\.py"
    r"|[^/]*\.(?:pth|code-workspace|sublime-project)",
    re.IGNORECASE,
).fullmatch

_MOST_HELD = 256  # descriptors

Signature = tuple[int, ...]


@frozen
class TreeSnapshot:
    """A snapshot of what other programs obey in a directory.

    :ivar repositories: the paths of C{.git}, and of directories that git takes for a repository.
    :ivar autorun: the files that shells, editors, package managers and agents obey by themselves, and those that have
        a second name somewhere.
    """

    repositories: dict[str, Signature] = field(factory=dict)
    autorun: dict[str, Signature] = field(factory=dict)

    def changes(self, later: TreeSnapshot) -> tuple[str, ...]:
        """Return the paths that are new or changed in C{later}, repositories first."""
        pairs = ((self.repositories, later.repositories), (self.autorun, later.autorun))
        return tuple(path for old, new in pairs for path in sorted(new) if new[path] != old.get(path))


def read_tree(root: str) -> TreeSnapshot:
    """Return a snapshot of a directory and all below it; links are not followed, and no repository is entered.

    A file that was written and put back as it was counts as changed: the kernel notes when that was.  A directory that
    cannot be listed counts as a repository, since git would enter one there.
    """
    found = TreeSnapshot({}, {})
    waiting = [root]
    while waiting:
        waiting.extend(_read_directory(root, waiting.pop(), found))
    return found


@contextmanager
def watch_replacements(paths: Iterable[str]) -> Iterator[Callable[[], tuple[str, ...]]]:
    """Watch paths; yield a function that lists those that lead to something else by now.

    A mount ends with the file that it covers: where the user's editor, or C{git checkout}, puts another file in its
    place, the agent may write that one.  An open descriptor of each first file keeps the kernel from giving its inode
    to the next one.
    """
    before = {path: identity_of(path) for path in paths}
    with ExitStack() as held:
        for path in list(before)[:_MOST_HELD]:
            held.callback(os.close, os.open(path, os.O_PATH | os.O_NOFOLLOW))
        yield lambda: tuple(path for path, found in before.items() if identity_of(path) not in (found, ()))


def _read_directory(root: str, directory: str, found: TreeSnapshot) -> list[str]:
    """Note what lies in one directory.

    :return: the directories in it that are to be read as well.
    """
    try:
        entries = {entry.name: entry.is_dir(follow_symlinks=False) for entry in os.scandir(directory)}
    except OSError:
        found.repositories[directory] = ()
        return []
    if any(needed <= entries.keys() for needed in _BARE):
        found.repositories[directory] = identity_of(directory)
        return []
    below = directory[len(root) :].split(os.sep)
    whole, counts = not _DIRECTORIES.isdisjoint(below), _DEPENDENCIES not in below
    for name, is_directory in entries.items():
        path = os.path.join(directory, name)
        if name.lower() == _GIT:
            found.repositories[path] = identity_of(path)
        elif not is_directory and ((counts and (whole or name in _DIRECTORIES or _FILES(name))) or _is_shared(path)):
            found.autorun[path] = _version(path)
    return [os.path.join(directory, name) for name, deeper in entries.items() if deeper and name.lower() != _GIT]


def _is_shared(path: str) -> bool:
    """Return whether a file has another name, outside perhaps: who writes it writes that."""
    try:
        return os.lstat(path).st_nlink > 1
    except OSError:
        return False


def identity_of(path: str) -> Signature:
    """Return what tells one file at a path from another; empty where there is none."""
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
