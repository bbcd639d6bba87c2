"""Decides which files an agent sees and may write in its sandbox, as options of bubblewrap.

Everything is readable and nothing writable, except the project and the agent's own files. Read-only mounts
inside these follow, and hidden directories come last, so that no later mount exposes them.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from os.path import commonpath, dirname, isabs, isdir, islink, join, realpath
from pathlib import Path
from types import MappingProxyType

from attrs import frozen

from aileron.model.errors import InvalidRequest

from ._mounts import find_copies, read_mounts, second_paths

_PROFILES = (
    *".mozilla .librewolf .waterfox .zen .floorp .thunderbird .opera .torbrowser .tor-browser .mullvad-browser".split(),
    *("snap", ".var/app", ".tor project", ".mullvad/mullvadbrowser", ".moonchild productions"),
    *(f"{name}/Browser/TorBrowser/Data" for name in ("tor-browser", "tor-browser_en-US", "mullvad-browser")),
)
"""The directories of browser profiles in the user's home. C{.var/app} is for flatpaks, C{snap} for snaps."""

_BROWSERS = (
    *"chromium chromium-beta chromium-dev thorium yandex-browser yandex-browser-beta".split(),
    *(f"google-chrome{kind}" for kind in ("", "-beta", "-unstable", "-canary", "-for-testing")),
    *(f"microsoft-edge{kind}" for kind in ("", "-beta", "-dev", "-canary")),
    *"BraveSoftware vivaldi vivaldi-snapshot opera opera-beta opera-developer epiphany falkon qutebrowser".split(),
    *"mozilla thunderbird librewolf waterfox floorp zen torbrowser tor-browser mullvad-browser".split(),
    *("tor project", "mullvad/mullvadbrowser", "moonchild productions"),
)
"""The names of browsers' directories among a user's settings, data and caches."""

_BASES = {"XDG_CONFIG_HOME": ".config", "XDG_DATA_HOME": ".local/share", "XDG_CACHE_HOME": ".cache"}
"""The variables that set the directories of settings, data and caches, and their defaults in the user's home."""

_MADE_ANEW = ("*.sqlite*", "installation_id", "tmp", ".tmp", "shell_snapshots", "thread-writer-locks", "locks")
"""Patterns of files among an agent's settings that are data and must be writable. Their changes are discarded, too."""

_MARKER = "secrets.json"
"""The name of the vault's file, by which a directory is recognized as Aileron's home."""

_SHARED = ("/tmp", "/run/user", "/var/tmp")  # noqa: S108  # these directories are hidden
_NAMESPACES = (
    "--unshare-user",
    # guard against attack: processes outside are out of reach -> test_sandbox.SandboxTests.test_nothing_to_be_had
    "--unshare-pid",
    "--unshare-ipc",
    "--unshare-uts",
    "--unshare-net",
)
_MOST_LINKS = 40  # as many as the kernel follows
_NO_RIGHTS = ("--cap-drop", "ALL", "--die-with-parent")


@frozen
class SandboxLayout:
    """The directories of one sandbox.

    :ivar home: the user's home.
    :ivar state: Aileron's home.
    :ivar project: the agent's working directory.
    :ivar own: the directories of the agent's own files. They may be inside those of its settings.
    :ivar own_files: the agent's own files outside of the directories C{own}.
    :ivar programs: files that the agent must be able to read, even in hidden directories, and must not write.
    :ivar settings: the directories of the agent's settings. Changes that the agent makes there are discarded.
    :ivar replaced: our paths by the paths in the sandbox where they are mounted, read-only. A path that does not exist
        must be in C{/tmp}.
    :ivar whole_repository: True if the whole repository around the project is writable, else only the project.
    """

    home: str
    state: str
    project: str
    own: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    whole_repository: bool = True
    own_files: tuple[str, ...] = ()
    replaced: Mapping[str, str] = MappingProxyType({})

    @property
    def root(self) -> str:
        """The project's repository, or the project's directory if there is none.

        It is the project's directory too if the repository is not writable or contains the user's home.

        :raises InvalidRequest: if the directory contains the user's whole home.
        """
        project, home = realpath(self.project), realpath(self.home)
        if any(is_within(each, project) for each in (home, *second_paths(home, read_mounts()))):
            raise InvalidRequest(
                "A sandboxed agent cannot work in your home directory itself, where it could change your shell's "
                "startup files. Change to a project directory."
            )
        if not self.whole_repository:
            return project
        above = (path for path in (Path(project), *Path(project).parents) if os.path.lexists(path / ".git"))
        repository = str(next(above, project))
        return project if is_within(home, repository) else repository

    @property
    def places(self) -> tuple[str, ...]:
        """The directories in which the user works: the repository, and the project in it."""
        return tuple(dict.fromkeys((self.root, realpath(self.project))))

    @property
    def writable(self) -> tuple[str, ...]:
        """The directories that the agent may write."""
        return tuple(dict.fromkeys((self.root, *self._kept)))

    @property
    def _kept(self) -> tuple[str, ...]:
        return tuple(map(realpath, (*self.own, *self.own_files)))

    def arguments(
        self,
        read_only: Sequence[str] = (),
        repository: Sequence[str] = (),
        environment: Mapping[str, str] = MappingProxyType({}),
        opened: Mapping[str, int] = MappingProxyType({}),
    ) -> list[str]:
        """Return the options of bubblewrap that make this sandbox.

        :param read_only: the sorted existing paths in writable directories that are read-only.
        :param repository: the options that mount a copy in place of the project's repository.
        :param environment: the user's environment, which may move browser profiles.
        :param opened: open descriptors of some of L{mounted}, so that a link that replaces
            a path is not followed.
        :raises InvalidRequest: if the project contains the user's whole home.
        """
        hidden = self._list_hidden(environment)
        return [
            *_NAMESPACES,
            *_NO_RIGHTS,
            *self._world(),
            *_bind(self.root, opened),
            *self._mounts(read_only, hidden, opened),
            *repository,
            # guard of own tools: a file that is replaced is replaced in the project too
            #    -> features.sandbox.test_layout.LayoutTests.test_replaced_inside
            *self._mount_replaced(inside=True),
            *(word for path in hidden for word in _hide(path)),
            "--chdir",
            self.project,
        ]

    def mounted(self, read_only: Sequence[str], environment: Mapping[str, str]) -> list[str]:
        """Return the paths to mount that another program could replace meanwhile.

        These are the root, and paths below the root or the agent's own directories.
        """
        above = self._above(read_only, self._list_hidden(environment))
        return list(dict.fromkeys((self.root, *sorted((*above, *read_only)))))

    def _world(self) -> Iterator[str]:
        yield from (
            # guard against attack: all but the project can only be read
            #    -> test_sandbox.SandboxTests.test_nothing_to_be_had, instead "--bind"
            "--ro-bind",
            *("/", "/"),
            *("--dev", "/dev"),
            *("--proc", "/proc"),
        )
        for place in _SHARED:
            yield from ("--tmpfs", place)
        for path in dict.fromkeys((realpath(self.home), *self.programs)):
            if is_within_any(path, _SHARED):
                yield from ("--ro-bind", path, path)
        yield from self._mount_replaced(inside=False)

    def _mount_replaced(self, *, inside: bool) -> Iterator[str]:
        """Yield the mounts of replaced paths.

        :param inside: whether to yield those in the project, the agent's own directories and those of its settings,
            which must be mounted after these.
        """
        places = (self.root, *self._kept, *map(realpath, self.settings))
        for path, ours in self.replaced.items():
            if is_within_any(path, places) is inside:
                yield from ("--ro-bind", ours, path)

    def _above(self, read_only: Sequence[str], hidden: Sequence[str]) -> set[str]:
        """Return the directories above settings, read-only and hidden paths, which could otherwise be moved away."""
        settings, own = tuple(map(realpath, self.settings)), self._kept
        return {
            str(parent)
            for path in (*read_only, *hidden, *settings)
            for parent in Path(path).parents
            if any(is_within(str(parent), place) and str(parent) != place for place in (self.root, *own))
            and (is_within_any(str(parent), own) or not is_within_any(str(parent), settings))
        }

    def _mounts(self, read_only: Sequence[str], hidden: Sequence[str], opened: Mapping[str, int]) -> Iterator[str]:
        """Yield the mounts of settings, of the agent's own files and of read-only paths, outer mounts first.

        The directories above these are mounted, too, since a mount cannot be moved away. Paths inside a read-only path
        need no mount.
        """
        settings, own = tuple(map(realpath, self.settings)), self._kept
        mounts = {
            # guard against attack: directories above what is protected cannot be moved
            #    -> test_sandbox_git.GitTests.test_hooks
            **{path: _bind(path, opened) for path in self._above(read_only, hidden)},
            # guard against attack: what the agent writes to its settings is thrown away
            #    -> test_sandbox_links.LinkTests.test_settings_behind_a_link,
            #    instead {path: _bind(path) for path in settings}
            **{path: tuple(_discard_writes(path)) for path in settings},
            **{path: _bind(path, opened) for path in own},
            **{path: _bind(path, opened, "--ro-bind") for path in read_only},
        }
        for path in sorted(mounts):
            if not any(str(parent) in read_only for parent in Path(path).parents):
                yield from mounts[path]

    def _list_hidden(self, environment: Mapping[str, str]) -> list[str]:
        """Return the directories to hide with empty mounts: Aileron's home, and profiles of browsers and others.

        Profiles are hidden both where variables place them and at the usual places, where older ones may be. The second
        paths of all these directories, and copies of Aileron's home in snapshots, are included.
        """
        bases = [join(self.home, place) for place in _BASES.values()]
        bases += [environment[name] for name in _BASES if isabs(environment.get(name, ""))]
        browsers = (join(base, name) for base in bases for name in _BROWSERS)
        profiles = (join(self.home, name) for name in _PROFILES)
        secret = (
            # guard against attack: Aileron's home is hidden -> test_sandbox.SandboxTests.test_nothing_to_be_had
            self.state,
            # guard against attack: browsers' profiles are hidden -> test_sandbox.SandboxTests.test_nothing_to_be_had
            *profiles,
            *browsers,
        )
        found = [realpath(each) for each in secret if isdir(each)]
        mounts = read_mounts()
        seconds = [path for each in dict.fromkeys(found) for path in second_paths(each, mounts)]
        return list(dict.fromkeys((*found, *seconds, *find_copies(realpath(self.state), _MARKER, mounts))))


def _hide(path: str) -> tuple[str, ...]:
    return ("--tmpfs", path) if isdir(path) else ("--ro-bind", os.devnull, path)


def _discard_writes(directory: str) -> Iterator[str]:
    """Yield the options for a writable directory whose changes are discarded, with the real content readable."""
    yield from ("--tmpfs", directory)
    for path in sorted(Path(directory).iterdir()) if Path(directory).is_dir() else ():
        if not any(path.match(pattern) for pattern in _MADE_ANEW):
            yield from ("--ro-bind", str(path), str(path))


def _bind(path: str, opened: Mapping[str, int], option: str = "--bind") -> tuple[str, str, str]:
    """Return the option that mounts a path at its own place, by its open descriptor if there is one."""
    return (f"{option}-fd", str(opened[path]), path) if path in opened else (option, path, path)


def installed_programs() -> tuple[str, ...]:
    """Return the directories where Aileron and its Python are installed."""
    return tuple(dict.fromkeys((sys.prefix, sys.base_prefix, *map(os.path.abspath, sys.path))))


def is_within(path: str, directory: str) -> bool:
    """Return whether a path is a directory or lies below it; both are absolute."""
    return commonpath((path, directory)) == directory


def is_within_any(path: str, directories: Iterable[str]) -> bool:
    """Return whether a path is one of these directories or lies below one."""
    return any(is_within(path, directory) for directory in directories)


def steps(path: str) -> Iterator[str]:
    """Yield each symbolic link that an absolute path passes, links to directories included, and at last the target.

    The directory part of each yielded path is free of links.
    """
    current, waiting, links = "/", path.split(os.sep)[::-1], 0
    while waiting:
        name = waiting.pop()
        if name == os.pardir:
            current = dirname(current)
        elif name not in ("", os.curdir):
            place = join(current, name)
            if links < _MOST_LINKS and islink(place):
                links += 1
                yield place
                target = os.readlink(place)
                waiting.extend(target.split(os.sep)[::-1])
                current = "/" if isabs(target) else current
            else:
                current = place
    yield current


def linked_from(directory: str) -> Iterator[str]:
    """Yield the targets of the links in a directory, and each link on the way except the first."""
    try:
        links = [entry.path for entry in os.scandir(realpath(directory)) if entry.is_symlink()]
    except OSError:
        return
    for link in links:
        yield from list(steps(link))[1:]


def check_protectable(paths: Iterable[str], writable: Sequence[str]) -> list[str]:
    """Return the paths in writable directories, in order and without duplicates.

    :raises InvalidRequest: if protecting a path would leave nothing writable, or if the agent could replace the path.
    """
    found = {path for path in paths if any(is_within(path, place) or is_within(place, path) for place in writable)}
    for path in found:
        if any(is_within(place, path) for place in writable):
            raise InvalidRequest(
                f"The sandboxed agent could change {path}, which runs outside the sandbox. Work in another directory."
            )
        if realpath(path) != path:
            raise InvalidRequest(
                f"The sandboxed agent could replace {path}, which programs outside the sandbox use, because its path "
                "contains a symbolic link."
            )
    return sorted(found)
