"""Many real sockets: streams that are held, fed and left; and a provider that dies and comes back."""

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
from twisted.internet.task import cooperate
from twisted.internet.tcp import Connection
from twisted.python.failure import Failure

from tests.extent import is_all
from tests.functional.operated import OperatedTestCase
from tests.functional.process import Command, Running
from tests.functional.reactor import until
from tests.functional.streamer import END, EVENT, HEAD

IDLE, BUSY = (2000, 500) if is_all() else (500, 120)
AT_ONCE = 100
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
        """A client that has connected to the daemon, or to another port, until the end of the test."""
        endpoint = TCP4ClientEndpoint(self.reactor, "127.0.0.1", port or self.port)
        found = cast(Asking, await connectProtocol(endpoint, client or Asking()))
        self.addCleanup(found.transport.abortConnection)
        return found

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
        """Hundreds of idle and busy streams, with --all thousands, are held at once, and every byte of each arrives."""
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
