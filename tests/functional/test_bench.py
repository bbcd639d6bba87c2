"""The benchmark of the gateway, ended before its time."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path
from typing import Any

from tests.functional.case import FunctionalTestCase
from tests.functional.process import Command
from tests.functional.reactor import until

ROOT = Path(__file__).resolve().parents[2]


class EndedEarlyTests(FunctionalTestCase):
    """C{python -m bench gateway} starts daemons, and ends them whatever ends it."""

    if sys.platform != "linux" or shutil.which("cc") is None:
        skip = "the benchmark needs Linux and a C compiler"

    async def test_terminated(self) -> None:
        """SIGTERM leaves no daemon, no other process and no file behind."""
        temporary = self.home.temporary
        arguments = (sys.executable, "-m", "bench", "1", "gateway")
        command = Command(arguments=arguments, environment=self.home.environment(), directory=ROOT)
        running = self.start(command)
        await until(self.reactor, lambda: _serves(temporary), 120, "a daemon of the benchmark's")
        self.assertNotEqual(_mentioning(temporary), [])
        found = await running.signal(seconds=120)
        self.assertEqual(found.exit_code, 143, found)
        await until(self.reactor, lambda: not _mentioning(temporary), 30, "the end of what the benchmark started")
        self.assertEqual(list(temporary.iterdir()), [])


def _serves(place: Path) -> bool:
    return any(place.glob("bench-*/home-*/aileron/daemon.json"))


def _mentioning(place: Path) -> list[Any]:
    """Return the processes whose arguments or environment name a place."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            words = (process / "cmdline").read_bytes() + (process / "environ").read_bytes()
        except OSError:  # it has ended meanwhile
            continue
        if str(place / "bench-").encode() in words:
            found.append(process.name)
    return found
