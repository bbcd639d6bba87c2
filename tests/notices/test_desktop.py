"""The desktop's own program, without a process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

from twisted.internet.defer import Deferred
from twisted.internet.error import ProcessDone, ProcessExitedAlready, ProcessTerminated
from twisted.internet.protocol import ProcessProtocol
from twisted.internet.task import Clock
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.notices import Undelivered
from aileron.notices._channels import find_command, notify_desktop

from .case import message

ENVIRON = {
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/run/user/1000/bus",
    "XDG_RUNTIME_DIR": "/run/user/1000",
    "HOME": "/home/user",
    "HTTPS_PROXY": "http://user:canary@proxy",
    "AILERON_HOME": "/home/user/.aileron",
}


class Machine(Clock):
    """Processes by hand.

    :ivar broken: why the next one cannot be started.
    :ivar killed: whether one was.
    """

    def __init__(self) -> None:
        super().__init__()
        self.spawned: list[tuple[str, list[str], dict[str, str]]] = []
        self.broken: OSError | None = None
        self.killed = False
        self._protocol: ProcessProtocol | None = None

    def spawnProcess(
        self, processProtocol: ProcessProtocol, executable: str, args: Sequence[bytes], env: dict[str, str]
    ) -> None:
        """Note it."""
        if self.broken is not None:
            raise self.broken
        self._protocol = processProtocol
        processProtocol.transport = cast("Any", self)
        self.spawned.append((executable, [each.decode() for each in args], env))

    def signalProcess(self, number: str) -> None:
        """Kill it."""
        if self._protocol is None:
            raise ProcessExitedAlready
        self.killed = True

    def exit(self, code: int = 0) -> None:
        """End it."""
        protocol, self._protocol = self._protocol, None
        reason = ProcessDone(0) if code == 0 else ProcessTerminated(code, None, None)
        cast("ProcessProtocol", protocol).processEnded(Failure(reason))


class DesktopTests(SynchronousTestCase):
    def setUp(self) -> None:
        """A desktop."""
        self.machine = Machine()
        self.command: Path | None = Path("/usr/bin/notify-send")

    def deliver(self, **more: Any) -> Deferred[None]:
        """Tell it."""
        return Deferred.fromCoroutine(notify_desktop(self.command, ENVIRON, self.machine, message(**more)))

    def test_told(self) -> None:
        """The program gets title, lines and page, and of the environment what leads to the desktop."""
        done = self.deliver(title="-Title", lines=("One & <b>two</b>",))
        self.assertNoResult(done)
        ((executable, argv, environ),) = self.machine.spawned
        self.assertEqual((executable, argv[0]), ("/usr/bin/notify-send", "/usr/bin/notify-send"))
        self.assertEqual(argv[-3:-1], ["--", "-Title"])
        self.assertEqual(argv[-1], "One &amp; &lt;b&gt;two&lt;/b&gt;\nhttp://localhost:7001/approvals/run-1")
        self.assertEqual(set(environ), {"DBUS_SESSION_BUS_ADDRESS", "XDG_RUNTIME_DIR", "HOME"})
        self.machine.exit()
        self.successResultOf(done)

    def test_shown(self) -> None:
        """No name makes markup, a line or no text by C's escapes; contents, which every user can read, are not told."""
        for given, shown in (
            ({"lines": (r"By \074b\076x, \n, \377 and \u202e",)}, r"By \\074b\\076x, \\n, \\377 and \\u202e"),
            ({"contents": ("ship-update: canary",)}, "One line."),
            ({"urgent": True}, "One line."),
        ):
            self.deliver(**given)
            _, argv, _ = self.machine.spawned[-1]
            self.assertEqual(argv[-1].partition("\n")[0], shown)
            self.assertEqual("--urgency=critical" in argv, "urgent" in given)
        self.assertNotIn("canary", str(self.machine.spawned))

    def test_failed(self) -> None:
        """A desktop that is not there, and a program that cannot be started or does not exist, is said."""
        done = self.deliver()
        self.machine.exit(1)
        self.failureResultOf(done, Undelivered)
        self.machine.broken = OSError(12, "Cannot allocate memory")
        self.assertIn("Cannot allocate", self.failureResultOf(self.deliver(), Undelivered).value.problem)
        self.command = None
        failed = self.failureResultOf(self.deliver(), Undelivered).value
        self.assertEqual((failed.again, "libnotify-bin" in failed.problem), (False, True))

    def test_hangs(self) -> None:
        """One that hangs is killed when it is given up, and its late end changes nothing."""
        done = self.deliver()
        done.cancel()
        self.failureResultOf(done)
        self.assertTrue(self.machine.killed)
        self.machine.exit(0)

    def test_found(self) -> None:
        """The program is looked for in a few fixed places and nowhere else, unless another was configured."""
        program, other = Path(self.mktemp()).absolute(), Path(self.mktemp()).absolute()
        for each in (program, other):
            each.write_text("#!/bin/sh\n")
        self.assertIsNone(find_command(None, (program,)))
        program.chmod(0o755)
        self.assertEqual(find_command(None, (other, program)), program)
        self.assertIsNone(find_command(other, (program,)))
