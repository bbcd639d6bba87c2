"""Reads objects from the packs of a local repository.

An agent may write to these files, also while they are read.  So they are listed once, opened as plain files alone, and
read in pieces, never mapped into memory: a mapped file that shrinks ends the daemon.  How large an object becomes is
known, and limited, before memory is taken for it.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable
from contextlib import ExitStack
from struct import Struct
from typing import Self

from attrs import define, field

from aileron.base.files import Unreadable, open_directory, open_file
from aileron.model.errors import InvalidRequest

from ._objects import BLOB, MOST_OBJECT_BYTES, Damaged, check_size

_MOST_PACKS = 64  # git itself makes one of them when there are more than 50
_MOST_DELTAS, _MOST_DELTAS_BYTES = 4096, 2 * MOST_OBJECT_BYTES
_OFFSET_DELTA, NAME_DELTA = 6, 7
_FAN_OUT = Struct(">256L")
_FIRST_NAME = 8 + _FAN_OUT.size
_CHUNK = 65_536
_STEPS = 4096  # between two looks at the time


@define
class Packs:
    """The open packs of a repository."""

    _packs: list[Pack]
    _opened: ExitStack

    @classmethod
    def open(cls, objects: int, check: Callable[[], None]) -> Self:
        """Open the packs below an open directory of objects.

        :param check: called now and then; raises where the time is over.
        :raises InvalidRequest: they are not plain files of ours, are damaged, or are too many.
        """
        with ExitStack() as opened:
            try:
                directory = opened.enter_context(open_directory("pack", objects))
                names = sorted(os.listdir(directory))
            except FileNotFoundError:
                names = []
            except (Unreadable, OSError):
                raise InvalidRequest("The packs of the local repository are in no directory of yours.") from None
            stems = [name.removesuffix(".idx") for name in names if name.endswith(".idx")]
            stems = [stem for stem in stems if f"{stem}.pack" in names]
            if len(stems) > _MOST_PACKS:
                raise InvalidRequest(f"The local repository has more than {_MOST_PACKS} packs. Run `git gc`.")
            packs = [_opened(opened, directory, stem, check) for stem in stems]
            return cls(packs, opened.pop_all())

    def close(self) -> None:
        """Close them."""
        self._opened.close()

    def has(self, name: str) -> bool:
        """Tell whether an object is in one."""
        return self._locate(name) is not None

    def read(self, name: str) -> tuple[int, bytes] | None:
        """Return the type and the content of an object, not yet checked against its name.

        :raises InvalidRequest: a pack is damaged, or the object is too large.
        """
        found = self._locate(name)
        try:
            return None if found is None else found[0].read(found[1])
        except (Damaged, OSError, zlib.error):
            raise _damaged() from None

    def _locate(self, name: str) -> tuple[Pack, int] | None:
        try:
            for at, pack in enumerate(self._packs):
                offset = pack.find(bytes.fromhex(name))
                if offset is not None:
                    self._packs.insert(0, self._packs.pop(at))  # what comes next is most likely in the same one
                    return pack, offset
        except (Damaged, OSError):
            raise _damaged() from None
        return None


def _damaged() -> InvalidRequest:
    return InvalidRequest("A pack of the local repository is damaged. Run `git fsck`.")


def _opened(opened: ExitStack, directory: int, stem: str, check: Callable[[], None]) -> Pack:
    try:
        index, data = (opened.enter_context(open_file(f"{stem}.{suffix}", directory)) for suffix in ("idx", "pack"))
        return Pack(index, data, check)
    except Unreadable as error:
        raise InvalidRequest(f"{error.path} is no plain file of yours; the repository is not read.") from None
    except (Damaged, OSError):
        raise _damaged() from None


@define
class Pack:
    """An open pack and its index.

    :ivar ends: for each first byte how many names begin with it or one below.
    """

    _index: int
    _data: int
    _check: Callable[[], None]
    _ends: tuple[int, ...] = field(init=False)

    def __attrs_post_init__(self) -> None:
        head = _read(self._index, _FIRST_NAME, 0)
        self._ends = _FAN_OUT.unpack(head[8:])
        if head[:8] != b"\xfftOc\0\0\0\2" or list(self._ends) != sorted(self._ends):
            raise Damaged

    def find(self, name: bytes) -> int | None:
        """Return where an object begins in the pack.

        :raises Damaged: the index is.
        """
        low, high = (0, *self._ends)[name[0]], self._ends[name[0]]
        while low < high:
            middle = (low + high) // 2
            there = _read(self._index, 20, _FIRST_NAME + 20 * middle)
            if there == name:
                return self._offset(middle)
            low, high = (middle + 1, high) if there < name else (low, middle)
        return None

    def _offset(self, number: int) -> int:
        offsets = _FIRST_NAME + 24 * self._ends[-1]
        offset = int.from_bytes(_read(self._index, 4, offsets + 4 * number))
        if offset >> 31:
            larger = offsets + 4 * self._ends[-1] + 8 * (offset & 0x7FFFFFFF)
            offset = int.from_bytes(_read(self._index, 8, larger))
        return offset

    def read(self, offset: int) -> tuple[int, bytes]:
        """Return the type and the content of the object at an offset.

        :raises Damaged: the pack is.
        :raises zlib.error: it is, too.
        :raises InvalidRequest: the object is too large.
        """
        deltas: list[bytes] = []
        for _ in range(_MOST_DELTAS):
            kind, size, at, base = self._head(offset)
            if base is None:
                break
            if sum(map(len, deltas)) + size > _MOST_DELTAS_BYTES:
                raise Damaged
            deltas.append(self._inflate(at, size))
            check_size(BLOB, read_sizes(deltas[-1])[1])
            offset = base
        else:
            raise Damaged
        check_size(kind, read_sizes(deltas[0])[1] if deltas else size)
        check_size(BLOB, size)
        content = self._inflate(at, size)
        while deltas:
            self._check()
            content = apply_delta(content, deltas.pop(), self._check)
        return kind, content

    def _inflate(self, at: int, size: int) -> bytes:
        return inflate(lambda place: os.pread(self._data, _CHUNK, place), at, size, self._check)[0]

    def _head(self, offset: int) -> tuple[int, int, int, int | None]:
        """Return the type of an entry, its size, where its content begins, and where the base of a delta is."""
        head = os.pread(self._data, 64, offset)
        kind, size, at = read_head(head)
        if kind == NAME_DELTA:
            base = self.find(head[at : at + 20].ljust(20, b"\0"))
            if base is None:
                raise Damaged
            return kind, size, offset + at + 20, base
        if kind != _OFFSET_DELTA:
            return kind, size, offset + at, None
        back, more = 0, True
        while more:
            if at >= len(head):
                raise Damaged
            back, more = back << 7 | head[at] & 127, head[at] > 127
            back, at = back + more, at + 1
        if not 0 < back < offset:
            raise Damaged
        return kind, size, offset + at, offset - back


def inflate(read: Callable[[int], bytes], at: int, size: int, check: Callable[[], None]) -> tuple[bytes, int]:
    """Return what is packed at an offset, which has exactly so many bytes, and where it ends.

    :param read: returns some bytes from an offset.
    :raises Damaged: it has more bytes, or fewer.
    :raises zlib.error: it is damaged otherwise.
    """
    unpacking, parts, left, raw = zlib.decompressobj(), [], size, b""
    while not unpacking.eof:
        check()
        if not raw:
            raw = read(at)
            at += len(raw)
            if not raw:
                raise Damaged
        parts.append(unpacking.decompress(raw, left + 1))
        raw, left = unpacking.unconsumed_tail, left - len(parts[-1])
        if left < 0:
            raise Damaged
    if left:
        raise Damaged
    return b"".join(parts), at - len(unpacking.unused_data)


def apply_delta(base: bytes, delta: bytes, check: Callable[[], None]) -> bytes:
    """Make an object from another one and what differs.

    :raises Damaged: it is no delta for this base.
    """
    before, size, at = read_sizes(delta)
    if before != len(base):
        raise Damaged
    made, step = bytearray(), 0
    while at < len(delta):
        if not (step := step + 1) % _STEPS:
            check()
        code, at = delta[at], at + 1
        if code < 128:  # as many bytes follow
            count, part, at = code, delta[at : at + code], at + code
        else:  # a part of the base; each bit of the code stands for a byte that follows, of its start or its length
            given = dict.fromkeys(range(7), 0)
            for bit in (bit for bit in given if code >> bit & 1):
                given[bit], at = _read_byte(delta, at), at + 1
            start = sum(given[bit] << 8 * bit for bit in range(4))
            count = sum(given[bit] << 8 * (bit - 4) for bit in range(4, 7)) or 65_536
            part = base[start : start + count]
        if not count or len(part) != count or len(made) + count > size:
            raise Damaged
        made += part
    if len(made) != size:
        raise Damaged
    return bytes(made)


def _read_byte(data: bytes, at: int) -> int:
    if at >= len(data):
        raise Damaged
    return data[at]


def read_sizes(delta: bytes) -> tuple[int, int, int]:
    """Return the sizes of the base and of what a delta makes of it, and where its steps begin."""
    before, at = _number(delta, 0)
    after, at = _number(delta, at)
    return before, after, at


def read_head(data: bytes) -> tuple[int, int, int]:
    """Return the type of an entry that C{data} begins with, its size, and where its head ends."""
    number, at = _number(data, 0)
    return number >> 4 & 7, number >> 7 << 4 | number & 15, at


def _number(data: bytes, at: int) -> tuple[int, int]:
    """Read a number of seven bits a byte, the lowest first, and where it ends."""
    number = 0
    for end in range(at, min(at + 10, len(data))):
        number |= (data[end] & 127) << 7 * (end - at)
        if data[end] < 128:
            return number, end + 1
    raise Damaged


def _read(descriptor: int, size: int, at: int) -> bytes:
    data = os.pread(descriptor, size, at)
    if len(data) != size:
        raise Damaged
    return data
