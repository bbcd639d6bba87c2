"""The paths of the files in the state directory, and how the environment names that directory."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from attrs import field, frozen
from attrs.validators import instance_of

from aileron.model.errors import Forbidden, InvalidRequest

_PRIVATE_DIRECTORY = 0o700
_OTHERS = 0o077


@frozen
class Home:
    """The paths of the files in one home, which is the directory of the daemon's files."""

    root: Path = field(validator=instance_of(Path))

    @root.validator
    def _absolute(self, _attribute: object, value: Path) -> None:
        if not value.is_absolute():
            raise InvalidRequest("AILERON_HOME must be an absolute path.")

    @property
    def actions(self) -> Path:
        """The directory of action files."""
        return self.root / "actions"

    @property
    def connectors(self) -> Path:
        """The directory of connector files."""
        return self.root / "connectors"

    @property
    def config(self) -> Path:
        """The daemon's configuration file, without effect until the operator trusts it."""
        return self.root / "config.yaml"

    @property
    def database(self) -> Path:
        """The database of runs, sessions and audit records."""
        return self.root / "aileron.db"

    @property
    def moved_database(self) -> Path:
        """The database of before the move to a PostgreSQL server. While it exists, no new file takes its place."""
        return self.root / "aileron.db.moved"

    def has_store(self) -> bool:
        """Return True if the home has a database, or had one that was moved to a server."""
        return self.database.exists() or self.moved_database.exists()

    def is_moved(self) -> bool:
        """Return True if the store is on a server. Then a daemon starts only with its vault unlocked."""
        return self.moved_database.exists() and not self.database.exists()

    @property
    def secrets(self) -> Path:
        """The vault file."""
        return self.root / "secrets.json"

    @property
    def audit_key(self) -> Path:
        """The file with the key of the next audit record while the vault is locked."""
        return self.root / "audit.key"

    @property
    def discovery(self) -> Path:
        """The file that describes how to reach the running daemon."""
        return self.root / "daemon.json"

    @property
    def ports(self) -> Path:
        """The file with the ports that the daemon used last."""
        return self.root / "ports.json"

    @property
    def unlocking(self) -> Path:
        """The file that says why no key source has unlocked the vault yet."""
        return self.root / "unlocking.json"

    @property
    def lock(self) -> Path:
        """The file that the running daemon locks."""
        return self.root / "daemon.lock"

    @property
    def log(self) -> Path:
        """The directory of log files."""
        return self.root / "log"


def find_home(environ: Mapping[str, str]) -> Home:
    """Return the home that C{environ} names: C{AILERON_HOME}, else C{.aileron} in C{HOME}.

    :raises InvalidRequest: if neither variable is set, or the path is not absolute.
    """
    chosen = environ.get("AILERON_HOME")
    if chosen:
        return Home(Path(chosen))
    user = environ.get("HOME")
    if not user:
        raise InvalidRequest("Neither AILERON_HOME nor HOME is set.")
    return Home(Path(user) / ".aileron")


def prepare(home: Home) -> None:
    """Create the home and its directories, private to this user.  Idempotent.

    Permissions of other users on existing files of this user are removed.  Files of another user are never changed.

    :raises Forbidden: if a part of the home belongs to another user, or the home is a link that belongs to another
        user.
    :raises OSError: if a directory cannot be created.
    """
    _refuse_foreign_link(home.root)
    for directory in (home.root, home.actions, home.connectors, home.log):
        directory.mkdir(mode=_PRIVATE_DIRECTORY, parents=directory is home.root, exist_ok=True)
        _make_private(directory)
    for file in (
        home.database,
        home.moved_database,
        home.secrets,
        home.audit_key,
        home.discovery,
        home.ports,
        home.lock,
    ):
        if file.exists():
            _make_private(file)


def _make_private(path: Path) -> None:
    found = path.stat()
    if found.st_uid != os.getuid():
        raise Forbidden(f"{path} belongs to another user.")
    if stat.S_IMODE(found.st_mode) & _OTHERS:
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def _refuse_foreign_link(path: Path) -> None:
    """Raise if C{path} is a link that another user could redirect at any time.  Links of root are accepted.

    :raises Forbidden: if C{path} is a link of another user.
    """
    if path.is_symlink() and path.lstat().st_uid not in (os.getuid(), 0):
        raise Forbidden(f"{path} is a link that belongs to another user.")
