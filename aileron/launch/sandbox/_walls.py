"""Where the walls stand, as the command line of bubblewrap: decided without doing anything.

Everything can be read and nothing written, but for the project and what is the agent's own; then come the things that
are hidden, so that they are hidden whatever lies around them.
"""

from __future__ import annotations

from collections.abc import Iterator
from os.path import commonpath, realpath
from pathlib import Path

from attrs import frozen

from aileron.errors import InvalidRequest

from ._later import absent, kept_as_it_is

_PROFILES = (
    ".mozilla",
    ".config/chromium",
    ".config/google-chrome",
    ".config/BraveSoftware",
    ".config/microsoft-edge",
    ".config/vivaldi",
    ".cache/mozilla",
    ".cache/chromium",
    ".cache/google-chrome",
    ".cache/BraveSoftware",
    ".var/app",
    "snap",
)
"""Where browsers keep profiles, in the user's home; flatpaks and snaps keep theirs in the last two."""

_MADE_ANEW = ("*.sqlite*", "installation_id", "tmp", ".tmp", "shell_snapshots", "thread-writer-locks")
"""Among settings what is none, and is of no use where it cannot be written: what comes of it is thrown away, too."""

_SHARED = ("/tmp", "/run/user", "/var/tmp")  # noqa: S108  # hidden, not written to
_NAMESPACES = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts", "--unshare-net")
_NO_RIGHTS = ("--cap-drop", "ALL", "--die-with-parent")


@frozen
class Walls:
    """What is where, for one agent.

    :ivar home: the user's.
    :ivar state: Aileron's home.
    :ivar project: where the agent works.
    :ivar own: directories in which the agent keeps what is its own; they may lie among its settings.
    :ivar settings: directories of the agent's settings: what it writes there is thrown away.
    :ivar sockets: those that it must not find.
    :ivar programs: directories that it must be able to read, though they lie where others' files are hidden.
    """

    home: str
    state: str
    project: str
    own: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    sockets: tuple[str, ...] = ()

    @property
    def places(self) -> tuple[str, ...]:
        """Where it writes besides what is its own: the project's repository, and the project.

        :raises InvalidRequest: the project would have the user's whole home in it.
        """
        return self._repository(), realpath(self.project)

    @property
    def absent(self) -> tuple[str, ...]:
        """What the user's own programs would run later, and is not there: it could not be kept from being made."""
        return tuple(map(str, absent(self.places)))

    def arguments(self) -> list[str]:
        """The options of bubblewrap that make these walls.

        :raises InvalidRequest: the project would have the user's whole home in it.
        """
        return [
            *_NAMESPACES,
            *_NO_RIGHTS,
            *self._world(),
            *_writable(self._repository()),
            *kept_as_it_is(self.places),
            *self._thrown_away(),
            *(word for path in dict.fromkeys(map(realpath, self.own)) for word in _writable(path)),
            *self._hidden(),
            "--chdir",
            self.project,
        ]

    def _world(self) -> Iterator[str]:
        yield from ("--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
        for place in _SHARED:
            yield from ("--tmpfs", place)
        for path in dict.fromkeys((realpath(self.home), *self.programs)):
            if any(_within(path, place) for place in _SHARED):
                yield from ("--ro-bind", path, path)

    def _thrown_away(self) -> Iterator[str]:
        """A directory that is forgotten, with what the true one holds to be read in it."""
        for directory in dict.fromkeys(map(realpath, self.settings)):
            yield from ("--tmpfs", directory)
            for path in sorted(Path(directory).iterdir()) if Path(directory).is_dir() else ():
                if not any(path.match(pattern) for pattern in _MADE_ANEW):
                    yield from ("--ro-bind", str(path), str(path))

    def _repository(self) -> str:
        """The project's repository, or where there is none the project's directory."""
        project, home = realpath(self.project), realpath(self.home)
        if _within(home, project):
            raise InvalidRequest(
                "In a sandbox an agent cannot work in your home directory itself, where it could change what your "
                "shell does: go to a project's directory."
            )
        above = (path for path in (Path(project), *Path(project).parents) if (path / ".git").exists())
        repository = str(next(above, project))
        return project if _within(home, repository) else repository

    def _hidden(self) -> Iterator[str]:
        """An empty directory in the place of each that is there; last of all, so that nothing opens it again."""
        profiles = (str(Path(self.home) / name) for name in _PROFILES)
        for path in dict.fromkeys(realpath(each) for each in (self.state, *profiles) if Path(each).is_dir()):
            yield from ("--tmpfs", path)
        for path in self.sockets:
            yield from ("--ro-bind", "/dev/null", path)


def _writable(path: str) -> tuple[str, str, str]:
    return ("--bind", path, path)


def _within(path: str, directory: str) -> bool:
    return commonpath((path, directory)) == directory
