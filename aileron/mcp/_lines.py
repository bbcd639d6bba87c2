"""JSON lines between the client's two streams and the reactor.  Loads nothing of the SDK."""

from __future__ import annotations

from collections.abc import Callable

from twisted.internet.interfaces import IHalfCloseableProtocol
from twisted.internet.protocol import connectionDone
from twisted.protocols.basic import LineOnlyReceiver
from twisted.python.failure import Failure
from zope.interface import implementer

MAX_LINE_BYTES = 8 * 1024 * 1024


@implementer(IHalfCloseableProtocol)
class JsonLines(LineOnlyReceiver):
    """Reads and writes JSON lines by the reactor's transport.

    :param received: called with each line that is not blank.
    :param ended: called once, when either direction has ended.
    """

    delimiter = b"\n"
    MAX_LENGTH = MAX_LINE_BYTES

    def __init__(self, received: Callable[[bytes], object], ended: Callable[[], object]) -> None:
        self._received = received
        self._ended: Callable[[], object] | None = ended

    def lineReceived(self, line: bytes) -> None:
        """Hand over one line."""
        if line.strip() and self._ended is not None:
            self._received(line)

    def lineLengthExceeded(self, line: bytes) -> None:
        """Give up at a line without an end: nothing that follows can be read."""
        self._end()

    def readConnectionLost(self) -> None:
        """Note that standard input ended: the client is done."""
        self._end()

    def writeConnectionLost(self) -> None:
        """Note that standard output broke: the client is gone."""
        self._end()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Note that both are gone."""
        self._end()

    def write_line(self, line: bytes) -> None:
        """Write one line, if there is still somebody who reads."""
        if self.transport is not None and self._ended is not None:
            self.transport.write(line + b"\n")

    def close(self) -> None:
        """Read and write nothing any more: that a call is given up says nothing of what becomes of its run."""
        self._ended = None

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()
