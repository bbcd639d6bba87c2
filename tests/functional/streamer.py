"""A provider in a process of its own: it holds streams open, feeds them, and tells who leaves.

    python -m tests.functional.streamer [PORT]

It prints its port, and ``left SECONDS`` on the monotonic clock when a client leaves in the midst of a stream.
"""

import resource
import sys
import time
from typing import ClassVar, cast

from twisted.internet.address import IPv4Address
from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import Protocol, ServerFactory, connectionDone
from twisted.internet.task import LoopingCall
from twisted.internet.tcp import Connection
from twisted.python.failure import Failure

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
EVENT = b"f\r\ndata: an event\n\r\n"
END = b"0\r\n\r\n"
QUICK = b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nquick"
SECONDS_BETWEEN_EVENTS = 0.1


class Streamer(Protocol):
    """One connection.

    :cvar streams: those whose answer is open, with the number of their events.
    :cvar busy: those of them that get events.
    """

    transport: Connection
    streams: ClassVar[dict["Streamer", int]] = {}
    busy: ClassVar[set["Streamer"]] = set()
    _heard = b""

    def dataReceived(self, data: bytes) -> None:
        """Answer each request whose head is whole; there are no bodies."""
        self._heard += data
        while b"\r\n\r\n" in self._heard:
            head, _, self._heard = self._heard.partition(b"\r\n\r\n")
            {b"hold": self.hold, b"busy": self.feed, b"finish": finish}.get(
                head.split(b" ")[1].rpartition(b"/")[2], self.answer_quickly
            )()

    def answer_quickly(self) -> None:
        """Answer whole."""
        self.transport.write(QUICK)

    def hold(self) -> None:
        """Answer with one event, and be silent."""
        self.streams[self] = 1
        self.transport.write(HEAD + EVENT)

    def feed(self) -> None:
        """Answer with events that go on coming."""
        self.hold()
        self.busy.add(self)

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Tell of it, if it comes too early."""
        if self.streams.pop(self, None) is not None:
            self.busy.discard(self)
            print("left", time.monotonic(), flush=True)


def tick() -> None:
    """Send an event to all that get some."""
    for each in Streamer.busy:
        Streamer.streams[each] += 1
        each.transport.write(EVENT)


def finish() -> None:
    """End all open answers, and print how many events each of the fed ones had."""
    streams, busy = dict(Streamer.streams), set(Streamer.busy)
    Streamer.streams.clear()
    Streamer.busy.clear()
    print("finished", len(streams), sum(streams[each] for each in busy), flush=True)
    for each in streams:
        each.transport.write(END)


def main(port: int) -> None:
    """Serve until killed."""
    from twisted.internet import reactor
    from twisted.internet.interfaces import IReactorCore, IReactorTCP

    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    factory = ServerFactory.forProtocol(Streamer)
    listening: IListeningPort = cast(IReactorTCP, reactor).listenTCP(
        port, cast(ServerFactory, factory), 1000, "127.0.0.1"
    )
    LoopingCall(tick).start(SECONDS_BETWEEN_EVENTS)
    print("port", cast(IPv4Address, listening.getHost()).port, flush=True)
    cast(IReactorCore, reactor).run()


if __name__ == "__main__":
    main(int(sys.argv[1]) if sys.argv[1:] else 0)
