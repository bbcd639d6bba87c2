"""The vault file on the disk: read anew when it changed, replaced whole.

The file is a few kilobytes on a local disk, so reading and writing are synchronous: with the fsync of a write, some
milliseconds of the reactor's time at each change of a binding, and a C{stat} at each look.
"""

from __future__ import annotations

from pathlib import Path

from aileron.errors import Forbidden, InvalidRequest
from aileron.home import atomic_write, read_private

from ._document import Document, decode, encode
from ._errors import VaultDamaged

_MAX_BYTES = 16 * 1024 * 1024


class Disk:
    """One vault file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen: tuple[int, ...] = ()
        self._document: Document | None = None

    def __repr__(self) -> str:
        return f"<vault file {self._path}>"

    def read(self) -> Document | None:
        """What the file says now, or L{None} if there is none.

        :raises VaultDamaged: it is damaged, or not a file of ours.
        """
        seen = self._stamp()
        if seen != self._seen:
            self._document = self._load()
            self._seen = seen
        return self._document

    def exists(self) -> bool:
        """Whether something lies there, damaged or not."""
        return bool(self._stamp())

    def write(self, document: Document) -> None:
        """Replace the file, durably.

        :raises OSError: it could not be written; the old one stands.
        """
        atomic_write(self._path, encode(document))

    def create(self, document: Document) -> None:
        """Write the first file.

        :raises FileExistsError: there is one.
        """
        atomic_write(self._path, encode(document), replace=False)

    def _stamp(self) -> tuple[int, ...]:
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _load(self) -> Document | None:
        try:
            data = read_private(self._path, _MAX_BYTES)
        except (Forbidden, InvalidRequest) as error:
            raise VaultDamaged(error.message) from error
        return None if data is None else decode(data)
