"""Writes to a connection at once, and hears it without anybody between.

That saves one registration with the reactor and one turn of its loop for each write.

The only place where names of Twisted are used that it does not document: C{dataBuffer}, C{_tempDataBuffer},
C{producerPaused}, and the transport's C{producer} and C{protocol}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.protocol import Protocol
from twisted.internet.tcp import Connection

Write = Callable[[bytes], None]


def writer(transport: Any) -> Write:
    """Return how to write to C{transport}: straight to its socket whenever nothing waits to be sent before.

    Its producer is told to wait as soon as a byte waits, where it would be by the transport once there are 64 KiB: so
    it knows of all that waits.
    """
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
            _pause(transport)

    return write


def _pause(transport: Any) -> None:
    """Tell the producer to wait; the transport tells it to go on when all was sent."""
    if transport.producer is not None and transport.streamingProducer and not transport.producerPaused:
        transport.producerPaused = True
        transport.producer.pauseProducing()


def heard_by(transport: Any, protocol: Protocol) -> None:
    """Have what comes delivered to C{protocol} itself: endpoints leave a protocol of theirs between for good."""
    transport.protocol = protocol
