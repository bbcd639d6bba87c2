"""Connections in memory that end, wait and push back as the reactor's do; nothing moves before it is told to."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Protocol

from twisted.internet.address import IPv4Address
from twisted.internet.error import ConnectionAborted, ConnectionDone, ConnectionLost
from twisted.internet.interfaces import IPushProducer, ITCPTransport
from twisted.python.failure import Failure
from zope.interface import implementer

BUFFER_BYTES = 65536
"""Beyond it a producer is told to wait, as by the reactor's transports."""

MOST_STEPS = 200_000


class Talker(Protocol):
    """A protocol, as far as its transport sees it."""

    def makeConnection(self, transport: Any) -> None:
        """It is connected."""

    def dataReceived(self, data: bytes) -> None:
        """Bytes came."""

    def connectionLost(self, reason: Failure) -> None:
        """It is over."""


@implementer(ITCPTransport, IPushProducer)
class End:
    """One end of a connection: the transport of one protocol.

    :ivar reading: whether its protocol wants what comes.
    :ivar waiting: what was written and has not been read by the other end.
    :ivar peak: the most that ever waited.
    :ivar sends_at_once: whether small pieces are sent at once (C{TCP_NODELAY}).
    :ivar reason: why it ended; L{None}: it has not.
    """

    other: End
    protocol: Any

    def __init__(self, net: Net) -> None:
        self._net = net
        self.reading = self.connected = True
        self.sends_at_once = False
        self.disconnecting = self.aborted = self.half_closed = False
        self.waiting = b""
        self.peak = 0
        self.reason: type[Exception] | None = None
        self._producer: Any = None
        self._pushing = self._told_to_wait = False
        self._end_seen = self._reset = self._fin_sent = False

    # what a protocol asks of its transport ---------------------------------------------------------------------------

    def write(self, data: bytes) -> None:
        """Queue it, unless the connection is ending."""
        if not self.connected or self.aborted or self.disconnecting or self.half_closed:
            return
        self.waiting += data
        self.peak = max(self.peak, len(self.waiting))
        if self._producer is not None and self._pushing and len(self.waiting) > BUFFER_BYTES:
            self._told_to_wait = True
            self._producer.pauseProducing()

    def writeSequence(self, data: Iterable[bytes]) -> None:
        self.write(b"".join(data))

    def registerProducer(self, producer: Any, streaming: bool) -> None:
        """Whom to tell to wait, or to ask for more."""
        if self._producer is not None:
            raise RuntimeError("There is a producer already.")
        self._producer, self._pushing = producer, streaming
        if not streaming:
            producer.resumeProducing()

    def unregisterProducer(self) -> None:
        """Nobody any more; twice is safe."""
        self._producer = None

    def pauseProducing(self) -> None:
        """Deliver nothing."""
        self.reading = False

    def resumeProducing(self) -> None:
        """Deliver."""
        if self.connected and not self.disconnecting and not self.aborted:
            self.reading = True

    def stopProducing(self) -> None:
        """Nothing more is wanted."""
        self.loseConnection()

    def loseConnection(self) -> None:
        """End it once all was read."""
        if self.connected and not self.disconnecting:
            self.disconnecting, self.reading = True, False

    def loseWriteConnection(self) -> None:
        """Say no more."""
        self.half_closed = True

    def abortConnection(self) -> None:
        """End it now; who asked for that hears of it a turn later."""
        if self.connected and not self.aborted:
            self.aborted, self.reading, self.waiting = True, False, b""
            self.other._reset = True
            self._net.later(lambda: self._lost(ConnectionAborted))

    def setTcpNoDelay(self, enabled: bool) -> None:
        """Nothing waits here to be joined; whether that was asked for is noted."""
        self.sends_at_once = enabled

    def setTcpKeepAlive(self, enabled: bool) -> None:
        """Nothing is probed here."""

    def getTcpNoDelay(self) -> bool:
        """Whether nothing is to wait for more."""
        return self.sends_at_once

    def getTcpKeepAlive(self) -> bool:
        """Nothing is probed here."""
        return False

    def getPeer(self) -> IPv4Address:
        return IPv4Address("TCP", "127.0.0.1", 40000)

    def getHost(self) -> IPv4Address:
        return IPv4Address("TCP", "127.0.0.1", 7001)

    # what the net does -----------------------------------------------------------------------------------------------

    def step(self, most: int) -> bool:
        """Do one thing that is due.

        :param most: bytes to deliver at once; 0: none this time.
        :return: whether there was something to do.
        """
        if not self.connected:
            return False
        if self._reset and (self.reading or self.waiting):
            return self._lost(ConnectionLost)
        if self.waiting:
            return self._deliver(most) if most else self.other.reading  # it may take a while
        if self._producer is not None and (self._told_to_wait or not self._pushing):
            self._told_to_wait = False
            self._producer.resumeProducing()
            return True
        if self.disconnecting:
            return self._lost(ConnectionDone)
        if self.half_closed and not self._fin_sent:
            self._fin_sent = self.other._end_seen = True
            return True
        if self._end_seen and self.reading and not (self.other.connected and self.other.waiting):
            return self._lost(ConnectionDone)
        return False

    def _deliver(self, most: int) -> bool:
        other = self.other
        if not other.connected:
            self._reset = True
            return True
        if not other.reading:
            return False
        piece, self.waiting = self.waiting[:most], self.waiting[most:]
        other.protocol.dataReceived(piece)
        return True

    def _lost(self, reason: type[Exception]) -> bool:
        if self.connected:
            self.connected, self.reading, self.reason = False, False, reason
            self.waiting = b""
            if reason is ConnectionDone:
                self.other._end_seen = True
            else:
                self.other._reset = True
            self.protocol.connectionLost(Failure(reason()))
        return True


class Net:
    """All connections of a test.

    :ivar ends: of all that were ever made, in pairs.
    :ivar most: how much is delivered at once; called anew for each piece.
    """

    def __init__(self, most: Callable[[], int] = lambda: BUFFER_BYTES) -> None:
        self.ends: list[End] = []
        self.most = most
        self._later: list[Callable[[], object]] = []

    def later(self, call: Callable[[], object]) -> None:
        """Call it in the next turn."""
        self._later.append(call)

    def connect(self, here: Talker, there: Talker) -> tuple[End, End]:
        """Connect two protocols, C{there} first: it listens."""
        ends = End(self), End(self)
        for end, other, protocol in zip(ends, ends[::-1], (here, there), strict=True):
            end.other, end.protocol = other, protocol
        self.ends += ends
        there.makeConnection(ends[1])
        here.makeConnection(ends[0])
        return ends

    def turn(self) -> bool:
        """Let every end do one thing, and say whether any did."""
        calls, self._later = self._later, []
        for call in calls:
            call()
        moved = [end.step(self.most()) for end in self.ends]
        return bool(calls) or any(moved)

    def run(self) -> None:
        """Go on until nothing is due."""
        for _ in range(MOST_STEPS):
            if not self.turn():
                self.ends = [end for end in self.ends if end.connected or end.other.connected]
                return
        raise AssertionError("It never comes to rest.")
