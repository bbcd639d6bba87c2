"""The installed package that a local MCP server is run from, pinned by the digest of its files."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

from attrs import frozen

from aileron.connectors.command._environment import PATH
from aileron.tables import FileTable, TextRule
from aileron.values import JSON

PACKAGE = "package"
"""The table of C{[mcp]}."""

REGISTRIES = ("npm", "pypi")
MOST_FILES, MOST_BYTES = 200_000, 2 * 1024**3
_PIECE_BYTES = 1024 * 1024
_LINE = TextRule(lambda text: 0 < len(text) <= 512 and text.isprintable(), "must be one line")
_DIGEST = TextRule.shape(r"sha256:[0-9a-f]{64}", "must be sha256: and 64 digits")


class TreeChanged(Exception):
    """The files of a package are not those that its connector's file names; the text is a clause about it."""


@frozen
class InstalledPackage:
    """A package of a registry, as it was installed.

    :ivar registry: one of L{REGISTRIES}.
    :ivar integrity: what the registry or its installer says of the contents, for people.
    :ivar directory: in which it and everything that it needs is.
    :ivar digest: L{digest_tree} of that.
    """

    registry: str
    name: str
    version: str
    integrity: str
    directory: str
    digest: str

    def review(self) -> JSON:
        """Return what is shown of it before a call."""
        return f"{self.name} {self.version} ({self.registry}, {self.integrity}), files {self.digest}"

    def holds(self, path: str) -> bool:
        """Tell whether a path leads to a file of the package, as far as its name says."""
        return bool(PATH.holds(path)) and path.startswith(f"{self.directory}/")

    def check(self) -> None:
        """Read all files of the package. Takes a while, and must not be called in the reactor's thread.

        :raises TreeChanged: they are not the ones that were installed, or cannot be read.
        """
        try:
            found = digest_tree(Path(self.directory))
        except OSError as error:
            raise TreeChanged(f"cannot be read ({error.strerror or type(error).__name__})") from None
        if found != self.digest:
            raise TreeChanged("have changed since it was installed")


def read_package(table: FileTable) -> InstalledPackage:
    """Read C{[mcp.package]}; faults go where the table's go."""
    package = InstalledPackage(
        table.choice("registry", REGISTRIES),
        table.text("name", _LINE),
        table.text("version", _LINE),
        table.text("integrity", _LINE),
        table.text("directory", PATH),
        table.text("digest", _DIGEST),
    )
    table.close()
    return package


def digest_tree(root: Path) -> str:
    """Return C{sha256:} and the digest over every path below a directory, with its kind and its contents.

    :raises OSError: something cannot be read, is neither file, link nor directory, or is beyond L{MOST_FILES} or
        L{MOST_BYTES}.
    """
    whole = hashlib.sha256()
    room = MOST_BYTES
    for number, path in enumerate(_walk(root)):
        if number >= MOST_FILES:
            raise OSError(f"{root} has more than {MOST_FILES} files")
        status = path.lstat()
        kind, contents = _describe(path, status, room)
        room -= status.st_size if kind in ("file", "program") else 0
        name = os.fsencode(path.relative_to(root))
        for part in (kind.encode(), name, contents):
            whole.update(len(part).to_bytes(8, "big"))
            whole.update(part)
    return f"sha256:{whole.hexdigest()}"


def _walk(root: Path) -> Iterator[Path]:
    for directory, directories, files in os.walk(root, onerror=_raise):
        directories.sort()
        for each in sorted((*directories, *files)):
            yield Path(directory, each)


def _raise(error: OSError) -> None:
    raise error


def _describe(path: Path, status: os.stat_result, room: int) -> tuple[str, bytes]:
    if stat.S_ISLNK(status.st_mode):
        return "link", os.fsencode(path.readlink())
    if stat.S_ISDIR(status.st_mode):
        return "directory", b""
    if not stat.S_ISREG(status.st_mode) or status.st_size > room:
        raise OSError(f"{path} is no file, or too large")
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            digest.update(piece)
    return ("program" if status.st_mode & 0o111 else "file"), digest.digest()
