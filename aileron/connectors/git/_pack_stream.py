"""Reads a pack that a remote sent, whole and in memory, within bounds that hold before memory is taken."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from hashlib import sha1

from attrs import define, field

from ._objects import MOST_OBJECT_BYTES, NAMES, Damaged, name_object
from ._packs import NAME_DELTA, apply_delta, inflate, read_head, read_sizes

MOST_SENT_BYTES = 32 * 1024 * 1024
_MOST_OBJECTS, _MOST_BYTES = 50_000, 96 * 1024 * 1024
_CHUNK = 8192
_HEAD, _ID_BYTES = 12, 20

Objects = Mapping[str, tuple[int, bytes]]
"""Type and content of objects, by their ids, which are the hashes of both."""


@define
class _PackObjects:
    """The objects of a pack as far as it was read.

    :ivar left: how many bytes its objects may still have.
    :ivar waiting: by the id of what they differ from, deltas that wait for it.
    """

    check: Callable[[], None]
    left: int = _MOST_BYTES
    found: dict[str, tuple[int, bytes]] = field(factory=dict)
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
        if base in self.found:
            self._resolve(base)

    def _keep(self, kind: int, content: bytes) -> str:
        name = name_object(kind, content)
        self.found[name] = kind, content
        return name

    def _resolve(self, base: str) -> None:
        """Make what differs from an object, and what differs from that: each once, in no recursion."""
        ready = [base]
        while ready:
            base = ready.pop()
            kind, content = self.found[base]
            for delta in self.waiting.pop(base, ()):
                self.take(read_sizes(delta)[1])
                ready.append(self._keep(kind, apply_delta(content, delta, self.check)))


def read_pack(data: bytes, check: Callable[[], None]) -> Objects:
    """Return the objects of a pack.

    :param check: called now and then; raises where the time is over.
    :raises Damaged: it is no pack, is not whole, or would take more memory than a package needs.
    """
    body, count, at = memoryview(data)[:-_ID_BYTES], int.from_bytes(data[8:_HEAD]), _HEAD
    digest = sha1(body, usedforsecurity=False).digest()
    if data[:8] != b"PACK\0\0\0\2" or count > _MOST_OBJECTS or digest != data[-_ID_BYTES:]:
        raise Damaged
    objects = _PackObjects(check)
    try:
        for _ in range(count):
            at = _read_entry(objects, body, at)
    except zlib.error:
        raise Damaged from None
    if at != len(body) or objects.waiting:
        raise Damaged
    return objects.found


def _read_entry(objects: _PackObjects, body: memoryview, at: int) -> int:
    head = bytes(body[at : at + 32])
    kind, size, end = read_head(head)
    base = head[end : end + _ID_BYTES] if kind == NAME_DELTA else b""
    objects.take(size)
    content, at = inflate(lambda place: bytes(body[place : place + _CHUNK]), at + end + len(base), size, objects.check)
    if base:
        objects.add_delta(base.hex(), content)
    elif kind in NAMES:
        objects.add(kind, content)
    else:  # also a delta by offset, which was not asked for
        raise Damaged
    return at
