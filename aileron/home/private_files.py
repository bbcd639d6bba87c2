"""Private files of this user: written completely or not at all, and read only if this user owns them."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path
from typing import BinaryIO

from aileron.model.errors import Forbidden, InvalidRequest

_MAX_FILE_BYTES = 64 * 1024
_PRIVATE_FILE = 0o600


def atomic_write(path: Path, data: bytes, mode: int = _PRIVATE_FILE, *, replace: bool = True) -> None:
    """Write C{data} to C{path} durably and atomically: readers see either the old file or the complete new one.

    :param replace: whether an existing file is replaced.
    :raises FileExistsError: if the file exists and C{replace} is false.
    :raises OSError: if the file could not be written. An existing file is unchanged.
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
    sync_directory(path.parent)


def _write_new(path: Path, data: bytes, mode: int) -> None:
    with open_new(path, mode) as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def open_new(path: Path, mode: int = _PRIVATE_FILE) -> BinaryIO:
    """Create a file, and return it for writing.

    :raises OSError: if it cannot be created, for example because it exists.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, mode)
    os.fchmod(descriptor, mode)
    return open(descriptor, "wb")


def sync_directory(path: Path) -> None:
    """Make the names of the files in a directory durable.

    :raises OSError: if that failed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def read_private(path: Path, max_bytes: int = _MAX_FILE_BYTES) -> bytes | None:
    """Return the contents of a file of this user, or None if the file does not exist.

    :raises Forbidden: if the file is a link, is not a regular file, belongs to another user, or cannot be opened.
    :raises InvalidRequest: if the file is larger than C{max_bytes}.
    """
    opened = open_private(path)
    if opened is None:
        return None
    with opened as file:
        data = file.read(max_bytes + 1)
    if len(data) > max_bytes:
        raise InvalidRequest(f"{path} is larger than {max_bytes} bytes.")
    return data


def open_private(path: Path) -> BinaryIO | None:
    """Return a file of this user for reading, or None if it does not exist.

    :raises Forbidden: if the file is a link, is not a regular file, belongs to another user, or cannot be opened.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise Forbidden(f"{path} cannot be read: {error.strerror}.") from error
    found = os.fstat(descriptor)
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        os.close(descriptor)
        raise Forbidden(f"{path} is not a regular file of this user.")
    return open(descriptor, "rb")
