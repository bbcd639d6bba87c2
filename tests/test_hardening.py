"""A process that is closed to the user's other processes."""

from __future__ import annotations

import json
import subprocess
import sys

from twisted.trial.unittest import SynchronousTestCase

from aileron.hardening import Kernel, conceal, harden
from aileron.model.errors import Forbidden

_LOOK = """
import json, os, resource
from aileron.hardening import harden
harden()
harden()
status = dict(line.split(":\\t", 1) for line in open("/proc/self/status").read().splitlines() if ":\\t" in line)
print(json.dumps([os.umask(0), resource.getrlimit(resource.RLIMIT_CORE), status["NoNewPrivs"]]))
import ctypes
print(ctypes.CDLL(None).prctl(3, 0, 0, 0, 0))
"""
_OWNER, _MEMORY, _RIGHTS = ("umask", 0o077), ("prctl", 4, 0, 0, 0, 0), ("prctl", 38, 1, 0, 0, 0)


class Recording:
    """A system that does nothing and remembers what it was asked.

    :param refuses: the call that it refuses, with what.
    """

    def __init__(self, platform: str = "linux", refuses: tuple[object, ...] = (), error: int = 1) -> None:
        self.asked: list[tuple[object, ...]] = []
        self._refuses, self._error = refuses, error
        self.kernel = Kernel(platform, self._umask, self._no_core, self._call)

    def _umask(self, mask: int) -> int:
        self.asked.append(("umask", mask))
        return 0

    def _no_core(self) -> None:
        self.asked.append(("core",))
        if self._refuses == ("core",):
            raise ValueError("not allowed")

    def _call(self, *call: object) -> int:
        self.asked.append(call)
        return self._error if call == self._refuses else 0


class HardeningTests(SynchronousTestCase):
    def test_real(self) -> None:
        """The process really gets a private umask, no core, no new rights and no readers; twice is safe."""
        if not sys.platform.startswith("linux"):
            return self.assertEqual(self.asked_on("darwin"), [_OWNER, ("core",), ("ptrace", 31, 0, 0, 0)])
        found = subprocess.run([sys.executable, "-c", _LOOK], capture_output=True, text=True, check=True)
        first, second = found.stdout.splitlines()
        self.assertEqual((json.loads(first), int(second)), ([0o077, [0, 0], "1"], 0))
        return None

    def asked_on(self, platform: str) -> list[tuple[object, ...]]:
        """What one system is asked."""
        system = Recording(platform)
        harden(system.kernel)
        return system.asked

    def test_systems(self) -> None:
        """Each system is asked for what it has, a strange one for what all have; who starts a browser is concealed."""
        self.assertEqual(self.asked_on("linux"), [_OWNER, ("core",), _MEMORY, _RIGHTS])
        self.assertEqual(self.asked_on("darwin"), [_OWNER, ("core",), ("ptrace", 31, 0, 0, 0)])
        self.assertEqual(self.asked_on("freebsd14"), [_OWNER, ("core",)])
        for platform, asked in (("linux", [_MEMORY]), ("darwin", [("ptrace", 31, 0, 0, 0)]), ("freebsd14", [])):
            system = Recording(platform)
            conceal(system.kernel)
            self.assertEqual(system.asked, asked)
        self.assertRaises(Forbidden, conceal, Recording(refuses=_MEMORY).kernel)

    def test_refused(self) -> None:
        """Whatever the system refuses, or has no function for, is an error that names it."""
        for refused, word in ((("core",), "Memory dumps"), (_MEMORY, "kept out"), (_RIGHTS, "New rights")):
            error = self.assertRaises(Forbidden, harden, Recording(refuses=refused).kernel)
            self.assertIn(word, error.message)

        def missing(*_call: object) -> int:
            raise AttributeError("prctl")

        kernel = Kernel("linux", lambda mask: mask, lambda: None, missing)
        self.assertIn("not to be had", self.assertRaises(Forbidden, harden, kernel).message)
