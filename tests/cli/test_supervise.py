"""``aileron daemon run`` stays while a daemon serves the home, whichever process that is."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import attrs
from twisted.trial.unittest import SynchronousTestCase

from aileron.cli.context import CliContext
from aileron.cli.daemon import process
from aileron.cli.daemon.process import replacing, stop
from aileron.cli.daemon.supervise import POLL_SECONDS, REPLACED_SECONDS, end, ending_later, notify_ready, wait_for_end
from aileron.cli.errors import CommandError
from aileron.cli.vault.unlocking import start_with
from aileron.home.lock import acquire_lock, release_lock
from aileron.home.paths import Home, prepare
from aileron.vault.keys import DataKey
from tests.cli.daemon import URL, CommandCase


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


class StartStopTests(CommandCase):
    """What C{aileron daemon run} does with a daemon."""

    def cli_context(self) -> CliContext:
        """Return the usual one, with a clock of its own; the daemon ends at the first look at it."""
        now = [0.0]

        def sleep(seconds: float) -> None:
            now[0] += seconds
            release_lock(self.home)
            self.home.discovery.unlink(missing_ok=True)

        context = attrs.evolve(super().cli_context(), seconds=lambda: now[0], sleep=sleep)
        return attrs.evolve(context, conceal=lambda: self.concealed.append(True), passphrase=self.interrupt)

    def interrupt(self, *_: object) -> str:
        """Answer the question for a passphrase with Ctrl-C."""
        raise KeyboardInterrupt

    def setUp(self) -> None:
        super().setUp()
        self.concealed: list[bool] = []
        for each in (signal.SIGTERM, signal.SIGINT):
            self.addCleanup(signal.signal, each, signal.getsignal(each))

    def test_run(self) -> None:
        """It says that the daemon runs and that it has stopped, and nobody can read its environment meanwhile."""
        self.serve()
        code, out, err = self.command("daemon", "run")
        running = f"The daemon is running (PID {os.getpid()})."
        self.assertEqual((code, out, err), (0, f"{running}\nThe daemon has stopped.\n", ""))
        self.assertEqual(self.concealed, [True])

    def test_interrupted(self) -> None:
        """Ctrl-C at the question for the passphrase ends the command, which says nothing of a daemon."""
        self.home.secrets.touch()
        self.typed = ["anything"]
        self.assertEqual(self.command("daemon", "run")[:2], (130, ""))

    def test_no_home(self) -> None:
        """Where its home cannot be created the command says so, also when it is told to stop at the same time."""

        def told(home: Home) -> None:
            os.kill(os.getpid(), signal.SIGTERM)
            prepare(home)

        dangling = Path(self.mktemp()).absolute()
        dangling.symlink_to("nowhere")
        self.environ["AILERON_HOME"] = str(dangling)
        for make in (prepare, told):
            self.patch(process, "prepare", make)
            code, out, err = self.command("daemon", "run", "--locked")
            why = f"aileron: {dangling} cannot be created (File exists: {dangling}). No daemon was started."
            self.assertEqual((code, out, err.splitlines()[0]), (1, "", why))
            self.assertIn("AILERON_HOME", err)

    def test_key_forgotten(self) -> None:
        """The vault's key does not stay in the process that waits."""
        self.serve()
        key = DataKey(b"k" * 32)
        self.assertEqual(start_with(self.cli_context(), key).url, URL)
        self.assertRaises(ValueError, key.subkey, "any")

    def test_ended_while_replaced(self) -> None:
        """A daemon that a command is putting in the place of another when the end is told is stopped as well."""
        killed, looks = list[int](), list[float]()

        def kill(pid: int, _: int) -> None:
            killed.append(pid)
            release_lock(self.home)

        def sleep(seconds: float) -> None:
            looks.append(seconds)
            if len(looks) == 3:
                acquire_lock(self.home)
                held.close()

        self.patch(os, "kill", kill)
        context = attrs.evolve(super().cli_context(), sleep=sleep)
        with ExitStack() as held:
            held.enter_context(replacing(self.home))
            end(context)
        self.assertEqual((killed, len(looks)), ([os.getpid()], 3))
        end(context)
        self.assertEqual((killed, len(looks)), ([os.getpid()], 3))

    def test_just_ended(self) -> None:
        """A daemon that ends by itself just before it is told to has been stopped."""
        self.serve()

        def kill(*_: int) -> None:
            release_lock(self.home)
            raise ProcessLookupError

        self.patch(os, "kill", kill)
        self.assertTrue(stop(self.cli_context()))


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

    def test_inherited(self) -> None:
        """An address where nobody listens any more does not matter: the variable came from another program."""
        notify_ready({"NOTIFY_SOCKET": "/nonexistent/notify"})


class EndingLaterTests(SynchronousTestCase):
    """A signal during the start of the daemon."""

    def test_waits(self) -> None:
        """It takes effect once the daemon runs and can be stopped, whether or not the start then fails."""
        for fails in (False, True):
            for each in (signal.SIGTERM, signal.SIGINT):
                done: list[bool] = []
                self.assertRaises(KeyboardInterrupt, self.start, each, done, fails)
                self.assertEqual(done, [True])

    def start(self, number: int, done: list[bool], fails: bool) -> None:
        """Get a signal, and do something after it."""
        with ending_later():
            os.kill(os.getpid(), number)
            done.append(True)
            if fails:
                raise CommandError("not healthy")

    def test_untold(self) -> None:
        """Without one nothing happens, and what the signals do afterwards is as before."""
        before = signal.getsignal(signal.SIGTERM)
        with ending_later():
            self.assertNotEqual(signal.getsignal(signal.SIGTERM), before)
        self.assertEqual(signal.getsignal(signal.SIGTERM), before)


def _nothing() -> None:
    """Nothing happens."""
