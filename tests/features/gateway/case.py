"""A gateway behind a real site and its channel, clients and providers in memory at both its ends."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from typing import Any, cast

from attrs import evolve
from twisted.internet.address import IPv4Address
from twisted.internet.defer import Deferred
from twisted.internet.interfaces import IProtocolFactory, IStreamClientEndpoint
from twisted.internet.protocol import Protocol, connectionDone
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase
from twisted.web.resource import Resource
from zope.interface import implementer

from aileron.api import GuardedSite, SiteRules
from aileron.features.gateway._destination import Destination
from aileron.features.gateway._dialler import Forwarding
from aileron.features.gateway._gateway import Gateway
from aileron.features.gateway._injection import Injection, SecretLeak
from aileron.features.gateway._pool import UpstreamPool
from aileron.features.gateway.interfaces import IMeter, IMeters
from aileron.features.gateway.values import ANTHROPIC, CHATGPT, OPENAI, Ending, GatewaySettings, Provider
from aileron.features.provider_tools.notes import ToolNotes
from aileron.features.provider_tools.watch import ToolWatch
from aileron.model.audit import Event
from aileron.model.interfaces.store import IAudit
from aileron.model.sessions import Session
from aileron.testing import MemoryBindings, MemoryVault, example_session
from tests.features.gateway.net import End, Net

HOST = "localhost:7001"
KEY = "ail_g_" + "k" * 43
LOCAL = Provider("local", "http://127.0.0.1:9/base/path", "/local")
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


class Peer(Protocol):
    """Whoever is at the far end: keeps what it hears.

    :ivar lost: why its connection ended; L{None}: it has not.
    """

    end: End

    def __init__(self) -> None:
        self.heard = b""
        self.lost: Failure | None = None

    def connectionMade(self) -> None:
        """Note the transport by its own type."""
        self.end = self.transport  # type: ignore[assignment]

    def dataReceived(self, data: bytes) -> None:
        self.heard += data

    def connectionLost(self, reason: Failure = connectionDone) -> None:
        self.lost = reason

    def take(self) -> bytes:
        """What was heard since the last call."""
        heard, self.heard = self.heard, b""
        return heard

    def go(self, politely: bool) -> None:
        """Close the connection, or reset it."""
        if politely:
            self.end.loseConnection()
        else:
            self.end.abortConnection()


@implementer(IStreamClientEndpoint)
class Place:
    """Where a provider listens.

    :ivar peers: of every connection that it accepted, in their order.
    :ivar open: whether it accepts at once; if not, L{accept} does, or L{refuse} does not.
    :ivar given_up: how many connections were no more wanted before they were accepted.
    """

    def __init__(self, net: Net) -> None:
        self._net = net
        self.peers: list[Peer] = []
        self.open = True
        self.given_up = 0
        self._asked: list[tuple[Deferred[Any], IProtocolFactory]] = []

    def connect(self, protocolFactory: IProtocolFactory) -> Deferred[Any]:
        connecting: Deferred[Any] = Deferred(self._give_up)
        self._asked.append((connecting, protocolFactory))
        if self.open:
            self.accept()
        return connecting

    def _give_up(self, connecting: Deferred[Any]) -> None:
        self._asked = [each for each in self._asked if each[0] is not connecting]
        self.given_up += 1

    @property
    def asked(self) -> int:
        """How many wait to be accepted."""
        return len(self._asked)

    def accept(self) -> Peer:
        """Accept the connection that has waited longest."""
        connecting, factory = self._asked.pop(0)
        ours, peer = factory.buildProtocol(IPv4Address("TCP", "127.0.0.1", 9)), self.peer()
        assert ours is not None
        self.peers.append(peer)
        self._net.connect(ours, peer)
        connecting.callback(ours)
        return peer

    def peer(self) -> Peer:
        """The far end of the next connection."""
        return Peer()

    def refuse(self, error: Exception) -> None:
        """Do not accept it."""
        self._asked.pop(0)[0].errback(error)


@implementer(IMeter)
class Noted:
    """Keeps what it was told, by name."""

    completion = ""
    charge = None

    def __init__(self, begun: tuple[str, str | None, bool]) -> None:
        self.begun = begun
        self.told: list[str] = []
        self.code = 0
        self.body = b""
        self.uploads = 0
        self.ending: Ending | None = None

    def sent(self) -> None:
        self.told.append("sent")

    def arrived(self) -> None:
        self.told.append("arrived")

    def answered(self, code: int, head: bytes) -> None:
        self.told.append("answered")
        self.code = code

    def passed(self, data: bytes) -> None:
        self.body += data

    def ended(self, ending: Ending, uploaded: int) -> None:
        assert self.ending is None, "ended twice"
        self.ending, self.uploads = ending, uploaded


@implementer(IMeters)
class NotedMeters:
    """Makes those."""

    def __init__(self) -> None:
        self.all: list[Noted] = []

    def begin(self, provider: Provider, session_id: str | None, inference: bool, path: bytes) -> Noted:
        self.all.append(Noted((provider.name, session_id, inference)))
        return self.all[-1]


class KnownKeys:
    """Sessions by their gateway keys.

    :ivar slow: whether L{by_gateway_key} waits for L{answer}.
    """

    def __init__(self) -> None:
        self.in_memory: dict[bytes, Session] = {}
        self.in_store: dict[bytes, Session] = {}
        self.slow = False
        self.waiting: list[Deferred[None]] = []

    def known_gateway_key(self, gateway_digest: bytes) -> Session | None:
        return self.in_memory.get(gateway_digest)

    async def by_gateway_key(self, gateway_digest: bytes) -> Session | None:
        """See L{ISessions}."""
        if self.slow:
            self.waiting.append(Deferred())
            await self.waiting[-1]
        return self.in_store.get(gateway_digest)


class Recorded:
    """Keeps the events that are to be put on record."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    async def append(self, *events: Event) -> None:
        """See L{IAudit}."""
        self.events += events


class Ours(Resource):
    """The site's own resources."""

    isLeaf = True

    def render(self, request: Any) -> bytes:
        """Say what was asked for."""
        return b"ours: " + bytes(request.uri)


class Line(Peer):
    """A client's connection."""

    _case: GatewayCase

    def say(self, data: bytes) -> bytes:
        """Send it, and have what came since the last time."""
        self.end.write(data)
        return self._case.after(self)

    def pour(self, length: int) -> None:
        """Send so many bytes of a body, in pieces that come one after another."""
        for _ in range(length // 50_000):
            self.end.write(b"y" * 50_000)
            self._case.net.run()


class GatewayCase(SynchronousTestCase):
    """Builds it all.

    :cvar settings: of the gateway.
    """

    settings = GatewaySettings((OPENAI, ANTHROPIC, CHATGPT, LOCAL), silence_seconds=40.0)
    own_ports: tuple[int, ...] = (7001,)
    most_connections = 256

    def setUp(self) -> None:
        self.net = Net()
        self.clock = Clock()
        self.keys = KnownKeys()
        self.meters = NotedMeters()
        self.vault = MemoryVault()
        self.bindings = MemoryBindings(self.vault)
        self.echoes: list[SecretLeak] = []
        self.audit = Recorded()
        self.notes = ToolNotes(cast(IAudit, self.audit), self.clock, lambda: f"id{len(self.audit.events)}")
        self.places = {provider.name: Place(self.net) for provider in self.settings.providers}
        self.pools = {name: UpstreamPool(place, self.clock) for name, place in self.places.items()}
        self.gateway = self._gateway()
        self.gateway.open(self.own_ports)
        self.site = GuardedSite(
            Ours(),
            SiteRules(hosts=(HOST,)),
            self.clock,
            taker=self.gateway,
            most_connections=self.most_connections,
        )

    def _gateway(self) -> Gateway:
        destinations = {
            provider.name: Destination.of(provider, self.pools[provider.name], Forwarding())
            for provider in self.settings.providers
        }
        sessions: Any = self.keys
        gateway = Gateway(
            self.settings,
            destinations,
            sessions=sessions,
            vault=self.vault,
            meters=self.meters,
            injection=Injection(self.bindings, self.echoes.append),
            clock=self.clock,
        )
        gateway.watch_requests(ToolWatch(self.settings, self.notes, self.clock))
        return gateway

    def line(self) -> Line:
        """A client that has connected."""
        line = Line()
        line._case = self
        self.net.connect(line, self.site.buildProtocol(None))
        self.net.run()
        return line

    def after(self, peer: Peer) -> bytes:
        """What a peer has heard once all that is due is done."""
        self.net.run()
        self.clock.advance(0)
        self.net.run()
        return peer.take()

    def ask(self, request: bytes, provider: str = "openai") -> tuple[Line, Peer]:
        """Send a request on a line of its own; the provider's end of the connection that it went to."""
        line = self.line()
        line.say(request)
        return line, self.places[provider].peers[-1]

    def answered(self, request: bytes, answer: bytes, provider: str = "openai") -> bytes:
        """What a client hears whose provider says C{answer} and nothing else."""
        line, there = self.ask(request, provider)
        there.end.write(answer)
        return self.after(line)

    def used(self, asked: bytes, provider: str = "openai") -> tuple[Line, Peer]:
        """A client and a provider's connection after one request, which was answered."""
        line, there = self.ask(asked, provider)
        there.end.write(OK)
        self.assertEqual(self.after(line), OK)
        there.take()
        return line, there

    def unread(self, asked: bytes, length: int = 70_000) -> tuple[Line, Peer]:
        """A client that does not read an answer, which came whole and at once."""
        line, there = self.ask(asked)
        line.end.pauseProducing()
        self.net.most = lambda: 100_000
        there.end.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % length + b"x" * length)
        self.net.run()
        there.take()
        return line, there

    def wait(self, seconds: float, step: float = 1.0, turns: int = 0) -> None:
        """Let time pass, and do all that is due in it.

        :param turns: so many turns of the reactor, which take no time, before that.
        """
        for each in [0.0] * turns + [step] * round(seconds / step):
            self.clock.advance(each)
            self.net.run()

    def session(self, *, live: bool = True, at_hand: bool = True, key: str = KEY) -> Session:
        """A session with that gateway key."""
        session = example_session("ses1")
        session = session if live else evolve(session, ended_at=session.started_at)
        digest = hashlib.sha256(key.encode()).digest()
        self.keys.in_store[digest] = session
        if at_hand and live:
            self.keys.in_memory[digest] = session
        return session

    def reached(self) -> Sequence[str]:
        """The names of the providers that were connected to."""
        return [name for name, place in self.places.items() if place.peers or place.asked]

    def refused(self, heard: bytes, status: int, kind: str = "") -> Any:
        """Assert that this is one whole refusal of the gateway, and nothing was sent anywhere; its body."""
        head, _, body = heard.partition(b"\r\n\r\n")
        self.assertEqual(status_of(heard), status, heard)
        self.assertIn(b"\r\nConnection: close", head)
        self.assertIn(b"\r\nContent-Length: %d\r\n" % len(body), head + b"\r\n")
        if kind:
            self.assertIn(b"\r\nX-Aileron-Error: %s\r\n" % kind.encode(), head)
        return json.loads(body)


def request(
    target: str = "/v1/chat/completions", *lines: str, method: str = "POST", body: bytes = b"{}", host: str = HOST
) -> bytes:
    """A request with a body of known length."""
    fields = [f"Host: {host}", *lines, *([f"Content-Length: {len(body)}"] if body else [])]
    return "\r\n".join([f"{method} {target} HTTP/1.1", *fields, "", ""]).encode("latin-1") + body


def get(target: str = "/openai/x", *lines: str) -> bytes:
    """A request without a body."""
    return request(target, *lines, method="GET", body=b"")


def status_of(heard: bytes) -> int:
    """The status of the first answer; 0: there is none."""
    return int(heard.split(b" ", 2)[1]) if heard else 0
