"""Functions to write to a connection without delay, and to receive its data without a wrapper in between.

They save one registration with the reactor and one turn of its loop for each write.

This is the only module that uses undocumented names of Twisted: C{dataBuffer}, C{_tempDataBuffer}, C{producerPaused},
and the transport's C{producer} and C{protocol}.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from twisted.internet.protocol import Protocol
from twisted.internet.tcp import Connection

Write = Callable[[bytes], None]


def writer(transport: Any) -> Write:
    """Return a function that writes to C{transport}, directly to the socket if the send buffer is empty.

    The function pauses the transport's producer as soon as one byte is buffered. The transport itself pauses the
    producer only at 64 KiB.
    """
    queue: Write = transport.write
    if not isinstance(transport, Connection):
        return queue
    send: Callable[[bytes], int] = transport.getHandle().send

    def write(data: bytes) -> None:
        waiting = transport.dataBuffer or transport._tempDataBuffer  # noqa: SLF001 - check both, to send bytes in order
        if waiting or transport.disconnecting or not transport.connected:
            queue(data)
            return
        try:
            sent = send(data)
        except OSError:  # full, or broken: the reactor gets the same error and reports it
            sent = 0
        if sent != len(data):
            queue(data[sent:] if sent else data)
            _pause(transport)

    return write


def _pause(transport: Any) -> None:
    """Pause the transport's producer. The transport resumes the producer when all bytes were sent."""
    if transport.producer is not None and transport.streamingProducer and not transport.producerPaused:
        transport.producerPaused = True
        transport.producer.pauseProducing()


def heard_by(transport: Any, protocol: Protocol) -> None:
    """Make C{transport} deliver received data directly to C{protocol}, without the wrapper that an endpoint adds."""
    transport.protocol = protocol
