"""Connector files, each opened once and without following a link, so that the bytes that were hashed run."""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from attrs import frozen

from aileron.values import LoadError

from ._schema import BOUNDARY

MOST_FILE_BYTES = 64 * 1024
_SUFFIX = ".toml"


@frozen
class ConnectorFile:
    """One file as it was found: its bytes, or why they cannot be had.

    :ivar name: for people.
    :ivar scheme: what its connector's name must begin with.
    """

    name: str
    scheme: str
    data: bytes | None
    problem: LoadError | None = None


def shipped() -> Iterator[ConnectorFile]:
    """The files of the package, by name."""
    directory = resources.files(__package__).joinpath("builtin")
    for each in sorted(directory.iterdir(), key=lambda each: each.name):
        if each.name.endswith(_SUFFIX):
            yield ConnectorFile(each.name, "builtin", each.read_bytes())


def of_directory(path: Path) -> Iterator[ConnectorFile]:
    """The files of a directory of the user's, by name; none where there is no directory."""
    try:
        directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return
    except OSError as error:
        yield _unreadable(str(path), _reason(error))
        return
    try:
        for name in sorted(os.listdir(directory)):
            if name.endswith(_SUFFIX) and not name.startswith("."):
                yield one_file(path / name, directory)
    finally:
        os.close(directory)


def one_file(path: Path, directory: int | None = None) -> ConnectorFile:
    """One file: regular, of our own user, no link, of a sensible size.

    :param directory: an open descriptor of the directory that it lies in, if there is one.
    """
    target = str(path) if directory is None else path.name
    try:
        # Without O_NONBLOCK, opening a FIFO would wait for a writer.
        opened = os.open(target, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=directory)
    except OSError as error:
        return _unreadable(str(path), _reason(error))
    try:
        return _read(opened, str(path))
    except OSError as error:
        return _unreadable(str(path), _reason(error))
    finally:
        os.close(opened)


def _read(opened: int, name: str) -> ConnectorFile:
    found = os.fstat(opened)
    if not stat.S_ISREG(found.st_mode):
        return _unreadable(name, "is no regular file")
    if found.st_uid != os.geteuid():
        return _unreadable(name, "belongs to another user")
    with os.fdopen(os.dup(opened), "rb") as stream:
        data = stream.read(MOST_FILE_BYTES + 1)
    if len(data) > MOST_FILE_BYTES:
        return _unreadable(name, f"is larger than {MOST_FILE_BYTES} bytes")
    return ConnectorFile(name, "local", data)


def _reason(error: OSError) -> str:
    if error.errno in {errno.ELOOP, errno.EMLINK}:
        return "is a symbolic link"
    return f"cannot be read: {os.strerror(error.errno or 0)}"


def _unreadable(name: str, why: str) -> ConnectorFile:
    return ConnectorFile(name, "local", None, LoadError("unreadable", why, name, None, BOUNDARY))
