"""The wall clock of a life, which whoever began it may set while it runs; the clock that nobody sets goes on."""

from __future__ import annotations

import mmap
import struct
import time
from pathlib import Path

from twisted.internet.base import ReactorBase

_SHAPE = struct.Struct("d")


class Wall:
    """A wall clock that is wrong by what its file says, which several processes share."""

    def __init__(self, path: Path) -> None:
        if not path.exists():
            path.write_bytes(_SHAPE.pack(0.0))
        with path.open("r+b") as file:
            self._shared = mmap.mmap(file.fileno(), _SHAPE.size)

    def set(self, wrong_by: float) -> None:
        """Let it be wrong by so many seconds from now on."""
        _SHAPE.pack_into(self._shared, 0, wrong_by)

    def seconds(self) -> float:
        """The time that it shows."""
        wrong_by: float = _SHAPE.unpack_from(self._shared)[0]
        return time.time() + wrong_by


def live_by(wall: Wall) -> None:
    """Let the reactor that this process will have tell the time by C{wall}, its timers too, as one with that clock."""
    ReactorBase.seconds = staticmethod(wall.seconds)
