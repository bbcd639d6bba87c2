"""Prepares a project for a sandbox, and afterwards imports the agent's work and reports changes to review."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from attrs import field, frozen

from aileron.base.text import visible

from ._copy import RepositoryCopy, forget_copy, make_copy, read_copy, was_copied
from ._git import Git, find_git
from ._import import Import
from ._processes import SandboxProcesses, end_recorded
from ._protection import find_protected
from ._repository import Repository, find_repository, tracked_files
from ._tree import Signature, hold_open, read_files, read_tree, watch_replacements
from .layout import SandboxLayout

_COPIES = "sandboxes"
_KEPT, _PROCESS = "kept", "process.json"
_MOST_PATHS = 50
_MOST_OPENED = 400
_CHANGED = "Sandbox: these files are new or changed, and your programs may run their contents. Review them first:"
_STAYS = "Sandbox: of what the agent wrote in your home, this stays: {found}. All else there was discarded."
_NOT_ENDED = "Sandbox: its processes could not be stopped. Nothing was imported; its files are in {directory}."
_NOT_YET = (
    "Sandbox: protected files were replaced while the agent ran, and it may have written them. Nothing was imported "
    "yet; the next launch here will do that. Until then the work is kept in {directory}."
)

Say = Callable[[str], object]


@frozen
class SandboxProject:
    """A project in which an agent works in a sandbox.

    :ivar environment: the caller's environment, by which git and programs are found.
    :ivar say: shows the user one line.
    """

    layout: SandboxLayout
    environment: Mapping[str, str] = field(repr=False)
    say: Say

    @contextmanager
    def prepared(
        self, processes: SandboxProcesses, *, first_descriptor: int | None = None
    ) -> Iterator[tuple[list[str], Mapping[int, int]]]:
        """Provide the options of bubblewrap within the context. Afterwards import the agent's work, and report changes.

        :param processes: the processes of the sandbox, which are ended first.
        :param first_descriptor: the first descriptor in which bubblewrap finds the mounted paths open, so that no link
            made meanwhile by another agent is followed, or None to mount by paths.
        :return: the options, and bubblewrap's descriptors with ours.
        :raises InvalidRequest: a file that programs outside use cannot be protected from the agent.
        """
        root, git = self.layout.root, find_git(self.environment)
        repository = None if git is None or not os.path.lexists(f"{root}/.git") else find_repository(root, git)
        self._recover(root, git)
        before = read_tree(root)
        tracked = frozenset[str]() if git is None else tracked_files(git, root)
        copied = f"{root}/.git" if repository is not None and os.path.isdir(f"{root}/.git") else ""
        read_only = find_protected(self.layout, before, git, self.environment, copied=copied)
        own = read_files(map(os.path.realpath, (*self.layout.own, *self.layout.own_files)))
        covered = [] if repository is None else [repository.git_dir]
        by_path = first_descriptor is None
        mounted = () if by_path else self.layout.mounted(read_only, self.environment)[:_MOST_OPENED]
        with hold_open(mounted) as held, watch_replacements([*read_only, *covered]) as replaced:
            numbers = {path: place for place, path in enumerate(held, first_descriptor or 0)}
            try:
                with self._mount_copy(repository, git, processes, replaced) as mounts:
                    options = self.layout.arguments(read_only, mounts, self.environment, numbers)
                    yield options, {number: held[path] for path, number in numbers.items()}
            finally:
                processes.end()
                self._tell_what_stays(own)
                changed = (
                    # guard against attack: a replaced file is reported
                    #    -> test_sandbox_replaced.ReplacedTests.test_program
                    *replaced(),
                    # guard against attack: new and changed files are reported -> test_sandbox.SandboxTests.test_told
                    *before.changes(read_tree(root), tracked),
                )
                self._tell(changed)

    @contextmanager
    def _mount_copy(
        self,
        repository: Repository | None,
        git: Git | None,
        processes: SandboxProcesses,
        replaced: Callable[[], tuple[str, ...]],
    ) -> Iterator[list[str]]:
        """Provide the options that mount a copy in place of the repository, if there is one.

        In any case a directory contains the data that the next launch needs if this launcher is killed.

        :param replaced: returns the read-only paths that the agent may have written after a replacement.
        """
        directory = self._copies / secrets.token_hex(6)
        directory.mkdir(mode=0o700, parents=True)
        with _lock(directory):
            copy = None if repository is None or git is None else make_copy(repository, git, directory)
            processes.record = directory / _PROCESS
            try:
                yield [] if copy is None else list(copy.mounts())
            finally:
                ended = processes.end()
                # guard against attack: nothing is imported where a file was replaced
                #    -> test_sandbox_replaced.ReplacedTests.test_program
                if copy is not None and replaced():  # git here may obey files that the agent wrote there
                    self.say(_NOT_YET.format(directory=directory))
                else:
                    self._conclude(directory, copy, ended=ended)

    @property
    def _copies(self) -> Path:
        return Path(self.layout.state) / _COPIES

    def _recover(self, root: str, git: Git | None) -> None:
        """End processes of earlier sandboxes, import their copies for this project, and delete incomplete copies.

        A directory whose lock is held belongs to a running launcher.
        """
        for directory in sorted(self._copies.iterdir()) if self._copies.is_dir() else ():
            if not directory.is_dir() or (directory / _KEPT).exists():
                continue
            with suppress(BlockingIOError), _lock(directory):
                ended = end_recorded(directory / _PROCESS)
                if not was_copied(directory):
                    self._conclude(directory, None, ended=ended)
                    continue
                copy = None if git is None else read_copy(directory, git)
                if copy is not None and copy.snapshot.repository.root == root:
                    self.say("Sandbox: importing the work of an earlier run.")
                    self._conclude(directory, copy, ended=ended)

    def _conclude(self, directory: Path, copy: RepositoryCopy | None, *, ended: bool) -> None:
        """Import a sandbox's copy, if there is one, and delete its directory."""
        if not ended:
            self.say(_NOT_ENDED.format(directory=directory))
            return
        if copy is None:
            shutil.rmtree(directory)
            return
        work = Import(copy)
        work.run()
        for line in work.lines:
            self.say(f"Sandbox: {line}")
        if work.complete:
            forget_copy(copy)
        else:
            (copy.directory / _KEPT).touch()

    def _tell_what_stays(self, before: Mapping[str, Mapping[str, Signature]]) -> None:
        """Report where in the user's home the agent has created or changed its own files."""
        after = read_files(before)
        counts = {path: sum(found != before[path].get(name) for name, found in after[path].items()) for path in after}
        found = [f"{visible(path)} ({_files(count)})" for path, count in counts.items() if count]
        if found:
            self.say(_STAYS.format(found=", ".join(found)))

    def _tell(self, paths: tuple[str, ...]) -> None:
        if not paths:
            return
        self.say(_CHANGED)
        for path in sorted(set(paths[:_MOST_PATHS])):
            self.say(f"  {path}")
        if len(paths) > _MOST_PATHS:
            listed = self._copies / f"changed-{secrets.token_hex(6)}.txt"
            self._copies.mkdir(mode=0o700, parents=True, exist_ok=True)
            # guard against attack: what is too much to be shown is listed in a file
            #    -> test_breakout.ToldTests.test_many
            listed.write_text("".join(f"{visible(path)}\n" for path in paths), encoding="utf-8")
            self.say(f"  and {len(paths) - _MOST_PATHS} more: all are listed in {listed}")


def _files(count: int) -> str:
    return f"{count} new or changed file{'' if count == 1 else 's'}"


@contextmanager
def _lock(directory: Path) -> Iterator[None]:
    """Hold a directory's lock, which the kernel releases when the process ends.

    :raises BlockingIOError: another process holds it.
    """
    with open(directory / "lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
