"""An empty home for one test: its environment, the installed commands in it, and what they leave there."""

import json
import os
import shutil
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import attrs

from tests.functional.process import Command

# Everything else of the tester's environment stays outside.
ALLOWED = ("LANG", "LC_ALL", "TZ", "SSL_CERT_FILE")
PASSPHRASE_DESCRIPTOR = 3


@attrs.frozen
class Home:
    """A temporary directory with a user's home, an Aileron home, and a project to work in.

    :ivar variables: what this user has set.
    :ivar state: an Aileron home that several share; None: one of its own.
    """

    root: Path
    variables: Mapping[str, str] = attrs.Factory(dict)
    state: Path | None = None

    @classmethod
    def make(cls) -> "Home":
        """Create one, short of name and closed to other users."""
        home = cls(Path(tempfile.mkdtemp(prefix="aileron-")))
        for directory in (home.user, home.project, home.temporary):
            directory.mkdir()
        return home

    @property
    def user(self) -> Path:
        """``$HOME``."""
        return self.root / "user"

    @property
    def aileron(self) -> Path:
        """``$AILERON_HOME``; the commands create it."""
        return self.state or self.root / "aileron"

    @property
    def project(self) -> Path:
        """Where an agent works."""
        return self.root / "project"

    @property
    def temporary(self) -> Path:
        """``$TMPDIR``."""
        return self.root / "tmp"

    def remove(self) -> None:
        """Delete everything."""
        shutil.rmtree(self.root)

    def environment(self, **more: str) -> dict[str, str]:
        """The whole environment of a command that runs here.

        :param more: added last, and wins.
        """
        inherited = {name: os.environ[name] for name in ALLOWED if name in os.environ}
        # A pager that waits for nobody: what has to be read before trust grows longer than a terminal.
        ours = {"PATH": _path(), "TERM": "xterm", "PAGER": "cat", **self.variables}
        return inherited | self._places() | ours | more

    def script(self, name: str, *arguments: str, **environment: str) -> Command:
        """An installed console script, such as ``aileron``, to run in this home's project.

        :param environment: added to the home's own.
        """
        return Command(
            arguments=(installed(name), *arguments), environment=self.environment(**environment), directory=self.project
        )

    def with_passphrase(self, passphrase: str, name: str, *arguments: str, **environment: str) -> Command:
        """The same with ``--passphrase-fd N`` at its end and the passphrase on that descriptor."""
        options = ("--passphrase-fd", str(PASSPHRASE_DESCRIPTOR))
        command = self.script(name, *arguments, *options, **environment)
        return attrs.evolve(command, feeds={PASSPHRASE_DESCRIPTOR: passphrase.encode()})

    def on_terminal(self, name: str, *arguments: str, **environment: str) -> Command:
        """The same on a terminal of its own, to answer its questions there."""
        return attrs.evolve(self.script(name, *arguments, **environment), terminal=True)

    def discovery(self) -> Mapping[str, Any]:
        """What ``daemon.json`` says.

        :raises FileNotFoundError: when no daemon has written it.
        """
        content: Mapping[str, Any] = json.loads((self.aileron / "daemon.json").read_text())
        return content

    def _places(self) -> dict[str, str]:
        user = self.user
        return {
            "HOME": str(user),
            "AILERON_HOME": str(self.aileron),
            "TMPDIR": str(self.temporary),
            "XDG_CACHE_HOME": str(user / ".cache"),
            "XDG_CONFIG_HOME": str(user / ".config"),
            "XDG_DATA_HOME": str(user / ".local/share"),
            "XDG_STATE_HOME": str(user / ".local/state"),
        }


def installed(name: str) -> str:
    """The path of a console script that was installed beside this interpreter.

    :raises AssertionError: when there is none.
    """
    path = Path(sys.executable).parent / name
    if not path.exists():
        raise AssertionError(f"{name} is not installed beside {sys.executable}: install the package first")
    return str(path)


def _path() -> str:
    return os.pathsep.join([str(Path(sys.executable).parent), "/usr/local/bin", "/usr/bin", "/bin"])
