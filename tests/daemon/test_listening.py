"""Where the sites listen, and by which names they may be called: never by one that might lead to somebody else."""

from __future__ import annotations

import errno
from collections.abc import Mapping
from functools import partial
from typing import Any

from attrs import define
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.defer import Deferred
from twisted.internet.error import CannotListenError
from twisted.internet.interfaces import IListeningPort
from twisted.internet.protocol import Factory
from twisted.internet.testing import MemoryReactor
from twisted.trial.unittest import SynchronousTestCase
from zope.interface import implementer

from aileron.daemon._config import Config
from aileron.daemon._listening import Bound, bind_agent_site, bind_operator_site
from aileron.daemon._sites import _make_label
from aileron.model.errors import InvalidRequest

_FREE = 4242


@implementer(IListeningPort)
@define
class Port:
    """A port that is bound until it is stopped."""

    address: Any
    stopped: bool = False

    def startListening(self) -> None:
        """It listens already."""

    def stopListening(self) -> None:
        """Give it back."""
        self.stopped = True

    def getHost(self) -> Any:
        """Where it is."""
        return self.address


class Network(MemoryReactor):
    """A reactor with addresses.

    :param refused: by address, the errno with which it cannot be bound.
    """

    def __init__(self, refused: Mapping[str, int] | None = None) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.refused = refused or {}
        self.bound: list[Port] = []
        self.backlogs: list[int] = []

    def listenTCP(self, port: int, factory: Any, backlog: int = 50, interface: str = "") -> Any:
        if interface in self.refused:
            raise CannotListenError(interface, port, OSError(self.refused[interface], "no"))
        kind = IPv6Address if ":" in interface else IPv4Address
        self.bound.append(Port(kind("TCP", interface or "0.0.0.0", port or _FREE)))
        self.backlogs.append(backlog)
        return self.bound[-1]

    def listenUNIX(self, address: str, *_arguments: Any, **_named: Any) -> Any:
        self.bound.append(Port(object()))
        return self.bound[-1]


class ListeningTests(SynchronousTestCase):
    """Both sites, with and without an endpoint of the operator's choice."""

    def bind(self, bind: Any, network: Network, endpoint: str | None = None) -> Bound:
        """Bind one site."""
        found: Bound = self.successResultOf(Deferred.fromCoroutine(bind(network, Factory(), None, endpoint)))
        return found

    def test_operator(self) -> None:
        """Where localhost is ours it is announced and answered to, with or without IPv6, for hundreds at once."""
        bound = self.bind(bind_operator_site, Network())
        self.assertEqual(bound.url, "http://localhost:4242")
        self.assertEqual(set(bound.hosts), {"localhost:4242", "127.0.0.1:4242", "[::1]:4242"})
        bound = self.bind(bind_operator_site, Network({"::1": errno.EADDRNOTAVAIL}))
        self.assertEqual(bound.url, "http://localhost:4242")
        self.assertEqual(set(bound.hosts), {"localhost:4242", "127.0.0.1:4242"})
        network = Network()
        self.bind(bind_agent_site, network)
        self.bind(bind_operator_site, network)
        self.assertEqual(network.backlogs, [4096] * 3)

    def test_fresh_name(self) -> None:
        """At a name of its own that alone is announced; by all others, also those configured, programs may call it."""
        bound = self.bind(partial(bind_operator_site, label="bcdfghjklm"), Network()).add_names(["box"])
        self.assertEqual(bound.hosts, ("bcdfghjklm.aileron.localhost:4242",))
        self.assertEqual(bound.url, f"http://{bound.hosts[0]}")
        self.assertEqual(set(bound.others), {"localhost:4242", "127.0.0.1:4242", "[::1]:4242", "box:4242"})
        endpoint = "tcp:8082:interface=192.0.2.7"
        bound = self.bind(partial(bind_operator_site, label="bcdfghjklm"), Network(), endpoint).add_names(["box"])
        self.assertEqual((bound.hosts, bound.others), (("192.0.2.7:8082", "box:8082"), ()))

    def test_label(self) -> None:
        """The name is another each time, of letters alone, and there is none where plain localhost is wanted."""
        labels = {_make_label(Config()) or "" for _ in range(100)}
        self.assertEqual(len(labels), 100)
        for each in labels:
            self.assertRegex(each, r"\A[bcdfghjklmnpqrstvwxz]{10}\Z")
        self.assertIsNone(_make_label(Config(operator_host="localhost")))

    def test_operator_endpoint(self) -> None:
        """At one chosen address localhost might be another's by its other one: it is neither announced nor known."""
        for endpoint, host in (
            ("tcp:8082:interface=127.0.0.1", "127.0.0.1:8082"),
            ("tcp6:8082:interface=\\:\\:1", "[::1]:8082"),
            ("tcp:8082", "127.0.0.1:8082"),
            ("tcp6:8082", "[::1]:8082"),
            ("tcp:8082:interface=192.0.2.7", "192.0.2.7:8082"),
        ):
            for bind in (bind_operator_site, bind_agent_site):
                bound = self.bind(bind, Network(), endpoint)
                self.assertEqual((bound.hosts, bound.url, bound.port), ((host,), f"http://{host}", 8082), endpoint)

    def test_no_tcp(self) -> None:
        """What is no address and port cannot be called, is refused with a sentence, and is given back."""
        network = Network()
        bound = Deferred.fromCoroutine(bind_agent_site(network, Factory(), None, "unix:/nowhere"))
        self.assertIn("TCP", self.failureResultOf(bound, InvalidRequest).value.message)
        self.assertTrue(network.bound[0].stopped)
