"""What becomes of the limit of descriptors, and what follows from it."""

from __future__ import annotations

import resource

from twisted.trial.unittest import SynchronousTestCase

from aileron.daemon._descriptors import WANTED, allow_descriptors, most_connections, raised

INFINITE = resource.RLIM_INFINITY


class LimitTests(SynchronousTestCase):
    """The limit that is set."""

    def test_raised(self) -> None:
        """It is raised to what is wanted, or to what may be had."""
        self.assertEqual([raised(1024, hard) for hard in (1024, 4096, 1 << 20, INFINITE)], [1024, 4096, WANTED, WANTED])

    def test_never_lowered(self) -> None:
        """What is more already stays."""
        self.assertEqual([raised(1 << 18, 1 << 20), raised(INFINITE, INFINITE)], [1 << 18, INFINITE])

    def test_set(self) -> None:
        """The process has it then, and asking again changes nothing."""
        before = resource.getrlimit(resource.RLIMIT_NOFILE)
        self.addCleanup(resource.setrlimit, resource.RLIMIT_NOFILE, before)
        resource.setrlimit(resource.RLIMIT_NOFILE, (600, before[1]))
        limit = allow_descriptors()
        self.assertEqual(resource.getrlimit(resource.RLIMIT_NOFILE), (limit, before[1]))
        self.assertEqual(allow_descriptors(), limit)
        self.assertGreater(limit, 600)


class ConnectionsTests(SynchronousTestCase):
    """How many connections the agent site may hold."""

    def test_rest(self) -> None:
        """Each takes two descriptors, and the operator site's 256 connections and enough more are left."""
        for limit in (1024, 4096, WANTED, 1 << 20, INFINITE):
            used = 2 * most_connections(limit)
            self.assertLess(used + 256 + 100, min(limit, WANTED) if limit > 0 else WANTED)

    def test_grows(self) -> None:
        """Who has more descriptors holds more connections; where there are hardly any, some are held."""
        self.assertEqual([most_connections(limit) for limit in (256, 1024, 4096, WANTED)], [64, 320, 1856, 4928])
