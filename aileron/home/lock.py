"""The lock that gives one daemon exclusive use of a home, and the lookup of the process that holds it."""

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


# A POSIX record lock belongs to the process and is released when *any* of its descriptors of that file is closed, so a
# process that holds a lock must not open the file again to query it.
_held: dict[Path, int] = {}


_NOT_HELD = (errno.ENOENT, errno.ELOOP)  # a link is never our lock


def acquire_lock(home: Home) -> None:
    """Acquire the lock of this home for this process, until L{release_lock} or the end of the process.

    :raises Conflict: if another process or this one already holds the lock. C{details["pid"]} is the holder.
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
    """Release the lock of the home.  Idempotent."""
    descriptor = _held.pop(home.lock, None)
    if descriptor is not None:
        os.close(descriptor)


def running_pid(home: Home) -> int | None:
    """Return the id of the process that holds the home's lock according to the kernel, or None if no process does.

    :return: 0 if the holder is not visible from here (another pid namespace).
    :raises OSError: if the lock's file cannot be opened for another reason than that it is missing.
    """
    if home.lock in _held:
        return os.getpid()
    try:
        descriptor = _open_lock(home, os.O_RDONLY | os.O_NONBLOCK)  # do not block on a pipe
    except OSError as error:
        if error.errno in _NOT_HELD:
            return None
        raise
    try:
        return _holder(descriptor)
    finally:
        os.close(descriptor)


def database_pid(home: Home) -> int | None:
    """Return the id of another process that has the database open, or None if no process has.

    The answer comes from the lock that SQLite holds on the file.  Do not call from a process that has the database
    open: it would lose its own lock.

    :return: 0 if the holder is not visible from here (another pid namespace).
    :raises FileNotFoundError: if there is no database.
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
