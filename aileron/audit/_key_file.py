"""Stores the key of the next record on disk while the vault is locked, and wipes each key after use.

The key is not stored in the database: a database keeps old pages, above all in its log, and old keys with them. The
file has two places, and each save writes the older one first, so that a crash leaves a complete one. The other place is
wiped afterwards.
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
    """The key for the MAC of the next audit record in a period in which the vault is locked.

    Each key is derived from the previous one.

    :ivar period: the id of the locked period.
    :ivar index: the number of records written in the period.
    :ivar key: the key of the next record.
    """

    period: str
    index: int
    key: bytes = field(repr=False)

    def advance(self, steps: int) -> EvolvingKey:
        """Return the key for the record that is C{steps} later."""
        key = self.key
        for _ in range(steps):
            key = sha256(_EVOLVE + key).digest()
        return EvolvingKey(self.period, self.index + steps, key)


@frozen
class KeyFile:
    """A file with one L{EvolvingKey}.

    :ivar sync: makes the content of a file descriptor durable.
    """

    path: Path
    sync: Callable[[int], None] = os.fsync

    def load(self) -> EvolvingKey | None:
        """Return the key, or None if the file is missing or holds no complete key.

        :raises OSError: if the file cannot be read.
        """
        try:
            # O_NONBLOCK: do not block if the file is a pipe.
            descriptor = os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK)
        except FileNotFoundError:
            return None
        with os.fdopen(descriptor, "rb") as file:
            found = [_read(file.read(_PLACE)) for _ in range(_PLACES)]
        # After a crash between the two writes both places are complete, and the later one counts.
        whole = [each for each in found if each is not None]
        return max(whole, key=lambda each: each[0])[1] if whole else None

    def save(self, state: EvolvingKey) -> None:
        """Store C{state} durably and wipe the previous key.

        :raises OSError: if the file could not be written. Then the file contains the previous key or C{state}.
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
    # Another process can write this file too: limit the numbers, so that no billions of steps follow and no place
    # overflows.
    return found if all(0 <= number <= _MOST for number in (found[0], found[1].index)) else None
