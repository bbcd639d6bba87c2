"""The lock by which one daemon owns a home, and who holds it."""

from __future__ import annotations

import errno
import fcntl
import os
import struct
import sys
from pathlib import Path
from typing import cast

from aileron.model.errors import Conflict

from .paths import Home

_PRIVATE_FILE = 0o600

# struct flock of fcntl(2), with the kernel's own alignment; l_type first on Linux, l_start first on macOS and the BSDs.
_LINUX = sys.platform.startswith("linux")


_FLOCK = struct.Struct("@hhqqi0q" if _LINUX else "@qqihh")


# A POSIX record lock belongs to the process and falls when *any* of its descriptors of that file is closed,
# so a process that holds one must not open the file again to ask about it.
_held: dict[Path, int] = {}


_NOT_HELD = (errno.ENOENT, errno.ELOOP)  # nobody of ours holds what a link leads to


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
