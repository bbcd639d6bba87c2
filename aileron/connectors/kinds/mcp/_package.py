"""The installed package that a local MCP server runs from, pinned by the digest of its files."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from attrs import frozen

from aileron.base.json import JSON
from aileron.base.tables import FileTable, TextRule
from aileron.connectors.programs.environment import PATH

PACKAGE = "package"
"""The name of the table inside C{[mcp]}."""

NPM, PYPI = "npm", "pypi"
REGISTRIES = (NPM, PYPI)
LOADING_VARIABLES = frozenset(
    "NODE_OPTIONS NODE_PATH PYTHONPATH PYTHONHOME PYTHONPYCACHEPREFIX BASH_ENV "
    "LD_PRELOAD LD_LIBRARY_PATH LD_AUDIT DYLD_INSERT_LIBRARIES DYLD_LIBRARY_PATH GCONV_PATH "
    "OPENSSL_CONF OPENSSL_ENGINES OPENSSL_MODULES".split()
)
"""Environment variables that make a program load code from outside its own files."""

MOST_FILES, MOST_BYTES = 200_000, 2 * 1024**3
_PIECE_BYTES = 1024 * 1024
_LINE = TextRule(lambda text: 0 < len(text) <= 512 and text.isprintable(), "must be one line")
_DIGEST = TextRule.shape(r"sha256:[0-9a-f]{64}", "must be sha256: and 64 digits")


_INTERPRETER = re.compile(r"node|nodejs|python(?:3(?:\.[0-9]{1,2})?)?")
_OUTSIDE = re.compile(r"(?:file:|[/~]|\.\.?(?:/|\Z))")
_AGAIN = "Delete its connector file, then install it again by aileron import."


class TreeChanged(Exception):
    """A server would run code other than the package that its connector's file pins. The text is the reason."""


@frozen
class InstalledPackage:
    """A package of a registry as installed.

    :ivar registry: one of L{REGISTRIES}.
    :ivar integrity: the integrity text of the registry or the installer, for display.
    :ivar directory: the directory of the package and its dependencies.
    :ivar digest: the L{digest_tree} of the directory.
    :ivar argv: the command that starts the server.
    """

    registry: str
    name: str
    version: str
    integrity: str
    directory: str
    digest: str
    argv: tuple[str, ...]

    def review(self) -> JSON:
        """Return the text about the package that an approval shows.

        It contains the name, the version, the digest, and arguments of the command that lead outside of the package.
        """
        outside = [each for each in self.argv[self.argv.index(self.find_entry()) + 1 :] if self._leads_outside(each)]
        named = f"; outside of it: {', '.join(outside)}" if outside else ""
        return f"{self.name} {self.version} ({self.registry}, {self.integrity}), files {self.digest}{named}"

    def holds(self, path: str) -> bool:
        """Return True if a path is below the package's directory. Links are not resolved."""
        return bool(PATH.holds(path)) and path.startswith(f"{self.directory}/")

    def find_entry(self) -> str:
        """Return the path of the package's file that the command starts, or an empty text if it starts another file.

        The command starts the file itself, or an interpreter with the file as first argument. A Python interpreter must
        be part of the package, since another one would load modules from elsewhere.
        """
        program, *arguments = self.argv or ("",)
        entry = program
        if name := _INTERPRETER.fullmatch(os.path.basename(program)):
            is_known = self.holds(program) or name[0].startswith("node")
            entry = arguments[0] if arguments and is_known else ""
        return entry if self.holds(entry) else ""

    def check(self, home: str | None) -> None:
        """Check all files of the package. This takes a while: do not call it in the reactor's thread.

        :param home: the value of C{HOME} for the program, or None.
        :raises TreeChanged: if the files changed or cannot be read, or code from outside the package would be loaded.
        """
        where = f"the files of {self.name} in {self.directory}"
        try:
            found = digest_tree(Path(self.directory))
        except OSError as error:
            raise TreeChanged(f"{where} cannot be read ({error.strerror or type(error).__name__}). {_AGAIN}") from None
        if found != self.digest:
            raise TreeChanged(f"{where} have changed since it was installed. {_AGAIN}")
        entry = os.path.realpath(self.find_entry())
        if not entry.startswith(f"{os.path.realpath(self.directory)}/"):
            raise TreeChanged(f"its program leads to {entry}, which is not part of {self.name}. {_AGAIN}")
        for path in find_foreign_modules(self.directory, home) if self.registry == NPM else ():
            raise TreeChanged(f"node would also load modules from {path}, outside of {self.name}. Move it away.")

    def _leads_outside(self, argument: str) -> bool:
        value = argument.partition("=")[2] if argument.startswith("-") else argument
        return bool(_OUTSIDE.match(value)) and not self.holds(value)


def find_foreign_modules(directory: str, home: str | None) -> Iterator[str]:
    """Yield the existing places outside of a directory in which node searches modules for a file inside.

    The place that belongs to the node installation is left out.
    """
    places = [each / "node_modules" for each in Path(os.path.realpath(directory)).parents]
    places += [Path(home) / name for name in (".node_modules", ".node_libraries")] if home else []
    yield from (str(each) for each in places if os.path.lexists(each))


def read_package(table: FileTable, argv: Sequence[str]) -> InstalledPackage:
    """Return the package read from C{[mcp.package]}. Faults are recorded in the table.

    :param argv: the command of the server.
    """
    package = InstalledPackage(
        table.choice("registry", REGISTRIES),
        table.text("name", _LINE),
        table.text("version", _LINE),
        table.text("integrity", _LINE),
        table.text("directory", PATH),
        table.text("digest", _DIGEST),
        tuple(argv),
    )
    table.close()
    return package


def digest_tree(root: Path) -> str:
    """Return C{sha256:} and the digest over the path, kind and content of everything below a directory.

    :raises OSError: if an entry cannot be read, or is not a file, link or directory, or if there are more than
        L{MOST_FILES} entries or L{MOST_BYTES}.
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
