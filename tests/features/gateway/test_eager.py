"""Writing at once: on Twisted's own connection, over a socket that takes as much as it is told to."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.internet.protocol import Protocol
from twisted.internet.task import Clock
from twisted.internet.tcp import Connection
from twisted.internet.testing import StringTransport
from twisted.trial.unittest import SynchronousTestCase

from aileron.features.gateway._eager import heard_by, writer
from tests.extent import examples


class Socket:
    """What is asked of a socket.

    :ivar takes: how many bytes, one number for each call; when there is none left, none.
    :ivar calls: how often it was asked to take some.
    :ivar broken: whether it fails.
    """

    def __init__(self, *takes: int) -> None:
        self.takes = list(takes)
        self.sent = b""
        self.calls = 0
        self.broken = False

    def setblocking(self, flag: bool) -> None:
        """It never blocks."""

    def fileno(self) -> int:
        """None that anybody has."""
        return 12345

    def send(self, data: bytes) -> int:
        """Take some of it."""
        self.calls += 1
        if self.broken:
            raise BrokenPipeError
        if not self.takes or not self.takes[0]:
            self.takes = self.takes[1:]
            raise BlockingIOError(11, "full")
        taken = bytes(data[: self.takes.pop(0)])
        self.sent += taken
        return len(taken)


class Reactor(Clock):
    """Notes who wants to write."""

    def __init__(self) -> None:
        super().__init__()
        self.writers: set[Any] = set()

    def addReader(self, reader: Any) -> None:
        """Nothing comes."""

    def removeReader(self, reader: Any) -> None:
        """Nothing comes."""

    def addWriter(self, writer: Any) -> None:
        self.writers.add(writer)

    def removeWriter(self, writer: Any) -> None:
        self.writers.discard(writer)


class Producer:
    """Notes whether it was told to wait, and how often."""

    waits = False
    told = 0

    def pauseProducing(self) -> None:
        self.waits = True
        self.told += 1

    def resumeProducing(self) -> None:
        self.waits = False

    def stopProducing(self) -> None:
        """End."""


def connected(socket: Socket) -> tuple[Any, Reactor]:
    """Twisted's connection over that socket."""
    reactor = Reactor()
    connection: Any = Connection(socket, Protocol(), reactor)  # type: ignore[arg-type]
    connection.connected = True
    return connection, reactor


class HearerTests(SynchronousTestCase):
    """Whom a connection's bytes go to."""

    def test_straight(self) -> None:
        """What comes, and the end, go to the protocol that was named last."""
        connection, _ = connected(Socket())
        heard: list[Any] = []
        protocol: Any = Protocol()
        protocol.dataReceived, protocol.connectionLost = heard.append, heard.append
        heard_by(connection, protocol)
        connection.socket.recv = lambda size: b"data"
        connection.doRead()
        connection.protocol.connectionLost("reason")
        self.assertEqual(heard, [b"data", "reason"])


class WriterTests(SynchronousTestCase):
    """The writer."""

    def test_at_once(self) -> None:
        """What the socket takes it gets at once; the rest waits for the reactor, which else hears nothing of it."""
        for takes, sent in (((100,), b"hello"), ((2, 100), b"he"), ((0, 100), b"")):
            socket = Socket(*takes)
            connection, reactor = connected(socket)
            writer(connection)(b"hello")
            self.assertEqual((socket.sent, bool(reactor.writers)), (sent, sent != b"hello"))
            if reactor.writers:
                connection.doWrite()
            self.assertEqual(socket.sent, b"hello")

    def test_broken(self) -> None:
        """A broken socket is left for the reactor to meet."""
        socket = Socket()
        socket.broken = True
        connection, reactor = connected(socket)
        writer(connection)(b"hello")
        self.assertEqual(reactor.writers, {connection})

    def test_behind_what_waits(self) -> None:
        """Behind what was queued, or what the socket did not take, it queues as well."""
        for wait in (False, True):
            socket = Socket(1, 100, 100)
            connection, _ = connected(socket)
            connection.write(b"one")
            if wait:
                connection.doWrite()
            calls = socket.calls
            writer(connection)(b"two")
            self.assertEqual(socket.calls, calls)
            while connection.dataBuffer or connection._tempDataBuffer:
                connection.doWrite()
            self.assertEqual(socket.sent, b"onetwo")

    def test_ending(self) -> None:
        """A connection that is closing, or gone, is sent nothing."""
        for gone in (False, True):
            socket = Socket(100)
            connection, _ = connected(socket)
            if gone:
                connection.connected = False
            else:
                connection.loseConnection()
            writer(connection)(b"hello")
            self.assertEqual(socket.calls, 0)

    def test_first_byte(self) -> None:
        """It is told to wait when a single byte waits, once, and to go on when nothing does."""
        for takes in ((4, 100), (0, 100), (3, 1, 100)):
            connection, reactor = connected(Socket(*takes))
            producer = Producer()
            connection.registerProducer(producer, True)
            write = writer(connection)
            write(b"hello")
            self.assertTrue(producer.waits)
            write(b"more")
            while reactor.writers:
                self.assertTrue(producer.waits)
                connection.doWrite()
            self.assertEqual((producer.waits, producer.told), (False, 1))

    def test_other_producers(self) -> None:
        """One that is asked for each piece is not told, and nobody is where nobody is registered."""
        connection, _ = connected(Socket(1, 1))
        writer(connection)(b"hello")
        producer = Producer()
        connection, _ = connected(Socket(1, 1))
        connection.registerProducer(producer, False)
        writer(connection)(b"hello")
        self.assertEqual(producer.told, 0)

    def test_another_transport(self) -> None:
        """Any other transport writes as it does."""
        transport = StringTransport()
        writer(transport)(b"hello")
        self.assertEqual(transport.value(), b"hello")

    @settings(deadline=None, max_examples=examples(200))
    @given(
        st.lists(st.one_of(st.binary(max_size=30), st.none(), st.just("queue")), max_size=20),
        st.lists(st.integers(0, 20), max_size=40),
    )
    def test_order(self, steps: list[bytes | str | None], takes: list[int]) -> None:
        """Whatever the socket takes, and whoever else writes, all bytes arrive once and in their order."""
        socket = Socket(*takes)
        connection, reactor = connected(socket)
        write = writer(connection)
        said = b""
        for step in steps:
            if step is None:
                connection.doWrite()
            elif isinstance(step, str):
                connection.write(b"queued")
                said += b"queued"
            elif step:
                write(step)
                said += step
        socket.takes = [1000] * 10
        while reactor.writers:
            connection.doWrite()
        self.assertEqual(socket.sent, said)
