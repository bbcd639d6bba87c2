"""Reads files in directories that others may write to: each is opened once, and only if this user owns it."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeAlias

from attrs import frozen

Stamp: TypeAlias = tuple[int, int, int, int, int]
"""Device, inode, size, and the times of the last write and the last change.  It differs for another file or content."""

# Without O_NONBLOCK, opening a FIFO blocks until there is a writer.
_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@frozen
class Unreadable(Exception):
    """Raised if a file or directory cannot be read or is not trusted.

    :ivar path: the path as printable text.
    :ivar problem: the reason, a sentence without its full stop.
    """

    path: str
    problem: str


@frozen
class FileBytes:
    """The contents of a file.

    :ivar stamp: device, inode, size and times of the file, taken before the contents were read. A concurrent write
        shows as a different stamp later.
    """

    data: bytes
    stamp: Stamp


def read_file(path: str, most_bytes: int, beneath: int | None = None) -> FileBytes:
    """Return the contents and stamp of the file at C{path}.

    :param most_bytes: at most one byte more than this is returned, so that the caller can detect a file that is too
        large.
    :param beneath: see L{open_file}.
    :raises Unreadable: if the file cannot be opened, is no regular file, belongs to another user or is writable by
        everybody.
    """
    with open_file(path, beneath) as descriptor:
        try:
            status = os.fstat(descriptor)
            with open(descriptor, "rb", closefd=False) as file:
                return FileBytes(file.read(most_bytes + 1), _stamp(status))
        except OSError as error:
            raise _unreadable(path, "the file cannot be read", error) from None


@contextmanager
def open_file(path: str, beneath: int | None = None) -> Iterator[int]:
    """Open a file for reading, yield its descriptor, and close it.

    :param beneath: an open directory that C{path} is relative to. No directory on the way may then be a link.
    :raises Unreadable: if the file cannot be opened, is no regular file, belongs to another user or is writable by
        everybody.
    """
    try:
        descriptor = os.open(path, _FLAGS) if beneath is None else _open_beneath(path, beneath, _FLAGS)
    except OSError as error:
        raise _unreadable(path, "the file cannot be opened", error) from None
    try:
        if reason := _distrust(os.fstat(descriptor)):
            raise _unreadable(path, reason)
        yield descriptor
    finally:
        os.close(descriptor)


@contextmanager
def open_directory(path: str, beneath: int | None = None) -> Iterator[int]:
    """Open a directory, yield its descriptor, and close it.

    :param beneath: see L{open_file}.
    :raises FileNotFoundError: if there is no such directory.
    :raises Unreadable: if the path is a link or no directory, or the directory belongs to another user.
    """
    flags = _FLAGS | os.O_DIRECTORY
    try:
        descriptor = os.open(path, flags) if beneath is None else _open_beneath(path, beneath, flags)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise _unreadable(path, "the directory cannot be read", error) from None
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            raise _unreadable(path, "the directory belongs to another user")
        yield descriptor
    finally:
        os.close(descriptor)


def is_there(path: str, beneath: int) -> bool:
    """Return True if there is a file, directory or link at C{path}.  Directories that are links are not followed.

    :raises Unreadable: if the entry cannot be checked.
    """
    try:
        with _directory_of(path, beneath) as (directory, name):
            os.stat(name, dir_fd=directory, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError as error:
        raise _unreadable(path, "it cannot be looked for", error) from None
    return True


def _open_beneath(path: str, beneath: int, flags: int) -> int:
    with _directory_of(path, beneath) as (directory, name):
        return os.open(name, flags, dir_fd=directory)


@contextmanager
def _directory_of(path: str, beneath: int) -> Iterator[tuple[int, str]]:
    """Open the directory of an entry without following links, and yield its descriptor and the entry's name.

    :param path: the path of the entry, relative to the directory C{beneath}.
    :param beneath: the descriptor of an open directory.
    :raises FileNotFoundError: if a part of the path is empty, C{.} or C{..}.
    """
    *above, name = path.split("/")
    if not {"", ".", ".."}.isdisjoint((*above, name)):
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
    at = os.dup(beneath)
    try:
        for part in above:
            below = os.open(part, _FLAGS | os.O_DIRECTORY, dir_fd=at)
            os.close(at)
            at = below
        yield at, name
    finally:
        os.close(at)


def list_files(directory: str, suffix: str) -> Mapping[str, Stamp | None]:
    """Return the paths of the files in a directory whose names end with C{suffix}, in order, each with its stamp.

    The stamp (device, inode, size and times) is None if it cannot be read. Hidden files are left out. A directory that
    does not exist has no files.

    :raises Unreadable: if the directory cannot be read.
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
    """Return C{path} as text that can be sent, with bytes that are not UTF-8 escaped."""
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
