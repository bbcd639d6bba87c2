"""The state directory: where everything lies, who may read it, which daemon owns it, and how to find that daemon.

All of it is small and local, so reading and writing are synchronous.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import secrets
import stat
import struct
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import cast

import attrs
from attrs import field, frozen
from attrs.validators import ge, instance_of, le, optional

from aileron.errors import Conflict, Forbidden, InvalidRequest

_MAX_FILE_BYTES = 64 * 1024
_PRIVATE_DIRECTORY = 0o700
_PRIVATE_FILE = 0o600
_OTHERS = 0o077

# struct flock of fcntl(2), with the kernel's own alignment; l_type first on Linux, l_start first on macOS and the BSDs.
_LINUX = sys.platform.startswith("linux")
_FLOCK = struct.Struct("@hhqqi0q" if _LINUX else "@qqihh")

# A POSIX record lock belongs to the process and falls when *any* of its descriptors of that file is closed,
# so a process that holds one must not open the file again to ask about it.
_held: dict[Path, int] = {}


@frozen
class Home:
    """The paths of one state directory."""

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
        """The daemon's configuration; inert until the operator trusts it."""
        return self.root / "config.yaml"

    @property
    def egress(self) -> Path:
        """The hosts that sandboxed agents may reach, by project; inert until the operator trusts it."""
        return self.root / "egress.toml"

    @property
    def packages(self) -> Path:
        """The packages that are installed; inert until the operator trusts it."""
        return self.root / "packages.json"

    @property
    def database(self) -> Path:
        """The database of runs, sessions and audit."""
        return self.root / "aileron.db"

    @property
    def secrets(self) -> Path:
        """The vault."""
        return self.root / "secrets.json"

    @property
    def audit_key(self) -> Path:
        """The key of the next record while the vault is locked."""
        return self.root / "audit.key"

    @property
    def discovery(self) -> Path:
        """The file that says how to reach the running daemon."""
        return self.root / "daemon.json"

    @property
    def ports(self) -> Path:
        """The ports that the daemon had last."""
        return self.root / "ports.json"

    @property
    def last_backup(self) -> Path:
        """The note of where the last backup of this home was written, and when."""
        return self.root / "last-backup.json"

    @property
    def lock(self) -> Path:
        """The file that the running daemon holds locked."""
        return self.root / "daemon.lock"

    @property
    def log(self) -> Path:
        """The directory of log files."""
        return self.root / "log"


def find_home(environ: Mapping[str, str]) -> Home:
    """Return the home that C{environ} names: C{AILERON_HOME}, else C{.aileron} in C{HOME}.

    :raises InvalidRequest: neither is set, or the path is not absolute.
    """
    chosen = environ.get("AILERON_HOME")
    if chosen:
        return Home(Path(chosen))
    user = environ.get("HOME")
    if not user:
        raise InvalidRequest("Neither AILERON_HOME nor HOME is set.")
    return Home(Path(user) / ".aileron")


def prepare(home: Home) -> None:
    """Make the home and its directories, private to this user, or refuse.  Twice is safe.

    What is ours but open to others is closed; what is not ours is never touched.

    :raises Forbidden: a part of it is somebody else's, or is no directory; or the home is a link of somebody else's.
    """
    _refuse_foreign_link(home.root)
    for directory in (home.root, home.actions, home.connectors, home.log):
        directory.mkdir(mode=_PRIVATE_DIRECTORY, parents=directory is home.root, exist_ok=True)
        _make_private(directory)
    for file in (home.database, home.secrets, home.audit_key, home.discovery, home.ports, home.lock):
        if file.exists():
            _make_private(file)


def _refuse_foreign_link(path: Path) -> None:
    """Refuse a link that another user could lead elsewhere at any time; root's is as good as ours.

    :raises Forbidden: it is one.
    """
    if path.is_symlink() and path.lstat().st_uid not in (os.getuid(), 0):
        raise Forbidden(f"{path} is a link that belongs to another user.")


def _make_private(path: Path) -> None:
    found = path.stat()
    if found.st_uid != os.getuid():
        raise Forbidden(f"{path} belongs to another user.")
    if stat.S_IMODE(found.st_mode) & _OTHERS:
        path.chmod(stat.S_IMODE(found.st_mode) & ~_OTHERS)


def atomic_write(path: Path, data: bytes, mode: int = _PRIVATE_FILE, *, replace: bool = True) -> None:
    """Put C{data} at C{path} durably: readers and crashes see the old file or the whole new one.

    :param replace: whether a file that is there may be replaced.
    :raises FileExistsError: it may not, and there is one.
    :raises OSError: it could not be written; what was there is untouched.
    """
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    try:
        _write_new(temporary, data, mode)
        if replace:
            temporary.replace(path)
        else:
            path.hardlink_to(temporary)
    finally:
        temporary.unlink(missing_ok=True)
    _sync_directory(path.parent)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    with open(descriptor, "wb") as file:
        os.fchmod(descriptor, mode)
        file.write(data)
        file.flush()
        os.fsync(descriptor)


def _sync_directory(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_private(path: Path, max_bytes: int = _MAX_FILE_BYTES) -> bytes | None:
    """Return the bytes of a file of ours, or L{None} if there is none.

    :raises Forbidden: it is a link, no regular file, or somebody else's.
    :raises InvalidRequest: it is larger than C{max_bytes}.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Forbidden(f"{path} cannot be read: {error.strerror}.") from error
    with open(descriptor, "rb") as file:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
            raise Forbidden(f"{path} is not a regular file of this user.")
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise InvalidRequest(f"{path} is larger than {max_bytes} bytes.")
    return data


@frozen
class Discovery:
    """The contents of C{daemon.json}.  It helps to find the daemon and proves nothing.

    :ivar url: the agent site's.
    :ivar operator_url: the operator site's.
    :ivar pid: as the daemon wrote it; L{running_pid} knows better.
    :ivar instance: of this life of the daemon.
    :ivar started_at: as L{aileron.values.timestamp} writes it.
    :ivar launch_key: opens sessions.
    :ivar local_key: lets commands read, pause and lock without a login; None: the daemon is of an earlier version.
    """

    url: str = field(validator=instance_of(str))
    operator_url: str = field(validator=instance_of(str))
    pid: int = field(validator=instance_of(int))
    instance: str = field(validator=instance_of(str))
    version: str = field(validator=instance_of(str))
    started_at: str = field(validator=instance_of(str))
    launch_key: str = field(repr=False, validator=instance_of(str))
    local_key: str | None = field(default=None, repr=False, validator=optional(instance_of(str)))


def write_discovery(home: Home, discovery: Discovery) -> None:
    """Say where the daemon is."""
    text = json.dumps(attrs.asdict(discovery), indent=2) + "\n"
    atomic_write(home.discovery, text.encode())


def read_discovery(home: Home) -> Discovery | None:
    """Read C{daemon.json}, true or stale, or L{None} if there is none.

    :raises InvalidRequest: it is damaged.
    :raises Forbidden: it is not ours.
    """
    data = read_private(home.discovery)
    if data is None:
        return None
    try:
        return Discovery(**{key: value for key, value in json.loads(data).items() if key in _DISCOVERY_KEYS})
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
        # Not chained: a validator's message would carry the launch key.
        raise InvalidRequest(f"{home.discovery} is damaged ({type(error).__name__}); restart the daemon.") from None


_NOT_HELD = (errno.ENOENT, errno.ELOOP)  # nobody of ours holds what a link leads to
_DISCOVERY_KEYS = frozenset(attribute.name for attribute in attrs.fields(Discovery))


def live_discovery(home: Home) -> Discovery | None:
    """Return what C{daemon.json} says if the process that wrote it holds the lock now, else L{None}.

    :raises InvalidRequest: it is damaged.
    :raises Forbidden: it is not ours.
    """
    discovery = read_discovery(home)
    if discovery is None or discovery.pid != running_pid(home):
        return None
    return discovery


def withdraw_discovery(home: Home, instance: str) -> None:
    """Remove C{daemon.json} if that life of the daemon wrote it.  Twice is safe."""
    try:
        discovery = read_discovery(home)
    except InvalidRequest:
        return  # Damaged: the next start replaces it.
    if discovery is not None and discovery.instance == instance:
        home.discovery.unlink(missing_ok=True)


def acquire_lock(home: Home) -> None:
    """Become the one daemon of this home, until L{release_lock} or the end of the process.

    :raises Conflict: another has it, or this one has it already; C{details["pid"]}.
    """
    if home.lock in _held:
        raise Conflict("This process holds the home already.", {"pid": os.getpid()})
    descriptor = _open_lock(home, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.lockf(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        pid = _holder(descriptor)
        os.close(descriptor)
        raise Conflict(f"Another daemon (pid {pid}) serves {home.root}.", {"pid": pid}) from error
    _held[home.lock] = descriptor


def release_lock(home: Home) -> None:
    """Give the home free.  Twice is safe."""
    descriptor = _held.pop(home.lock, None)
    if descriptor is not None:
        os.close(descriptor)


def running_pid(home: Home) -> int | None:
    """Return the process that serves this home, from the kernel; L{None}: none does.

    :return: 0 if it cannot be seen from here (another pid namespace).
    """
    if home.lock in _held:
        return os.getpid()
    try:
        descriptor = _open_lock(home, os.O_RDONLY | os.O_NONBLOCK)  # a pipe in its place would have us wait
    except OSError as error:
        if error.errno in _NOT_HELD:
            return None
        raise
    try:
        return _holder(descriptor)
    finally:
        os.close(descriptor)


def database_pid(home: Home) -> int | None:
    """Another process that has the database open, by the lock that SQLite holds on it; L{None}: none has.

    Not for a process that has it open itself, which would lose its own lock by asking.

    :return: 0 if it cannot be seen from here (another pid namespace).
    :raises FileNotFoundError: there is no database.
    """
    with home.database.open("rb") as file:
        return _holder(file.fileno())


def _open_lock(home: Home, flags: int) -> int:
    return os.open(home.lock, flags | os.O_NOFOLLOW | os.O_CLOEXEC, _PRIVATE_FILE)


def _holder(descriptor: int) -> int | None:
    whole_file = (fcntl.F_WRLCK, os.SEEK_SET, 0, 0, 0) if _LINUX else (0, 0, 0, fcntl.F_WRLCK, os.SEEK_SET)
    answer = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_GETLK, _FLOCK.pack(*whole_file)))
    kind, pid = (answer[0], answer[4]) if _LINUX else (answer[3], answer[2])
    return None if kind == fcntl.F_UNLCK else max(0, cast("int", pid))


_port = field(default=None, validator=attrs.validators.optional([instance_of(int), ge(1), le(65535)]))


@frozen
class Ports:
    """The ports to try first, so that agents survive a restart; L{None}: let the system choose."""

    agent: int | None = _port
    operator: int | None = _port


def save_ports(home: Home, ports: Ports) -> None:
    """Remember them."""
    atomic_write(home.ports, json.dumps(attrs.asdict(ports)).encode() + b"\n")


def load_ports(home: Home) -> Ports:
    """Return the ports that were remembered; none where nothing useful was.  A wish only: a damaged file is no fault.

    :raises Forbidden: the file is not ours.
    """
    data = read_private(home.ports)
    try:
        found = json.loads(data or b"{}")
        return Ports(agent=found.get("agent"), operator=found.get("operator"))
    except (ValueError, TypeError, AttributeError, RecursionError):
        return Ports()
