"""Claims the client's two streams, and answers its first message before Twisted is loaded.

Importing this module loads only the standard library.
"""

from __future__ import annotations

import fcntl
import os
import select

from ._opening import Opening

_CHUNK_BYTES = 65_536
_MOST_BYTES = 1024 * 1024


def claim_standard_streams() -> tuple[int, int]:
    """Move the client's two streams away from descriptors 0 and 1, so that a stray print cannot break the protocol.

    :return: new descriptors to read from and to write to.
    :raises OSError: if a stream is closed.
    """
    readable = fcntl.fcntl(0, fcntl.F_DUPFD_CLOEXEC, 3)
    writable = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    return readable, writable


def greet(readable: int, writable: int, opening: Opening) -> bytes | None:
    """Wait for the client's first message, and answer it if no further module must be loaded for that.

    :return: the bytes read after the first message, or None if the client disconnected.
    """
    try:
        data = _read_line(readable)
        line, end, rest = data.partition(b"\n")
        if not end:
            return data or None
        answer = opening.take(line) if line.strip() else None
        if isinstance(answer, bytes):
            _write(writable, answer + b"\n")
    except OSError:
        return None
    return rest


def _read_line(readable: int) -> bytes:
    """Read until there is a whole line or the length limit is reached. If the stream ends first, return nothing."""
    pieces: list[bytes] = []
    length = 0
    while length < _MOST_BYTES:
        select.select([readable], [], [])
        try:
            piece = os.read(readable, _CHUNK_BYTES)
        except BlockingIOError:
            continue
        if not piece:
            return b""
        pieces.append(piece)
        length += len(piece)
        if b"\n" in piece:
            break
    return b"".join(pieces)


def _write(writable: int, data: bytes) -> None:
    while data:
        select.select([], [writable], [])
        try:
            data = data[os.write(writable, data) :]
        except BlockingIOError:
            continue
