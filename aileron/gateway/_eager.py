"""Writing at once: it saves one registration with the reactor and one turn of its loop for each write.

The only place where names of Twisted are used that it does not document: C{dataBuffer} and C{_tempDataBuffer}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.tcp import Connection

Write = Callable[[bytes], None]


def writer(transport: Any) -> Write:
    """How to write to C{transport}: straight to its socket whenever nothing waits to be sent before."""
    queue: Write = transport.write
    if not isinstance(transport, Connection):
        return queue
    send: Callable[[bytes], int] = transport.getHandle().send

    def write(data: bytes) -> None:
        waiting = transport.dataBuffer or transport._tempDataBuffer  # noqa: SLF001 - both, or bytes change places
        if waiting or transport.disconnecting or not transport.connected:
            queue(data)
            return
        try:
            sent = send(data)
        except OSError:  # full, or broken: the reactor will meet the same and report it
            sent = 0
        if sent != len(data):
            queue(data[sent:] if sent else data)

    return write
