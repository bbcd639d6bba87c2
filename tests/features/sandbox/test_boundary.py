"""What the check of a sandbox's boundary finds where there is none: here, outside."""

from __future__ import annotations

import os
import socket

from twisted.trial.unittest import SynchronousTestCase

from aileron.features.sandbox import _entrypoint


class ProbeTests(SynchronousTestCase):
    """The attempts of the script that becomes the agent; a sandbox's own are in the functional tests."""

    def test_network(self) -> None:
        """The network outside is told from another one, and its interfaces are named."""
        outside = os.stat("/proc/self/ns/net").st_ino
        self.assertIn("the network is the one outside", list(_entrypoint._try_network(outside)))
        self.assertNotIn("the network is the one outside", list(_entrypoint._try_network(outside + 1)))

    def test_reached(self) -> None:
        """A socket that listens is found to be reached."""
        with socket.create_server(("127.0.0.1", 0)) as server:
            found = next(_entrypoint._try_tcp(server.getsockname()[1]))
        self.assertEqual(found, "127.0.0.1 was reached")

    def test_unix(self) -> None:
        """Sockets that can be made are named."""
        found = list(_entrypoint._try_unix())
        self.assertIn("a socket of AF_UNIX can be made", found)
        self.assertIn("a pair of datagram sockets can be made", found)

    def test_descriptors(self) -> None:
        """A descriptor beyond the standard ones is named, unless the agent will not have it."""
        there = {int(each) for each in os.listdir("/proc/self/fd")}
        extra = os.dup(1)
        self.addCleanup(os.close, extra)
        self.assertEqual(list(_entrypoint._check_descriptors(there - {extra})), [f"descriptor {extra} was inherited"])
        self.assertEqual(list(_entrypoint._check_descriptors(there | {extra})), [])

    def test_pairs(self) -> None:
        """Only one end of a connected pair of streams can call nobody else."""
        with socket.socketpair()[0] as broken, socket.socket(socket.AF_UNIX) as lonely:
            one, other = socket.socketpair()
            datagram, _ = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
            with one, other, datagram, socket.socket(socket.AF_INET) as network:
                found = [_entrypoint._is_a_pair(each.fileno()) for each in (one, lonely, datagram, network)]
        self.assertEqual(found, [True, False, False, False])
        self.assertEqual(broken.fileno(), -1)
