"""Finds the files in writable directories that an agent must not write, since programs outside use them.

Every returned path exists, and below its writable directory no component is a symbolic link, which could
be replaced. If a file cannot be protected, the launch is refused.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os.path import isabs, isdir, join, lexists, realpath
from pathlib import Path

from aileron.model.errors import InvalidRequest

from ._git import Git
from ._mounts import read_mounts, second_paths
from ._repository import (
    configured_files,
    gitlinks,
    hooks_directory,
    missing_programs,
    module_commands,
    named_paths,
    work_tree_around,
)
from ._tree import TreeSnapshot
from .layout import SandboxLayout, check_protectable, is_within, is_within_any, linked_from, steps

_KEPT = (".envrc", ".vscode")
_START_FILES = (
    ".bashrc .bash_profile .bash_login .bash_logout .bash_aliases .profile "
    ".kshrc .cshrc .tcshrc .login .xprofile .xinitrc .xsessionrc"
).split()
_START_VARIABLES = ("ZDOTDIR", "BASH_ENV", "ENV")  # ZDOTDIR: a directory; the others: files
_START_FILES_OF_ZSH = ".zshenv .zprofile .zshrc .zlogin .zlogout".split()
_DIRECTORIES_OF_FISH = ("conf.d", "functions", "completions")
_ENVIRONMENTS = ("pyvenv.cfg", "conda-meta")
_DEPENDENCIES = "node_modules"
_HUSKY = "_"  # its hooks run files beside their directory


def find_protected(
    layout: SandboxLayout,
    tree: TreeSnapshot,
    git: Git | None,
    environment: Mapping[str, str],
    *,
    copied: str = "",
    also: Iterable[str] = (),
) -> list[str]:
    """Return the sorted paths that are read-only in the sandbox of an agent or of a connector's program.

    :param tree: the snapshot of the layout's root.
    :param git: git, or None if it is not installed, so that no program obeys git settings.
    :param environment: the caller's environment, by which shells and programs are found.
    :param copied: the repository that is replaced by a copy, or empty.
    :param also: further paths.
    :raises InvalidRequest: if a file that programs outside use cannot be protected.
    """
    refuse_second_paths(layout, environment)
    protected = (
        # guard against attack: settings of editors are protected -> test_sandbox.SandboxTests.test_nothing_to_be_had
        *protected_settings(layout.places),
        # guard against attack: start files are protected -> test_sandbox_links.LinkTests.test_start_file
        *protected_start_files(layout.home, layout.writable, environment),
        *protected_repositories(layout.root, tree, git, copied),
        *protected_programs(layout.writable, layout.programs, environment.get("PATH", os.defpath)),
        *also,
    )
    return check_protectable(protected, layout.writable)


def refuse_second_paths(layout: SandboxLayout, environment: Mapping[str, str]) -> None:
    """Refuse writable directories that programs outside use by another path, which would be unprotected.

    :raises InvalidRequest: if C{PATH}, a program or the home leads to such a directory, for example by a bind mount.
    """
    mounts = read_mounts()
    used = [layout.home, *layout.programs, *filter(isabs, environment.get("PATH", os.defpath).split(os.pathsep))]
    reached = {step for path in used for step in steps(path)}
    for place in layout.writable:
        for other in second_paths(place, mounts):
            if any(is_within(path, other) for path in reached) and not is_within(other, place):
                raise InvalidRequest(
                    f"{place} is also {other}, from where programs outside the sandbox run, and could not be protected "
                    f"there. Work in {other} instead."
                )


def protected_settings(places: Iterable[str]) -> Iterator[str]:
    """Yield the existing settings of shells and editors in each of these directories."""
    yield from (join(place, name) for place in places for name in _KEPT if lexists(join(place, name)))


def protected_start_files(home: str, writable: Sequence[str], environment: Mapping[str, str]) -> Iterator[str]:
    """Yield the start files of the user's shells, and directories of such files, that the agent could write.

    They are in writable directories, or behind a link in one. Missing directories are created, so that the agent
    cannot create them.

    :param environment: the caller's environment, which may set the paths of start files.
    :raises InvalidRequest: if a start file is missing, and the agent could create it.
    """
    named = {name: environment[name] for name in _START_VARIABLES if environment.get(name)}
    for name, path in named.items():
        if not isabs(path) and name != "ENV":
            raise InvalidRequest(
                f"{name} is the relative path {path}, so shells would start with files of the project, which the agent "
                "could write. Set it to an absolute path."
            )
    zsh = named.pop("ZDOTDIR", home)
    fish = [join(base, "fish") for base in (environment.get("XDG_CONFIG_HOME") or "", join(home, ".config")) if base]
    read_whole = [join(each, name) for each in fish for name in ("", *_DIRECTORIES_OF_FISH)]
    kept: list[str] = []  # nothing can be created in an existing read-only directory
    for path in (step for directory in (zsh, *read_whole) for step in steps(directory)):
        if is_within_any(path, writable) and not is_within_any(path, kept):
            os.makedirs(path, exist_ok=True)
            kept.append(path)
    files = [join(home, name) for name in (*_START_FILES, *_START_FILES_OF_ZSH)]
    files += [join(zsh, name) for name in _START_FILES_OF_ZSH] + [join(each, "config.fish") for each in fish]
    # guard against attack: the file that BASH_ENV names is protected
    #    -> test_sandbox_links.LinkTests.test_start_file_by_variable
    files += filter(isabs, named.values())
    linked = (step for directory in read_whole for step in linked_from(directory))
    for path in (*(step for each in files for step in steps(each)), *linked):
        if is_within_any(path, writable) and not is_within_any(path, kept):
            # guard against attack: a missing start file is refused
            #    -> test_sandbox_links.LinkTests.test_start_file_missing
            if not lexists(path):
                raise InvalidRequest(
                    f"Your shell reads {path} at startup. It does not exist, and the agent could create it. "
                    "Create it, or remove the link that points there."
                )
            kept.append(path)
    yield from kept


def protected_repositories(root: str, tree: TreeSnapshot, git: Git | None, replaced: str) -> Iterator[str]:
    """Yield the repositories in a directory, their hooks and configured programs, and the directories of submodules.

    :param tree: the snapshot of C{root}.
    :param git: git, or None if it is not installed.
    :param replaced: the repository that is replaced by a copy, or empty.
    :raises InvalidRequest: if a setting names a file that cannot be protected.
    """
    # guard against attack: repositories in the project are protected -> test_sandbox_git.GitTests.test_nested,
    #    instead yield from ()
    yield from (path for path in tree.repositories if path != replaced)
    if git is None:
        return
    around = work_tree_around(git, root)
    for work_tree in {around, *(os.path.dirname(path) for path in tree.repositories if path.lower().endswith("/.git"))}:
        yield from _find_named_by_settings(root, work_tree, git)
        # guard against attack: a place of a submodule is protected -> test_sandbox_git.GitTests.test_submodules
        for path in gitlinks(git, work_tree):
            if is_within(path, root) and not lexists(join(path, ".git")):
                if realpath(path) == path:
                    os.makedirs(path, exist_ok=True)
                yield path


def protected_programs(writable: Sequence[str], programs: Iterable[str], path: str) -> Iterator[str]:
    """Yield the programs in writable directories, each with its Python or package environment.

    :param programs: the directories and files that run outside, including Aileron's.
    :param path: the caller's C{PATH}.
    :raises InvalidRequest: if a program or an entry of C{PATH} cannot be protected.
    """
    for program in programs:
        # guard against attack: Aileron and the agent are protected -> test_sandbox.ProgramTests.test_environment,
        #    instead yield from ()
        yield from _environments_of(writable, steps(program))
    for entry in path.split(os.pathsep):
        # guard against attack: a relative entry of PATH is refused -> test_sandbox.ProgramTests.test_refused
        if not isabs(entry):
            raise InvalidRequest(
                f"PATH has the relative entry {entry or '(empty)'}, so programs of the project, which the agent could "
                "write, would run as yours. Remove it from PATH."
            )
        # guard against attack: a missing entry of PATH is refused -> test_sandbox.ProgramTests.test_refused
        if not isdir(entry) and any(is_within(step, place) for step in steps(entry) for place in writable):
            raise InvalidRequest(
                f"PATH contains {entry}, which does not exist and which the agent could create. "
                "Create it, or remove it from PATH."
            )
        # guard against attack: entries of PATH are protected -> test_sandbox.ProgramTests.test_path
        on_path = (
            *steps(entry),
            # guard against attack: programs that links on PATH lead to are protected
            #    -> test_sandbox.ProgramTests.test_path
            # guard against attack: a link that a program on PATH is reached by is refused
            #    -> test_breakout.BreakoutTests.test_chain_of_links
            *linked_from(entry),
        )
        yield from _environments_of(writable, on_path)


def _find_named_by_settings(root: str, work_tree: str, git: Git) -> Iterator[str]:
    # guard against attack: a directory of hooks is protected -> test_sandbox_git.GitTests.test_hooks,
    #    instead if (hooks := hooks_directory(git, work_tree)) is None
    if (hooks := hooks_directory(git, work_tree)) is not None:
        for path in _steps_within(root, hooks):
            if realpath(path) == path:
                os.makedirs(path, exist_ok=True)
            yield os.path.dirname(path) if os.path.basename(path) == _HUSKY else path
        # guard against attack: what a hook is a link to is protected
        #    -> test_breakout.BreakoutTests.test_hook_path_behind_a_link
        yield from _environments_of((root,), linked_from(hooks))
    for path in {step for named in named_paths(git, work_tree) for step in _steps_within(root, named)}:
        if not lexists(path):
            raise InvalidRequest(
                f"The git settings refer to {path}, which does not exist and which the agent could create. "
                "Create it, or remove the setting."
            )
        # guard against attack: a file that git's settings include is protected
        #    -> test_sandbox_git.GitTests.test_included
        yield path
    # guard against attack: a program that git's settings name and that is missing is refused
    #    -> test_breakout.BreakoutTests.test_program_missing
    _refuse_missing(root, work_tree, git)
    # guard against attack: python -m in git's settings is refused -> test_sandbox_git.GitTests.test_module
    _refuse_modules(work_tree, git)
    # guard against attack: a program in a shell command of git's settings is protected
    #    -> test_breakout.BreakoutTests.test_program_in_a_shell_script
    yield from {step for named in configured_files(git, work_tree) for step in _steps_within(root, named)}


def _steps_within(root: str, path: str) -> Iterator[str]:
    """Yield each link on the way of a path, and its target, that is below C{root} and in no C{.git} directory."""
    for step in steps(path):
        if is_within(step, root) and ".git" not in Path(step[len(root) :]).parts:
            yield step


def _refuse_missing(root: str, work_tree: str, git: Git) -> None:
    named = (step for path in missing_programs(git, work_tree) for step in _steps_within(root, path))
    if missing := next(named, None):
        raise InvalidRequest(
            f"A git setting refers to the program {missing}, which does not exist and which the agent could create. "
            "Create it, or remove the setting."
        )


def _refuse_modules(work_tree: str, git: Git) -> None:
    if setting := next(module_commands(git, work_tree), None):
        raise InvalidRequest(
            f"The git setting {setting} runs python -m, which loads modules from the project first, where the agent "
            "could put them. Use python -P -m (before Python 3.11: python -I -m), or remove the setting."
        )


def _environments_of(writable: Sequence[str], paths: Iterable[str]) -> Iterator[str]:
    for path in dict.fromkeys(paths):
        for place in writable:
            if lexists(path) and (is_within(path, place) or is_within(place, path)):
                yield _environment(path, place)


def _environment(path: str, place: str) -> str:
    """Return the outermost Python environment or package directory below C{place} that contains a program."""
    found = path
    current = path
    while is_within(current, place) and current != place:
        if os.path.basename(current) == _DEPENDENCIES or any(lexists(join(current, name)) for name in _ENVIRONMENTS):
            found = current
        current = os.path.dirname(current)
    return found
