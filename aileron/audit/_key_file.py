"""Keeps the key of the next record on the disk while the vault is locked, and wipes it once it was used.

It is no row of the database: a database keeps old pages, in its log above all, and with them the keys that are over.
Two places are written in turn, the older one first, so that a crash leaves one that is whole; then the other is wiped.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path

from attrs import field, frozen

_PLACE = 256
_PLACES = 2
_MODE = 0o600
_MOST = 2**53
_EVOLVE = b"aileron.audit.next-key.v1\n"


@frozen
class EvolvingKey:
    """The key by which the next record of a locked period gets its MAC; each is made from the one before.

    :ivar period: the id of the locked period.
    :ivar index: how many records of it were written.
    :ivar key: of the next record.
    """

    period: str
    index: int
    key: bytes = field(repr=False)

    def advance(self, steps: int) -> EvolvingKey:
        """Give the key of so many records later."""
        key = self.key
        for _ in range(steps):
            key = sha256(_EVOLVE + key).digest()
        return EvolvingKey(self.period, self.index + steps, key)


@frozen
class KeyFile:
    """A file with one L{EvolvingKey}.

    :ivar sync: makes a file's content durable.
    """

    path: Path
    sync: Callable[[int], None] = os.fsync

    def load(self) -> EvolvingKey | None:
        """Read the key; L{None}: nothing that is whole stands there, or nothing at all.

        :raises OSError: it cannot be read.
        """
        try:
            # Not to wait, should somebody have put a pipe there.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            found = [_read(file.read(_PLACE)) for _ in range(_PLACES)]
        # Both are whole only after a crash between the two writes: then the later one, which was written, counts.
        whole = [each for each in found if each is not None]
        return max(whole, key=lambda each: each[0])[1] if whole else None

    def save(self, state: EvolvingKey) -> None:
        """Put C{state} there, durably, and wipe what stood there.

        :raises OSError: it could not be written; what stood there, or C{state}, does.
        """
        descriptor = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, _MODE)
        try:
            places = [_read(os.pread(descriptor, _PLACE, place * _PLACE)) for place in range(_PLACES)]
            counts = [-1 if each is None else each[0] for each in places]
            older = counts.index(min(counts))
            os.pwrite(descriptor, _write(max(counts) + 1, state), older * _PLACE)
            self.sync(descriptor)
            os.pwrite(descriptor, bytes(_PLACE), (1 - older) * _PLACE)
            self.sync(descriptor)
        finally:
            os.close(descriptor)


def _write(count: int, state: EvolvingKey) -> bytes:
    text = f"{count} {state.period} {state.index} {state.key.hex()}".encode("ascii")
    return (text + b" " + sha256(text).hexdigest().encode("ascii") + b"\n").ljust(_PLACE, b"\0")


def _read(place: bytes) -> tuple[int, EvolvingKey] | None:
    text, _, checked = place.rstrip(b"\0\n").rpartition(b" ")
    if sha256(text).hexdigest().encode("ascii") != checked:
        return None
    try:
        count, period, index, key = text.decode("ascii").split(" ")
        found = int(count), EvolvingKey(period, int(index), bytes.fromhex(key))
    except ValueError:
        return None
    # Others can write this too: nobody may be sent along billions of steps, nor over the border of a place.
    return found if all(0 <= number <= _MOST for number in (found[0], found[1].index)) else None
