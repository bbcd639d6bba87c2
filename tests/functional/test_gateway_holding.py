"""Many real sockets: streams that are held, fed, left, read slowly; and a provider that dies and comes back."""

import os
import re
import resource
import signal
import statistics
import sys
import time
from pathlib import Path
from typing import cast

import attrs
from twisted.internet.defer import Deferred, gatherResults
from twisted.internet.endpoints import TCP4ClientEndpoint, connectProtocol
from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.task import cooperate, deferLater
from twisted.internet.tcp import Connection
from twisted.python.failure import Failure

from aileron.home import running_pid
from tests.functional.operated import OperatedTestCase
from tests.functional.process import Command, Running
from tests.functional.reactor import until
from tests.functional.streamer import END, EVENT, HEAD, MUCH_BYTES, QUICK

IDLE = 2000
BUSY = 500
AT_ONCE = 100
_OTHERS = 5  # descriptors that the daemon may have had for a moment before
DESCRIPTORS = 2 * (IDLE + BUSY) + 500
_ROOT = Path(__file__).resolve().parents[2]
_STATUS = re.compile(rb"HTTP/1\.1 (\d{3}) ")


class Asking(Protocol):
    """A client.

    :ivar lost: whether its connection is gone.
    """

    transport: Connection

    def __init__(self) -> None:
        self.heard = b""
        self.lost = False

    def ask(self, what: str) -> None:
        """Ask for something."""
        host = f"{self.transport.getPeer().host}:{self.transport.getPeer().port}"
        self.transport.write(f"GET /openai/{what} HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())

    def dataReceived(self, data: bytes) -> None:
        """Keep it."""
        self.heard += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        """Note it."""
        self.lost = True


class Looping(Asking):
    """A client that asks again and again, on a new connection where the old one ended.

    :ivar statuses: of all whole answers.
    """

    def __init__(self, statuses: list[int]) -> None:
        super().__init__()
        self.statuses = statuses

    def connectionMade(self) -> None:
        """Begin."""
        self.ask("quick")

    def dataReceived(self, data: bytes) -> None:
        """Ask again once the answer is whole."""
        super().dataReceived(data)
        head, _, body = self.heard.partition(b"\r\n\r\n")
        length = re.search(rb"Content-Length: (\d+)", head)
        if length is not None and len(body) == int(length[1]):
            match = _STATUS.match(self.heard)
            assert match is not None, self.heard
            self.statuses.append(int(match[1]))
            self.heard = b""
            if b"Connection: close" not in head:
                self.ask("quick")


class HoldingTestCase(OperatedTestCase):
    """A daemon that relays to a provider in another process."""

    async def relay(self) -> Running:
        """Start both; the daemon has no vault, and needs none for this."""
        provider = await self.provider()
        match = await provider.expect(r"port (\d+)\n")
        self.provider_port = int(match[1])
        url = f"http://127.0.0.1:{self.provider_port}"
        self.home = attrs.evolve(self.home, variables={"AILERON_OPENAI_BASE_URL": url})
        await self.command("daemon", "start")
        self.port = int(self.home.discovery()["url"].rpartition(":")[2])
        return provider

    async def provider(self, *port: str) -> Running:
        """Start a provider."""
        arguments = (sys.executable, "-m", "tests.functional.streamer", *port)
        return self.start(Command(arguments=arguments, environment=self.home.environment(), directory=_ROOT))

    async def connect(self, client: Asking | None = None, port: int = 0) -> Asking:
        """A client that has connected to the daemon, or to another port."""
        endpoint = TCP4ClientEndpoint(self.reactor, "127.0.0.1", port or self.port)
        found = await connectProtocol(endpoint, client or Asking())
        return cast(Asking, found)

    async def many(self, count: int, what: str) -> list[Asking]:
        """So many clients that have asked for the same, and heard the beginning of an answer."""
        clients: list[Asking] = []

        async def one() -> None:
            client = await self.connect()
            clients.append(client)
            client.ask(what)
            await until(self.reactor, lambda: EVENT in client.heard or client.lost, 30, "the first event")

        asking = (Deferred.fromCoroutine(one()) for _ in range(count))
        await gatherResults([cooperate(asking).whenDone() for _ in range(AT_ONCE)])
        return clients

    def resident_bytes(self) -> int:
        """The daemon's memory."""
        pages = Path(f"/proc/{running_pid(self.state)}/statm").read_text().split()[1]
        return int(pages) * os.sysconf("SC_PAGE_SIZE")


class ManyStreamsTests(HoldingTestCase):
    """Streams at the same time."""

    def setUp(self) -> None:
        """Have descriptors for all of them."""
        super().setUp()
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        if before[1] < DESCRIPTORS:
            self.fail(f"this needs {DESCRIPTORS} descriptors: see ulimit -n")
        resource.setrlimit(resource.RLIMIT_NOFILE, (before[1], before[1]))
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)

    async def test_held(self) -> None:
        """2 000 idle and 500 busy streams are held at once, and every byte of each arrives."""
        provider = await self.relay()
        idle = await self.many(IDLE, "hold")
        busy = await self.many(BUSY, "busy")
        await until(self.reactor, lambda: all(client.heard.count(EVENT) > 10 for client in busy), 30, "events")
        (await self.connect(port=self.provider_port)).ask("finish")
        match = await provider.expect(r"finished (\d+) (\d+)\n")
        await until(
            self.reactor, lambda: all(client.heard.endswith(END) for client in idle + busy), 30, "the end of all"
        )
        self.assertEqual(int(match[1]), IDLE + BUSY)
        self.assertEqual({client.heard for client in idle}, {HEAD + EVENT + END})
        counts = [client.heard.count(EVENT) for client in busy]
        self.assertEqual([client.heard for client in busy], [HEAD + EVENT * count + END for count in counts])
        self.assertEqual(sum(counts), int(match[2]))

    async def test_at_once(self) -> None:
        """500 clients that connect at the same moment, to a daemon that is held up, are all answered when they ask."""
        await self.relay()
        daemon = running_pid(self.state)
        assert daemon is not None
        before = _descriptors(daemon)
        os.kill(daemon, signal.SIGSTOP)
        connecting = gatherResults([Deferred.fromCoroutine(self.connect()) for _ in range(BUSY)])
        await deferLater(self.reactor, 0.2)
        os.kill(daemon, signal.SIGCONT)
        clients = await connecting
        await until(self.reactor, lambda: _descriptors(daemon) >= before + BUSY - _OTHERS, 30, "connections")
        for client in clients:
            client.ask("quick")
        await until(
            self.reactor, lambda: all(client.heard == QUICK or client.lost for client in clients), 30, "answers"
        )
        self.assertEqual({client.heard for client in clients}, {QUICK})


class LeavingTests(HoldingTestCase):
    """Whoever leaves."""

    async def test_client_leaves(self) -> None:
        """A client that leaves in the midst of a stream is gone for the provider at once."""
        provider = await self.relay()
        waited = []
        for _ in range(9):
            (client,) = await self.many(1, "hold")
            left = time.monotonic()
            client.transport.abortConnection()
            match = await provider.expect(r"left ([\d.]+)\n")
            waited.append(float(match[1]) - left)
        self.assertLess(statistics.median(waited), 1.0, waited)

    async def test_provider_dies_and_comes_back(self) -> None:
        """While a provider is down every client gets whole answers that say so, and its own once it is back."""
        provider = await self.relay()
        statuses: list[int] = []
        ending = False

        async def live() -> None:
            client = await self.connect(Looping(statuses))
            await until(self.reactor, lambda: client.lost or ending, 60, "an end")
            self.assertTrue(ending or not client.heard, client.heard)
            client.transport.abortConnection()

        async def go_on() -> None:
            while not ending:
                await live()

        clients = [Deferred.fromCoroutine(go_on()) for _ in range(20)]
        await until(self.reactor, lambda: statuses.count(200) > 200, 30, "answers")
        await provider.signal(signal.SIGKILL)
        await until(self.reactor, lambda: statuses.count(502) > 40, 30, "refusals")
        again = await self.provider(str(self.provider_port))
        await again.expect(r"port (\d+)\n")
        await until(self.reactor, lambda: statuses[-200:].count(200) == 200, 30, "answers again")
        statuses.clear()
        await until(self.reactor, lambda: len(statuses) > 200, 30, "more of them")
        ending = True
        await gatherResults(clients)
        self.assertEqual(set(statuses), {200})


class SlowReaderTests(HoldingTestCase):
    """A client that reads one byte a second."""

    async def test_slow(self) -> None:
        """It is held, its long answer does not pile up in the daemon, others are served, and at last it has all."""
        await self.relay()
        (other,) = await self.many(1, "hold")
        before = self.resident_bytes()
        slow = await self.connect()
        slow.transport.pauseProducing()
        slow.transport.bufferSize = 1
        slow.ask("much")
        for _ in range(5):
            slow.transport.doRead()
            await deferLater(self.reactor, 1)
        self.assertLess(len(slow.heard), 10)
        quick = await self.connect()
        quick.ask("quick")
        await until(self.reactor, lambda: quick.heard == QUICK, 30, "an answer for another")
        self.assertLess(self.resident_bytes() - before, MUCH_BYTES // 4)
        slow.transport.bufferSize = 1 << 20
        pieces: list[bytes] = []
        vars(slow)["dataReceived"] = pieces.append  # a sum of bytes would be quadratic
        slow.transport.resumeProducing()
        whole = len(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % MUCH_BYTES) + MUCH_BYTES
        await until(self.reactor, lambda: len(slow.heard) + sum(map(len, pieces)) == whole, 30, "all of it")
        self.assertFalse(other.lost or slow.lost)


def _descriptors(pid: int) -> int:
    """How many a process has open."""
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))
