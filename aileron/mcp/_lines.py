"""JSON lines between the client's two streams and the reactor. Loads no part of the SDK."""

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
    """A reader and writer of JSON lines on the reactor's transport.

    :param received: called with each line that is not blank.
    :param ended: called once, when either stream has ended.
    """

    delimiter = b"\n"
    MAX_LENGTH = MAX_LINE_BYTES

    def __init__(self, received: Callable[[bytes], object], ended: Callable[[], object]) -> None:
        self._received = received
        self._ended: Callable[[], object] | None = ended

    def lineReceived(self, line: bytes) -> None:
        """Pass a line that was received to the function C{received}. Ignore it if it is empty."""
        if line.strip() and self._ended is not None:
            self._received(line)

    def lineLengthExceeded(self, line: bytes) -> None:
        """End after an overlong line, because nothing after it can be parsed."""
        self._end()

    def readConnectionLost(self) -> None:
        """End the session: standard input has ended, so the client has finished."""
        self._end()

    def writeConnectionLost(self) -> None:
        """End the session: standard output is broken, so the client has disconnected."""
        self._end()

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """End the session: standard input and output are both closed."""
        self._end()

    def write_line(self, line: bytes) -> None:
        """Write one line if standard output is open."""
        if self.transport is not None and self._ended is not None:
            self.transport.write(line + b"\n")

    def close(self) -> None:
        """Stop passing lines in both directions. Runs of calls under way continue."""
        self._ended = None

    def _end(self) -> None:
        ended, self._ended = self._ended, None
        if ended is not None:
            ended()
