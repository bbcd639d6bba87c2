"""Prepares a project for a sandbox, and afterwards imports the agent's work and reports changes to review."""

from __future__ import annotations

import fcntl
import os
import secrets
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
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

_READ_ONLY = (
    "Sandbox: the agent can read these repositories in the project, but not commit to them: {found}. To have it commit "
    "to one, start it in that directory."
)
_MOST_NAMED = 5

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
        """Within the context, provide the options of bubblewrap.

        Afterwards import the agent's work, and report changes.

        :param processes: the processes of the sandbox, which are ended first.
        :param first_descriptor: the first descriptor in which bubblewrap finds the mounted paths open, so that no link
            made meanwhile by another agent is followed, or None to mount by paths.
        :return: the options, and bubblewrap's descriptors with ours.
        :raises InvalidRequest: if a file that programs outside use cannot be protected from the agent.
        """
        root, git = self.layout.root, find_git(self.environment)
        repository = None if git is None or not os.path.lexists(f"{root}/.git") else find_repository(root, git)
        self._recover(root, git)
        before = read_tree(root)
        tracked = frozenset[str]() if git is None else tracked_files(git, root)
        copied = f"{root}/.git" if repository is not None and os.path.isdir(f"{root}/.git") else ""
        read_only = find_protected(self.layout, before, git, self.environment, copied=copied)
        self._report_read_only(root, before.repositories, f"{root}/.git" if repository is not None else "")
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
                self._report_lasting_changes(own)
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
        """Copy the repository, yield the options that mount the copy in its place, and import the copy afterwards.

        Without a repository, yield no options. In either case a private directory contains the data that the next
        launch needs if this launcher is killed.

        :param replaced: returns the read-only paths that the agent may have written after a replacement.
        :raises InvalidRequest: if the repository could not be copied.
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
                if copy is not None and replaced():  # git outside may read files that the agent wrote
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
        """Import a sandbox's copy, if there is one, and delete its directory.

        Keep the directory if processes still run, or work could not be imported.
        """
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

    def _report_read_only(self, root: str, repositories: Iterable[str], own: str) -> None:
        """Tell the user in which repositories below the project, such as submodules, the agent cannot commit.

        :param own: the repository of the project itself, or empty.
        """
        found = sorted(os.path.relpath(path.removesuffix("/.git"), root) for path in repositories if path != own)
        if found:
            more = len(found) - _MOST_NAMED
            named = [*map(visible, found[:_MOST_NAMED]), *([f"and {more} more"] if more > 0 else [])]
            self.say(_READ_ONLY.format(found=", ".join(named)))

    def _report_lasting_changes(self, before: Mapping[str, Mapping[str, Signature]]) -> None:
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

    :raises BlockingIOError: if another process holds it.
    """
    with open(directory / "lock", "ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
