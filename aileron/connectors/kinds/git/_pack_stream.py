"""Reads a complete pack from a remote in memory. Sizes are checked before memory is allocated."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Mapping
from hashlib import sha1

from ._objects import MOST_OBJECT_BYTES, NAMES, Damaged, name_object
from ._packs import NAME_DELTA, apply_delta, inflate, read_head, read_sizes

MOST_SENT_BYTES = 32 * 1024 * 1024
_MOST_OBJECTS, _MOST_BYTES = 50_000, 96 * 1024 * 1024
_CHUNK = 8192
_HEAD, _ID_BYTES = 12, 20

Objects = Mapping[str, tuple[int, bytes]]
"""The type and content of each object, by its id, which is the hash of both."""


def read_pack(data: bytes, check: Callable[[], None]) -> Objects:
    """Return the objects of a pack.

    :param check: called regularly; raises an error if the time limit has passed.
    :raises Damaged: if C{data} is not a complete pack, or its objects exceed the memory limits.
    """
    body, count, at = memoryview(data)[:-_ID_BYTES], int.from_bytes(data[8:_HEAD]), _HEAD
    digest = sha1(body, usedforsecurity=False).digest()
    if data[:8] != b"PACK\0\0\0\2" or count > _MOST_OBJECTS or digest != data[-_ID_BYTES:]:
        raise Damaged
    found, deltas, left = dict[str, tuple[int, bytes]](), dict[str, list[bytes]](), _MOST_BYTES
    try:
        for _ in range(count):
            kind, base, content, at = _read_entry(body, at, left, check)
            left -= len(content)
            if base:
                deltas.setdefault(base, []).append(content)
            else:
                found[name_object(kind, content)] = kind, content
    except zlib.error:
        raise Damaged from None
    _resolve(found, deltas, left, check)
    if at != len(body) or deltas:
        raise Damaged
    return found


def _read_entry(body: memoryview, at: int, left: int, check: Callable[[], None]) -> tuple[int, str, bytes, int]:
    """Read one entry of a pack.

    :return: the type of the entry, the id of the base object if the entry is a delta (else empty), the content, and
        the offset of the next entry.
    :raises Damaged: if the entry is too large, malformed or of an unsupported type.
    :raises zlib.error: if the compressed data is malformed.
    """
    head = bytes(body[at : at + 32])
    kind, size, end = read_head(head)
    base = head[end : end + _ID_BYTES] if kind == NAME_DELTA else b""
    if size > min(left, MOST_OBJECT_BYTES) or not (base or kind in NAMES):  # deltas by offset were not requested
        raise Damaged
    content, at = inflate(lambda place: bytes(body[place : place + _CHUNK]), at + end + len(base), size, check)
    return kind, base.hex(), content, at


def _resolve(
    found: dict[str, tuple[int, bytes]], deltas: dict[str, list[bytes]], left: int, check: Callable[[], None]
) -> None:
    """Apply the deltas to the objects in C{found}, and to objects made of other deltas, without recursion.

    Moves each delta that can be applied from C{deltas} to C{found}.

    :raises Damaged: if a delta is malformed, or the objects exceed the memory limits.
    """
    ready = list(found)
    while ready:
        base = ready.pop()
        kind, content = found[base]
        for delta in deltas.pop(base, ()):
            size = read_sizes(delta)[1]
            left -= size
            if size > MOST_OBJECT_BYTES or left < 0:
                raise Damaged
            made = apply_delta(content, delta, check)
            name = name_object(kind, made)
            found[name] = kind, made
            ready.append(name)
