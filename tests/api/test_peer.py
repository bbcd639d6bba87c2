"""Whose process is at the other end: asked of the kernel, over real loopback connections."""

from __future__ import annotations

import os
import socket
import sys
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, cast

from attrs import frozen
from twisted.internet.address import IPv4Address, IPv6Address, UNIXAddress
from twisted.internet.interfaces import ITransport
from twisted.trial.unittest import SkipTest, SynchronousTestCase

from aileron.api import peer_uid, peer_uid_lookup
from aileron.api.channels.peer import process_behind
from aileron.model.sessions import Process

_LINUX = sys.platform == "linux"


@frozen
class Ends:
    """A transport of which nothing is asked but its ends."""

    own: Any
    peer: Any

    def getHost(self) -> Any:
        """The near end."""
        return self.own

    def getPeer(self) -> Any:
        """The far end."""
        return self.peer


def between(own: Any, peer: Any) -> ITransport:
    """A transport with these ends."""
    return cast("ITransport", Ends(own, peer))


class PeerTests(SynchronousTestCase):
    """On Linux."""

    if not _LINUX:
        skip = "sock_diag is Linux's"

    def connect(self, family: int, host: str) -> tuple[socket.socket, socket.socket]:
        """A client's socket, and the one that the server accepted."""
        listening = socket.socket(family)
        self.addCleanup(listening.close)
        try:
            listening.bind((host, 0))
        except OSError as error:
            raise SkipTest(f"{host} cannot be bound: {error}") from None
        listening.listen()
        client = socket.create_connection(listening.getsockname()[:2])
        server, _ = listening.accept()
        self.addCleanup(client.close)
        self.addCleanup(server.close)
        return client, server

    def ends(self, server: socket.socket) -> ITransport:
        """A transport with the ends of an accepted socket."""
        kind = IPv6Address if server.family == socket.AF_INET6 else IPv4Address
        return between(kind("TCP", *server.getsockname()[:2]), kind("TCP", *server.getpeername()[:2]))

    def test_own(self) -> None:
        """A client of our own has our own uid, over IPv4 and IPv6; however often asked, no descriptor stays open."""
        for family, host in ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")):
            _client, server = self.connect(family, host)
            self.assertEqual(peer_uid(self.ends(server)), os.getuid())
        client, server = self.connect(socket.AF_INET, "127.0.0.1")
        before = len(os.listdir("/proc/self/fd"))
        self.assertEqual([peer_uid(self.ends(server)) for _ in range(3)], [os.getuid()] * 3)
        client.close()
        self.assertEqual([peer_uid(self.ends(server)) for _ in range(3)], [None] * 3)
        self.assertEqual(len(os.listdir("/proc/self/fd")), before - 1)

    def test_process(self) -> None:
        """A client of our own is this process, with its executable and directory; a gone one is nobody."""
        client, server = self.connect(socket.AF_INET, "127.0.0.1")
        ends = self.ends(server)
        here = Process(os.getpid(), os.readlink("/proc/self/exe"), os.getcwd())
        self.assertEqual(here, process_behind(ends.getPeer(), ends.getHost()))
        client.close()
        self.assertIsNone(process_behind(ends.getPeer(), ends.getHost()))

    def test_process_of_another(self) -> None:
        """It is the process at the far end that is told, not the one at ours."""
        listening = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listening.close)
        connect = "import socket, sys; s = socket.create_connection(('127.0.0.1', int(sys.argv[1]))); sys.stdin.read()"
        port = str(listening.getsockname()[1])
        with Popen([sys.executable, "-c", connect, port], stdin=PIPE, cwd="/") as child:
            server, _ = listening.accept()
            self.addCleanup(server.close)
            ends = self.ends(server)
            found = process_behind(ends.getPeer(), ends.getHost())
            child.communicate()
        self.assertEqual((child.pid, "/"), (found and found.pid, found and found.working_dir))

    def test_hidden_process(self) -> None:
        """Where the kernel shows no descriptor of ours, or no processes at all, nobody is told."""
        _client, server = self.connect(socket.AF_INET, "127.0.0.1")
        ends = self.ends(server)
        proc = Path(self.mktemp())
        (proc / "7" / "fd").mkdir(parents=True)
        (proc / "7" / "fd" / "0").symlink_to("/dev/null")
        (proc / "8").mkdir()
        for shown in (str(proc), str(proc / "nowhere")):
            self.assertIsNone(process_behind(ends.getPeer(), ends.getHost(), shown))

    def test_bounded_search(self) -> None:
        """Whoever opens very many descriptors makes the search end, not last."""
        client, server = self.connect(socket.AF_INET, "127.0.0.1")
        ends = self.ends(server)
        proc = Path(self.mktemp())
        (proc / "9" / "fd").mkdir(parents=True)
        (proc / "8" / "fd").mkdir(parents=True)
        for number in range(5):
            (proc / "9" / "fd" / str(number)).symlink_to("/dev/null")
        (proc / "8" / "fd" / "0").symlink_to(os.readlink(f"/proc/self/fd/{client.fileno()}"))
        found = [process_behind(ends.getPeer(), ends.getHost(), str(proc), most) for most in (5, 6)]
        self.assertEqual([None, Process(8)], found)

    def test_gone(self) -> None:
        """A client that has closed its socket, an unknown connection, and anything but TCP cannot be told."""
        client, server = self.connect(socket.AF_INET, "127.0.0.1")
        client.close()
        self.assertIsNone(peer_uid(self.ends(server)))
        one = IPv4Address("TCP", "127.0.0.1", 1)
        self.assertIsNone(peer_uid(between(one, one)))
        self.assertIsNone(peer_uid(between(UNIXAddress("/x"), UNIXAddress(None))))
        self.assertIsNone(peer_uid(between(IPv4Address("TCP", "no address", 1), IPv4Address("TCP", "127.0.0.1", 1))))


class LookupTests(SynchronousTestCase):
    """Anywhere."""

    def test_lookup(self) -> None:
        """The question is asked exactly where it can be."""
        self.assertEqual(peer_uid_lookup() is not None, _LINUX)
