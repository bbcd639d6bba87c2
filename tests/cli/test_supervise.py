"""``aileron daemon run`` stays while a daemon serves the home, whichever process that is."""

from __future__ import annotations

import shutil
import socket
import tempfile
from collections.abc import Callable, Iterator

import attrs
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli._errors import CommandError
from aileron.cli.daemon.supervise import POLL_SECONDS, REPLACED_SECONDS, notify_ready, wait_for_end
from aileron.home import acquire_lock, release_lock
from tests.cli.daemon import CommandCase


class WaitTests(CommandCase):
    """C{wait_for_end}, with a clock of the test's own; what happens between two looks is a list of steps."""

    def wait(self, *steps: Callable[[], object]) -> float:
        """Return how many seconds passed until it returned."""
        now, remaining = [0.0], iter(steps)

        def sleep(seconds: float) -> None:
            now[0] += seconds
            next(remaining, _nothing)()

        self.addCleanup(release_lock, self.home)
        wait_for_end(attrs.evolve(self.cli_context(), seconds=lambda: now[0], sleep=sleep), self.home)
        return now[0]

    def test_replaced(self) -> None:
        """While one daemon takes the place of another there may be none for a while."""
        between = int(REPLACED_SECONDS / POLL_SECONDS) - 2

        def steps() -> Iterator[Callable[[], object]]:
            for _ in range(3):
                yield lambda: acquire_lock(self.home)
                yield _nothing
                yield lambda: release_lock(self.home)
                yield from [_nothing] * between

        took = self.wait(*steps())
        self.assertGreater(took, 2 * REPLACED_SECONDS)
        self.assertLess(took, 4 * REPLACED_SECONDS + 12 * POLL_SECONDS)

    def test_stopped(self) -> None:
        """It ends when the daemon was stopped and no other came."""
        acquire_lock(self.home)
        took = self.wait(_nothing, _nothing, lambda: release_lock(self.home))
        self.assertAlmostEqual(took, REPLACED_SECONDS + 2 * POLL_SECONDS)

    def test_crashed(self) -> None:
        """A daemon that left its address behind did not end by itself: that is an error, and told at once."""
        self.serve()
        said = self.assertRaises(CommandError, self.wait, _nothing, lambda: release_lock(self.home))
        self.assertIn("ended without being told to", said.message)
        self.assertIn(str(self.home.log), str(said.hint))


class NotifyTests(SynchronousTestCase):
    """A service manager is told by the datagram of sd_notify(3)."""

    def test_told(self) -> None:
        """It is told at the address that the environment names, a path or an abstract name; else nothing happens."""
        directory = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, directory)
        for address, bound in ((f"{directory}/n", f"{directory}/n"), (f"@{directory}", f"\0{directory}")):
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.bind(bound)
                notify_ready({"NOTIFY_SOCKET": address})
                self.assertEqual(manager.recv(100, socket.MSG_DONTWAIT), b"READY=1")
        notify_ready({})


def _nothing() -> None:
    """Nothing happens."""
