"""Files of directories that others may write to as well: opened once, and only what is plainly ours."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from attrs import frozen

Stamp: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of the last write and the last change: another file or content has another."""

# Without O_NONBLOCK, opening a FIFO would wait for a writer.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@frozen
class Unreadable(Exception):
    """A file or directory is not read.

    :ivar path: printable.
    :ivar problem: a sentence without its full stop.
    """

    path: str
    problem: str


@frozen
class FileBytes:
    """A file as it was read.

    :ivar stamp: taken before the bytes were read, so a write meanwhile shows as another stamp later.
    """

    data: bytes
    stamp: Stamp


def read_file(path: str, most_bytes: int) -> FileBytes:
    """Return the bytes of C{path}.

    :param most_bytes: one more is read than this, so that a file that is too large is seen to be.
    :raises Unreadable: it cannot be opened, is no regular file, belongs to another user or is writable by everybody.
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
            return FileBytes(file.read(most_bytes + 1), _stamp(status))
    except OSError as error:
        raise _unreadable(path, "the file cannot be read", error) from None
    finally:
        os.close(descriptor)


def list_files(directory: str, suffix: str) -> Mapping[str, Stamp | None]:
    """Paths of the directory's entries that end in C{suffix}, sorted by name, with the stamp of each.

    Names that begin with a dot are passed over: editors keep theirs so.

    :return: L{None} in place of a stamp that cannot be had; empty where there is no such directory.
    :raises Unreadable: the directory cannot be read, or is a symbolic link.
    """
    try:
        descriptor = os.open(directory, _FLAGS | os.O_DIRECTORY)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise _unreadable(directory, "the directory cannot be read", error) from None
    try:
        names = sorted(name for name in os.listdir(descriptor) if name.endswith(suffix) and not name.startswith("."))
    finally:
        os.close(descriptor)
    return dict(_stamp_each(os.path.join(directory, name) for name in names))


def printable(path: str) -> str:
    """C{path} as text that can be sent: bytes of a name that are no UTF-8 are escaped."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _unreadable(path: str, problem: str, cause: OSError | None = None) -> Unreadable:
    reason = f": {os.strerror(cause.errno or 0)}" if cause else ""
    return Unreadable(printable(path), problem + reason)


def _stamp_each(paths: Iterable[str]) -> Iterator[tuple[str, Stamp | None]]:
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
