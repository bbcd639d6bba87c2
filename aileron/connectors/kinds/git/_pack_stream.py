"""Reads a complete pack from a remote or a client in memory. Sizes are checked before memory is allocated."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from hashlib import sha1

from attrs import define, field

from ._objects import MOST_OBJECT_BYTES, NAMES, Damaged, name_object
from ._packs import NAME_DELTA, OFFSET_DELTA, apply_delta, inflate, read_distance, read_head, read_sizes

MOST_SENT_BYTES = 32 * 1024 * 1024
_MOST_OBJECTS, _MOST_BYTES = 50_000, 96 * 1024 * 1024
_CHUNK = 8192
_HEAD, _ID_BYTES, _LONGEST_ENTRY_HEAD = 12, 20, 32

Objects = Mapping[str, tuple[int, bytes]]
"""The type and content of each object, by its id, which is the hash of both."""


def read_pack(data: bytes, check: Callable[[], None]) -> Objects:
    """Return the objects of a pack.

    :param check: called regularly; raises an error if the time limit has passed.
    :raises Damaged: if C{data} is not a complete pack, or its objects exceed the memory limits.
    """
    reading = PackReading.of(data, check)
    if reading.bases:
        raise Damaged
    return reading.found


@define
class PackReading:
    """The objects of a pack. Deltas whose base is not in the pack wait for it.

    :ivar found: the objects.
    """

    _check: Callable[[], None]
    found: dict[str, tuple[int, bytes]] = field(factory=dict, init=False)
    _waiting: dict[str | int, list[tuple[int, bytes]]] = field(factory=dict, init=False)
    _left: int = field(default=_MOST_BYTES, init=False)

    @classmethod
    def of(cls, data: bytes, check: Callable[[], None]) -> PackReading:
        """Read a pack.

        :param check: called regularly; raises an error if the time limit has passed.
        :raises Damaged: if C{data} is not a complete pack, or its objects exceed the memory limits.
        """
        reading = cls(check)
        reading._read(data)
        return reading

    def has(self, name: str) -> bool:
        """Return True if the object is in the pack, and was made."""
        return name in self.found

    def find(self, name: str) -> tuple[int, bytes] | None:
        """Return the type and content of an object, or None if the pack does not have it."""
        return self.found.get(name)

    @property
    def bases(self) -> frozenset[str]:
        """The ids of the objects that deltas wait for."""
        return frozenset(each for each in self._waiting if isinstance(each, str))

    @property
    def is_whole(self) -> bool:
        """True if no delta waits for its base."""
        return not self._waiting

    def add(self, objects: Objects) -> None:
        """Make the objects of the deltas that wait for these objects, which are not in the pack.

        :raises Damaged: if a delta is malformed, or the objects exceed the memory limits.
        """
        self._resolve([(name, None, *objects[name]) for name in self.bases & objects.keys()])

    def _read(self, data: bytes) -> None:
        body, count, at = memoryview(data)[:-_ID_BYTES], int.from_bytes(data[8:_HEAD]), _HEAD
        digest = sha1(body, usedforsecurity=False).digest()
        if data[:8] != b"PACK\0\0\0\2" or count > _MOST_OBJECTS or digest != data[-_ID_BYTES:]:
            raise Damaged
        whole: list[tuple[str, int | None, int, bytes]] = []
        try:
            for _ in range(count):
                begin = at
                kind, base, content, at = self._read_entry(body, at)
                if base is not None:
                    self._waiting.setdefault(base, []).append((begin, content))
                    continue
                name = name_object(kind, content)
                self.found[name] = kind, content
                whole.append((name, begin, kind, content))
        except zlib.error:
            raise Damaged from None
        self._resolve(whole)
        # guard of own tools: nothing of a pack is left out of what is shown
        #    -> connectors.kinds.git.test_push.PackTests.test_damaged
        if at != len(body) or (self._waiting and not self.bases):
            raise Damaged

    def _read_entry(self, body: memoryview, at: int) -> tuple[int, str | int | None, bytes, int]:
        """Read one entry of a pack.

        :return: the type of the entry, the id or the offset of the base object if the entry is a delta (else None), the
            content, and the offset of the next entry.
        :raises Damaged: if the entry is too large, malformed or of an unsupported type.
        :raises zlib.error: if the compressed data is malformed.
        """
        head = bytes(body[at : at + _LONGEST_ENTRY_HEAD])
        kind, size, end = read_head(head)
        base: str | int | None = None
        if kind == NAME_DELTA:
            named = bytes(body[at + end : at + end + _ID_BYTES])
            base, end = named.hex(), end + len(named)
        elif kind == OFFSET_DELTA:
            back, end = read_distance(head, end)
            base = at - back
        if size > min(self._left, MOST_OBJECT_BYTES) or (base is None and kind not in NAMES):
            raise Damaged
        content, after = inflate(lambda place: bytes(body[place : place + _CHUNK]), at + end, size, self._check)
        self._left -= len(content)
        return kind, base, content, after

    def _resolve(self, ready: list[tuple[str, int | None, int, bytes]]) -> None:
        """Apply the deltas to these objects, and to objects made of other deltas, without recursion.

        :param ready: the id, the offset in the pack or None, the type and the content of each object.
        :raises Damaged: if a delta is malformed, or the objects exceed the memory limits.
        """
        while ready:
            name, begin, kind, content = ready.pop()
            deltas = self._waiting.pop(name, [])
            if begin is not None:
                deltas += self._waiting.pop(begin, [])
            for place, delta in deltas:
                size = read_sizes(delta)[1]
                self._left -= size
                # guard of own tools: a small pack does not become large
                #    -> connectors.kinds.git.test_push.PackTests.test_bomb
                if size > MOST_OBJECT_BYTES or self._left < 0:
                    raise Damaged
                made = apply_delta(content, delta, self._check)
                name = name_object(kind, made)
                self.found[name] = kind, made
                ready.append((name, place, kind, made))
