"""Reads a pack that a remote sent, whole and in memory, within bounds that hold before memory is taken."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from hashlib import sha1

from attrs import define, field, frozen

from ._objects import MOST_OBJECT_BYTES, NAMES, Damaged, name_object
from ._packs import NAME_DELTA, apply_delta, read_number, read_sizes

MOST_SENT_BYTES = 32 * 1024 * 1024
_MOST_OBJECTS = 50_000
_MOST_BYTES = 96 * 1024 * 1024
_CHUNK = 8192
_HEAD, _DIGEST_BYTES = 12, 20


@frozen
class GitObject:
    """An object, whose id is the hash of its content."""

    kind: int
    content: bytes = field(repr=False)


@define
class _PackObjects:
    """What was read of a pack so far.

    :ivar left: how many bytes its objects may still have.
    :ivar waiting: by the id of the base, the deltas that need it.
    """

    check: Callable[[], None]
    left: int = _MOST_BYTES
    objects: dict[str, GitObject] = field(factory=dict)
    waiting: dict[str, list[bytes]] = field(factory=dict)

    def take(self, size: int) -> None:
        """Count what is about to be held.

        :raises Damaged: it is too much.
        """
        self.left -= size
        if size > MOST_OBJECT_BYTES or self.left < 0:
            raise Damaged

    def add(self, kind: int, content: bytes) -> None:
        """Add an object that is sent whole."""
        self._resolve(self._keep(kind, content))

    def add_delta(self, base: str, delta: bytes) -> None:
        """Add an object by how it differs from another one, which may come later."""
        self.waiting.setdefault(base, []).append(delta)
        if base in self.objects:
            self._resolve(base)

    def _resolve(self, base: str) -> None:
        """Make what differs from an object, and from what is made: each once, in no recursion."""
        ready = [base]
        while ready:
            name = ready.pop()
            found = self.objects[name]
            for delta in self.waiting.pop(name, ()):
                self.check()
                self.take(read_sizes(delta)[1])
                ready.append(self._keep(found.kind, apply_delta(found.content, delta, self.check)))

    def _keep(self, kind: int, content: bytes) -> str:
        name = name_object(kind, content)
        self.objects[name] = GitObject(kind, content)
        return name


def read_pack(data: bytes, check: Callable[[], None]) -> Mapping[str, GitObject]:
    """Return the objects of a pack by their ids.

    :param check: called now and then; raises where the time is over.
    :raises Damaged: it is no pack, is not whole, or would take more memory than a package needs.
    """
    body, count = memoryview(data)[:-_DIGEST_BYTES], int.from_bytes(data[8:_HEAD])
    if data[:8] != b"PACK\0\0\0\2" or count > _MOST_OBJECTS or _digest(body) != data[-_DIGEST_BYTES:]:
        raise Damaged
    reading, at = _PackObjects(check), _HEAD
    for _ in range(count):
        check()
        at = _read_entry(reading, body, at)
    if at != len(body) or reading.waiting:
        raise Damaged
    return reading.objects


def _read_entry(reading: _PackObjects, body: memoryview, at: int) -> int:
    head = bytes(body[at : at + 32])
    number, end = read_number(head, 0)
    kind, size = number >> 4 & 7, number >> 7 << 4 | number & 15
    base = head[end : end + _DIGEST_BYTES].hex() if kind == NAME_DELTA else None
    at += end + (0 if base is None else _DIGEST_BYTES)
    reading.take(size)
    content, at = _inflate(body, at, size)
    if base is not None:
        reading.add_delta(base, content)
    elif kind in NAMES:
        reading.add(kind, content)
    else:  # also a delta by offset, which was not asked for
        raise Damaged
    return at


def _inflate(body: memoryview, at: int, size: int) -> tuple[bytes, int]:
    """Return what is packed at an offset, which has exactly so many bytes, and where it ends."""
    inflate, parts, left, raw = zlib.decompressobj(), [], size, b""
    while not inflate.eof:
        if not raw:
            raw = bytes(body[at : at + _CHUNK])
            at += len(raw)
            if not raw:
                raise Damaged
        try:
            parts.append(inflate.decompress(raw, left + 1))
        except zlib.error:
            raise Damaged from None
        raw, left = inflate.unconsumed_tail, left - len(parts[-1])
        if left < 0:
            raise Damaged
    if left:
        raise Damaged
    return b"".join(parts), at - len(inflate.unused_data)


def _digest(body: memoryview) -> bytes:
    return sha1(body, usedforsecurity=False).digest()
