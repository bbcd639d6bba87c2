"""The vault file on the disk: read anew when it changed, replaced whole.

The file is a few kilobytes on a local disk, so reading and writing are synchronous: with the fsync of a write, some
milliseconds of the reactor's time at each change and at each gated effect, and a C{stat} at each look.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

from aileron.errors import Forbidden, InvalidRequest
from aileron.home import atomic_write, read_private

from ._document import Document
from ._errors import damaged
from ._format import decode, encode

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
        """What the file says now, or L{None} if there is none; the same object as long as it did not change.

        :raises VaultDamaged: it is damaged, or not a file of ours.
        """
        try:
            seen = self._stamp()
            if seen != self._seen:
                self._document = self._load()
                self._seen = seen
        except (Forbidden, InvalidRequest) as error:
            raise damaged(error.message) from error
        except OSError as error:
            raise damaged(f"The vault file cannot be read: {error.strerror}.") from error
        return self._document

    def exists(self) -> bool:
        """Whether something lies there, damaged or not."""
        return os.path.lexists(self._path)

    def write(self, document: Document) -> None:
        """Replace the file, durably.

        :raises OSError: it could not be written; the old one stands.
        """
        atomic_write(self._path, _bytes_of(document))
        # Whoever replaces it within these microseconds is noticed no later than when he does so again.
        self._seen = self._stamp()
        self._document = document if self._seen else None

    def create(self, document: Document) -> None:
        """Write the first file.

        :raises FileExistsError: there is one.
        :raises OSError: it could not be written.
        """
        atomic_write(self._path, _bytes_of(document), replace=False)

    def _stamp(self) -> tuple[int, ...]:
        try:
            found = self._path.lstat()
        except FileNotFoundError:
            return ()
        return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns

    def _load(self) -> Document | None:
        data = read_private(self._path, _MAX_BYTES)
        return None if data is None else decode(data)


def _bytes_of(document: Document) -> bytes:
    data = encode(document)
    if len(data) > _MAX_BYTES:  # It could be written, but never read again.
        raise OSError(errno.EFBIG, os.strerror(errno.EFBIG))
    return data
