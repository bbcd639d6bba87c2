"""Files of a directory that others may write to as well: opened once, and only what is plainly ours."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import frozen

from aileron.values import LoadError

from ._faults import UNREADABLE, ManifestFault
from ._source import MAX_FILE_BYTES

Stamp: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of the last write and the last change: another file or content has another."""

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@frozen
class FileBytes:
    """A file as it was read.

    :ivar stamp: taken before the bytes were read, so a write meanwhile shows as another stamp later.
    """

    data: bytes
    stamp: Stamp


def read_file(path: str) -> FileBytes:
    """The bytes of C{path}, at most one more than an action may have.

    :raises ManifestFault: it cannot be opened, is no regular file, belongs to another user or is writable by everybody.
    """
    try:
        descriptor = os.open(path, _FLAGS)
    except OSError as error:
        raise _unreadable(path, "the file cannot be opened", error) from None
    try:
        status = os.fstat(descriptor)
        if reason := _distrust(status):
            raise _unreadable(path, reason)
        with open(descriptor, "rb", closefd=False) as file:
            return FileBytes(file.read(MAX_FILE_BYTES + 1), _stamp(status))
    except OSError as error:
        raise _unreadable(path, "the file cannot be read", error) from None
    finally:
        os.close(descriptor)


def list_files(directory: str, suffix: str) -> Mapping[str, Stamp | None]:
    """Paths of the directory's entries that end in C{suffix}, sorted by name, with the stamp of each.

    :return: L{None} in place of a stamp that cannot be had; empty where there is no such directory.
    :raises ManifestFault: the directory cannot be read.
    """
    try:
        names = sorted(name for name in os.listdir(directory) if name.endswith(suffix))
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(directory, "the directory cannot be read", error) from None
    return dict(_stamped(os.path.join(directory, name) for name in names))


def printable(path: str) -> str:
    """C{path} as text that can be sent: bytes of a name that are no UTF-8 are escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _unreadable(path: str, message: str, cause: OSError | None = None) -> ManifestFault:
    reason = f": {os.strerror(cause.errno or 0)}" if cause else ""
    return ManifestFault((LoadError(UNREADABLE, message + reason, printable(path)),))


def _stamped(paths: Iterable[str]) -> Iterator[tuple[str, Stamp | None]]:
    for path in paths:
        try:
            yield path, _stamp(os.stat(path, follow_symlinks=False))
        except FileNotFoundError:
            continue
        except OSError:
            yield path, None


def _distrust(status: os.stat_result) -> str | None:
    if not stat.S_ISREG(status.st_mode):
        return "it is not a regular file"
    if status.st_uid != os.geteuid():
        return "the file belongs to another user"
    if status.st_mode & stat.S_IWOTH:
        return "everybody may write to the file"
    return None


def _stamp(status: os.stat_result) -> Stamp:
    return (status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns)
