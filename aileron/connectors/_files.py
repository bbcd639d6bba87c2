"""Connector files. Each is opened once, so that the bytes that were hashed are the bytes in use."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import resources
from pathlib import Path

from attrs import frozen

from aileron.base.files import Unreadable, list_files, printable, read_file
from aileron.base.load_error import LoadError

BOUNDARY = "connector_manifest"
"""The kind of file in its faults."""

MOST_FILE_BYTES = 64 * 1024
MOST_FIXTURE_BYTES = 1024 * 1024
_SUFFIX = ".toml"
_BUILTIN = resources.files(__package__).joinpath("builtin")

FIXTURES = ".fixtures.toml"
"""The suffix of the file with a connector's recorded answers. The daemon never reads it."""

SHIPPED = "builtin"
LOCAL = "local"


@frozen
class ConnectorFile:
    """A connector file as found: its bytes, or the error of reading it.

    :ivar name: the name of the file, for people.
    :ivar scheme: the required start of its connector's name, L{SHIPPED} or L{LOCAL}.
    """

    name: str
    scheme: str
    data: bytes | None
    problem: LoadError | None = None


def shipped() -> Iterator[ConnectorFile]:
    """Yield the connector files that ship with Aileron, by name."""
    for each in sorted(_BUILTIN.iterdir(), key=lambda each: each.name):
        if _is_connector(each.name):
            yield ConnectorFile(each.name, SHIPPED, each.read_bytes())


def of_directory(path: Path) -> Iterator[ConnectorFile]:
    """Yield the connector files of the user's directory, by name, or none if there is no directory.

    If the directory cannot be read, yield one file with this error.
    """
    try:
        paths = list_files(str(path), _SUFFIX)
    except Unreadable as fault:
        yield _unreadable(fault)
    else:
        yield from map(one_file, filter(_is_connector, paths))


def all_files(directory: Path) -> tuple[ConnectorFile, ...]:
    """Return the connector files that ship with Aileron and those of the user's directory."""
    return *shipped(), *of_directory(directory)


def _is_connector(name: str) -> bool:
    return name.endswith(_SUFFIX) and not name.endswith(FIXTURES)


def one_file(path: str) -> ConnectorFile:
    """Return a connector file of the user's. If it cannot be read or is too large, the result contains the error."""
    try:
        data = read_file(path, MOST_FILE_BYTES).data
    except Unreadable as fault:
        return _unreadable(fault)
    name = printable(path)
    if len(data) > MOST_FILE_BYTES:
        return _unreadable(Unreadable(name, f"the file is larger than {MOST_FILE_BYTES // 1024} KiB"))
    return ConnectorFile(name, LOCAL, data)


def name_fixtures(file: ConnectorFile) -> str:
    """Return the name of the file with a connector's recorded answers."""
    return file.name.removesuffix(_SUFFIX) + FIXTURES


def read_fixtures(file: ConnectorFile) -> str:
    """Return the text of a connector's recorded answers, of a user's file C{MOST_FIXTURE_BYTES} and one byte at most.

    :raises Unreadable: if the file is missing, cannot be read or is not UTF-8.
    """
    name = name_fixtures(file)
    try:
        shipped_data = _BUILTIN.joinpath(name).read_bytes() if file.scheme == SHIPPED else None
        return (shipped_data or read_file(name, MOST_FIXTURE_BYTES).data).decode("utf-8")
    except (FileNotFoundError, UnicodeDecodeError):
        raise Unreadable(name, "the file is missing, or not UTF-8") from None


def _unreadable(fault: Unreadable) -> ConnectorFile:
    return ConnectorFile(fault.path, LOCAL, None, LoadError("unreadable", fault.problem, fault.path, None, BOUNDARY))
