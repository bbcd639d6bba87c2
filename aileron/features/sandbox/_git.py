"""Runs git for the launcher: without hooks, monitors or prompts, and never with the caller's C{GIT_DIR}."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO

from attrs import evolve, field, frozen

from aileron.model.errors import InvalidRequest

_SECONDS = 600.0
_NUMBER_OF_OBJECTS = 8  # its offset in a pack
NEUTRAL = (
    "core.fsmonitor=false",
    "core.hookspath=/dev/null",
    "gc.auto=0",
    "maintenance.auto=false",
    "submodule.recurse=false",
)
"""The settings passed to every command, as git lists them."""

_INHERITED = ("HOME", "PATH", "TMPDIR", "XDG_CONFIG_HOME")
_OURS = {
    "LC_ALL": "C",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
}
_STEERING = ("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY")

GITLINK = b"160000"
"""The mode of an index entry that is a nested repository."""

Entries = Mapping[bytes, frozenset[bytes]]
"""The entries of an index by path: mode, object name and stage."""


class GitError(Exception):
    """Raised if a git command failed. The message is the last line that git printed."""


@frozen
class Git:
    """One repository's git.

    :ivar program: the absolute path of git.
    :ivar environment: the environment of its processes.
    :ivar git_dir: the repository, or empty to find it from the work tree.
    :ivar work_tree: the working directory of its processes.
    """

    program: str
    environment: Mapping[str, str] = field(repr=False)
    git_dir: str = ""
    work_tree: str = "/"

    def at(self, git_dir: str | Path, work_tree: str) -> Git:
        """Return a copy of this object for another repository."""
        return evolve(self, git_dir=str(git_dir), work_tree=work_tree)

    def with_index(self, path: Path) -> Git:
        """Return a copy of this object that uses another index file."""
        return evolve(self, environment={**self.environment, "GIT_INDEX_FILE": str(path)})

    def run(self, *arguments: str, given: bytes | IO[bytes] = b"", into: IO[bytes] | None = None) -> bytes:
        """Run a command and return its output.

        :param given: the standard input.
        :param into: the file for the output, or None to return the output.
        :raises GitError: if the command failed, or ran longer than ten minutes.
        """
        settings = [word for setting in NEUTRAL for word in ("-c", setting)]
        where = [f"--git-dir={self.git_dir}", f"--work-tree={self.work_tree}"] if self.git_dir else []
        try:
            ran = subprocess.run(
                [self.program, *where, *settings, *arguments],
                input=given if isinstance(given, bytes) else None,
                stdin=None if isinstance(given, bytes) else given,
                stdout=subprocess.PIPE if into is None else into,
                stderr=subprocess.PIPE,
                timeout=_SECONDS,
                check=False,
                cwd=self.work_tree,
                env=self.environment,
            )
        except (OSError, subprocess.TimeoutExpired) as error:
            raise GitError(f"git {arguments[0]}: {error}") from error
        if ran.returncode != 0:
            raise GitError(_last_line(ran.stderr) or f"git {arguments[0]} ended with {ran.returncode}")
        return ran.stdout or b""

    def text(self, *arguments: str) -> str:
        """Return the output of a command without its last line end, or an empty text if it fails."""
        try:
            return os.fsdecode(self.run(*arguments)).rstrip("\n")
        except GitError:
            return ""

    def records(self, *arguments: str) -> Iterator[bytes]:
        """Yield the records of a command's output with C{-z}.

        :raises GitError: if the command failed.
        """
        return filter(None, self.run(*arguments).split(b"\0"))


def find_git(environment: Mapping[str, str]) -> Git | None:
    """Return the git on the caller's C{PATH}, or None.

    :raises InvalidRequest: if a variable makes git use another repository than the project's.
    """
    if named := [name for name in _STEERING if environment.get(name)]:
        raise InvalidRequest(f"A sandbox cannot protect a repository that {named[0]} names: unset it.")
    program = shutil.which("git", path=environment.get("PATH", os.defpath))
    if program is None:
        return None
    kept = {name: value for name, value in environment.items() if name in _INHERITED or name.startswith("GIT_CONFIG")}
    return Git(os.path.abspath(program), {**kept, **_OURS})


def copy_objects(source: Git, target: Git, *options: str, given: bytes) -> None:
    """Copy objects from one repository to another. The target checks each object.

    :param options: options of C{git pack-objects}.
    :param given: the list of objects as input of that command.
    :raises GitError: if an object is missing or malformed.
    """
    with TemporaryFile(dir=os.path.dirname(source.git_dir)) as pack:  # it may exceed our memory
        source.run("pack-objects", "--local", "--stdout", "-q", *options, given=given, into=pack)
        pack.seek(_NUMBER_OF_OBJECTS)
        if any(pack.read(4)):  # git refuses to store an empty pack
            pack.seek(0)
            target.run("index-pack", "--stdin", "--strict", given=pack)


def entries_of(git: Git, index: Path) -> Entries:
    """Return the entries of an index, or none if the file does not exist.

    :raises GitError: if the index cannot be read.
    """
    found: dict[bytes, frozenset[bytes]] = {}
    for record in git.with_index(index).records("ls-files", "--stage", "-z"):
        entry, _, path = record.partition(b"\t")
        found[path] = found.get(path, frozenset()) | {entry}
    return found


def linked_paths(entries: Entries) -> set[bytes]:
    """Return the paths of an index that are nested repositories."""
    return {path for path, found in entries.items() if any(entry.startswith(GITLINK) for entry in found)}


def import_index(before: Entries, after: Entries, source: Git, target: Git) -> list[str]:
    """Stage in the real repository what was staged in the copy.

    Only entries that differ are written, so that the others keep git's cached file data.

    :return: the paths that became nested repositories in the copy. They are not staged.
    :raises GitError: if an object is missing or malformed, or the index is locked.
    """
    changed = {path: after.get(path, frozenset()) for path in {*before, *after} if before.get(path) != after.get(path)}
    # guard against attack: a new submodule in the index is not imported -> test_sandbox_git.GitTests.test_embedded,
    #    instead linked = set[bytes]()
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
    """Return the input of C{git update-index}: the removal of each path, then its new entries.

    :param digits: the length of an object name.
    """
    removed = [b"0 " + b"0" * digits + b"\t" + path + b"\0" for path in sorted(staged)]
    added = [entry + b"\t" + path + b"\0" for path, entries in sorted(staged.items()) for entry in sorted(entries)]
    return [*removed, *added]


def _last_line(said: bytes) -> str:
    lines = said.decode("utf-8", "replace").strip().splitlines()
    return lines[-1][:300] if lines else ""
