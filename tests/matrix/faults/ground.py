"""What faults strike, and how."""

from __future__ import annotations

import os
import resource
import sqlite3
from contextlib import suppress
from pathlib import Path

from attrs import define, field

from aileron.home.paths import Home
from aileron.vault.keys import DataKey, create
from tests.matrix.crash.wall import Wall

_DAY = 86_400.0
_PASSPHRASE = "nine other lamps under the bridge"
_SMALL = 256 * 1024 * 1024
_FOR_A_SMALL_FILE = 32 * 1024


@define(eq=False)
class Ground:
    """What faults strike: a life, by its process id, its clock and its home.

    :ivar own: the key of the home's own vault.
    :ivar foreign: that of the vault that was put in its place.
    :ivar older: the vault file as it was before anything was under way.
    """

    home: Home
    wall: Wall
    own: DataKey
    pid: int = 0
    foreign: DataKey | None = None
    older: bytes = b""
    _latest: bytes = b""
    _holder: sqlite3.Connection | None = field(default=None)

    # the clock ---------------------------------------------------------------------------------------------

    def a_day_back(self) -> None:
        """Set the clock back."""
        self.wall.set(-_DAY)

    def two_days_forward(self) -> None:
        """Set the clock forward."""
        self.wall.set(2 * _DAY)

    def right(self) -> None:
        """Set the clock right."""
        self.wall.set(0.0)

    # the disk ----------------------------------------------------------------------------------------------

    def nothing_grows(self) -> None:
        """Let no file be written."""
        self._limit(0)

    def only_small_files_grow(self) -> None:
        """Let the vault be written, and the database hardly."""
        self._limit(_FOR_A_SMALL_FILE)

    def fill(self) -> None:
        """Fill the file system, to the last byte.

        :raises RuntimeError: it is not a small one of the matrix's own.
        """
        if (free := os.statvfs(self.home.root)).f_bavail * free.f_frsize > _SMALL:
            raise RuntimeError("the home is not on a file system of its own: is bubblewrap installed?")
        for size in (1024 * 1024, 4096, 1):
            with suppress(OSError), self._filler.open("ab", buffering=0) as filler:
                while filler.write(bytes(size)) == size:
                    pass

    def empty(self) -> None:
        """Give the room back."""
        self._filler.unlink()

    @property
    def _filler(self) -> Path:
        return self.home.root.parent / "filler"

    def freed(self) -> None:
        """Let files be written."""
        self._limit(resource.RLIM_INFINITY)

    def _limit(self, size: int) -> None:
        resource.prlimit(self.pid, resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    def hold(self) -> None:
        """Hold the database's lock, as another process that writes does."""
        self._holder = sqlite3.connect(self.home.database, isolation_level=None)
        self._holder.execute("BEGIN EXCLUSIVE")

    def let_go(self) -> None:
        """Hold it no more."""
        assert self._holder is not None
        self._holder.execute("ROLLBACK")
        self._holder.close()

    # the vault ---------------------------------------------------------------------------------------------

    def replace(self) -> None:
        """Put another vault in the place of this one."""
        self._remove()
        self.foreign = create(self.home.secrets, _PASSPHRASE)

    def remove(self) -> None:
        """Let there be no vault."""
        self._remove()

    def truncate(self) -> None:
        """Leave half of it."""
        self._put(self._remove()[: len(self._latest) // 2])

    def put_back(self) -> None:
        """Put an older copy there."""
        self._remove()
        self._put(self.older)

    def restore(self) -> None:
        """Let it be as it was when the fault began."""
        self._put(self._latest)

    def _remove(self) -> bytes:
        self._latest = self.home.secrets.read_bytes()
        self.home.secrets.unlink()
        return self._latest

    def _put(self, content: bytes) -> None:
        beside = Path(f"{self.home.secrets}.beside")
        beside.write_bytes(content)
        beside.chmod(0o600)
        os.replace(beside, self.home.secrets)
