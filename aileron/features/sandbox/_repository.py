"""Finds the repository of a project, and the files of the project that its configuration names."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from aileron.model.errors import InvalidRequest

from ._git import GITLINK, NEUTRAL, Git, GitError

_WORDS = re.compile(r"[A-Za-z0-9_.@%+=:,~/-]+")
_STARTS = re.compile(r"\)/|\$[A-Za-z{]").search  # a path after a shell expansion
_RUNS = re.compile(
    r"core\.(?:fsmonitor|sshcommand|pager|editor|askpass|gitproxy|alternaterefscommand)|sequence\.editor|diff\.external"
    r"|gpg\..*program|credential\..*helper|interactive\.difffilter|pager\..*|uploadpack\.packobjectshook"
    r"|(?:filter|diff|merge|difftool|mergetool|browser|man|trailer|hook|remote|submodule)\."
    r".*\.(?:clean|smudge|process|textconv|command|driver|cmd|path|uploadpack|receivepack|update)"
).fullmatch
_BETWEEN_WORDS = re.compile(r"[\s\\\"'`;&|(){}$<>]+")
_OPTIONS_OF_PYTHON = re.compile(r"-([^WXcm]*)([WXcm]?)(.*)", re.DOTALL).fullmatch


@frozen
class Repository:
    """A work tree and the directories of its repository, without symbolic links.

    :ivar root: the directory of the work tree.
    :ivar git_dir: the data of this work tree only: C{HEAD} and the index.
    :ivar common_dir: the data of all work trees. It equals C{git_dir} except for a linked work tree.
    """

    root: str
    git_dir: str
    common_dir: str

    @property
    def is_linked(self) -> bool:
        """True for a linked work tree (C{git worktree add})."""
        return self.git_dir != self.common_dir


def find_repository(root: str, git: Git) -> Repository | None:
    """Return the repository of a work tree, or None if git does not recognize one.

    :param root: a directory that contains C{.git}.
    :raises InvalidRequest: if C{root} is a repository itself, or C{.git} is a symbolic link, which the agent could
        replace.
    """
    if git.at("", root).text("rev-parse", "--is-inside-git-dir", "--is-bare-repository").startswith("true"):
        raise InvalidRequest(f"A sandbox cannot protect the repository {root} itself: change to a work tree of it.")
    if (Path(root) / ".git").is_symlink():
        raise InvalidRequest(f"A sandbox cannot protect a repository behind a symbolic link: {root}/.git.")
    found = git.at("", root).text("rev-parse", "--git-dir", "--git-common-dir").split("\n")
    belongs_to = git.at("", root).text("rev-parse", "--show-toplevel")
    if len(found) != 2 or os.path.realpath(belongs_to or "/") != root:
        return None
    git_dir, common_dir = (os.path.realpath(os.path.join(root, path)) for path in found)
    return Repository(root, git_dir, common_dir)


def work_tree_around(git: Git, directory: str) -> str:
    """Return the work tree that contains a directory, or the directory itself if there is none."""
    return os.path.realpath(git.at("", directory).text("rev-parse", "--show-toplevel") or directory)


def refuse_inside(git: Git, directory: str) -> None:
    """Refuse a directory among a repository's own files.

    :raises InvalidRequest: if the directory is inside a C{.git} directory.
    """
    if git.at("", directory).text("rev-parse", "--is-inside-git-dir") == "true":
        raise InvalidRequest(f"A sandbox cannot protect a repository from what works inside it: {directory}.")


def gitlinks(git: Git, root: str) -> Iterator[str]:
    """Yield the directories of the work tree that the index lists as nested repositories."""
    try:
        records = list(git.at("", root).records("ls-files", "--stage", "-z"))
    except GitError:
        return  # there is no index
    for record in records:
        head, _, path = record.partition(b"\t")
        if head.startswith(GITLINK):
            yield os.path.join(root, os.fsdecode(path))


def tracked_files(git: Git, directory: str) -> frozenset[str]:
    """Return the files below a directory in its repository's index, or none if there is no repository."""
    try:
        return frozenset(
            os.path.join(directory, os.fsdecode(path)) for path in git.at("", directory).records("ls-files", "-z")
        )
    except GitError:
        return frozenset()


def hooks_directory(git: Git, root: str) -> str | None:
    """Return the hooks directory by C{core.hooksPath} or git's default, or None if git knows none."""
    named = [value for _, key, value in _settings(git, root) if key == "core.hookspath"]
    if named and named[-1]:
        return os.path.join(root, os.path.expanduser(named[-1]))
    common = git.at("", root).text("rev-parse", "--git-common-dir")
    return os.path.join(root, common, "hooks") if common else None


def named_paths(git: Git, root: str) -> Iterator[str]:
    """Yield the user's configuration files, included files, and templates of new repositories, existing or not.

    git lists no file without settings, so these paths are found separately.
    """
    yield from _global_files(git)
    for origin, key, value in _settings(git, root):
        lowered = key.lower()
        if lowered == "include.path" or (lowered.startswith("includeif.") and lowered.endswith(".path")):
            beside = os.path.dirname(os.path.join(root, origin))
            yield os.path.join(beside, os.path.expanduser(value))
        elif lowered == "init.templatedir":
            yield os.path.join(root, os.path.expanduser(value))


def _global_files(git: Git) -> Iterator[str]:
    home, named = git.environment.get("HOME"), git.environment.get("GIT_CONFIG_GLOBAL")
    if named:
        yield os.path.abspath(named)
    elif home:
        yield os.path.join(home, ".gitconfig")
        yield os.path.join(git.environment.get("XDG_CONFIG_HOME") or os.path.join(home, ".config"), "git", "config")


def configured_files(git: Git, root: str) -> Iterator[str]:
    """Yield the configuration files, and the files that their values name: filters, monitors, helpers."""
    for origin, _, value in _settings(git, root):
        if origin:
            yield os.path.join(root, origin)
        for path in {value, *_paths(value)}:
            found = _list_below(root, path)
            if path and os.path.isfile(found):
                yield found


def missing_programs(git: Git, root: str) -> Iterator[str]:
    """Yield the paths of missing programs that git's configuration names."""
    for _, value in _commands(git, root):
        for path in _paths(value):
            found = _list_below(root, path)
            if "/" in path and not path.startswith("-") and not os.path.exists(found):
                yield found


def module_commands(git: Git, root: str) -> Iterator[str]:
    """Yield the settings by which git runs a Python module, which Python searches in the work tree first."""
    for key, value in _commands(git, root):
        if _runs_module(value):
            yield key


def _runs_module(command: str) -> bool:
    """Return whether a command runs a Python module (C{-m}) that is searched in the working directory."""
    in_options = isolated = in_argument = False
    for word in _BETWEEN_WORDS.split(command):
        options = _OPTIONS_OF_PYTHON(word)
        if word.rpartition("/")[2].rstrip("0123456789.").endswith("python"):
            in_options, isolated, in_argument = True, False, False
        elif in_argument:
            in_argument = False
        elif not in_options or options is None:
            in_options = False
        elif word.startswith("--"):
            in_argument = word == "--check-hash-based-pycs"
        else:
            flags, last, rest = options.groups()
            isolated = isolated or not {"I", "P"}.isdisjoint(flags)
            if last == "m" and not isolated:
                return True
            in_options, in_argument = last not in ("c", "m"), last in ("W", "X") and not rest
    return False


def _commands(git: Git, root: str) -> Iterator[tuple[str, str]]:
    """Yield the settings that make git run a command, each with the command."""
    for _, key, value in _settings(git, root):
        if _RUNS(key) or (key.startswith("alias.") and value.startswith("!")):
            yield key, value


def _list_below(root: str, path: str) -> str:
    return os.path.join(root, os.path.expanduser(path))


def _paths(value: str) -> set[str]:
    """Return the words of a setting that may be paths, split as by a shell and at every character not in names."""
    return {word.strip("/") if word.startswith("/") and _STARTS(value) else word for word in _WORDS.findall(value)}


def _settings(git: Git, root: str) -> Iterator[tuple[str, str, str]]:
    """Yield each setting of git: its file (empty for the environment), its key and its value."""
    try:
        records = list(git.at("", root).records("config", "--list", "--includes", "--show-origin", "-z"))
    except GitError:
        return  # git recognizes no repository there, so no settings apply
    for origin, setting in zip(records[::2], records[1::2], strict=False):
        kind, _, path = os.fsdecode(origin).partition(":")
        key, _, value = os.fsdecode(setting).partition("\n")
        if kind == "file" or (kind == "command line" and f"{key}={value}" not in NEUTRAL):
            yield path, key, value
