"""The benchmark of the gateway, ended before its time, and those of large and shared stores, on a small scale."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from twisted.trial.unittest import SynchronousTestCase

from tests.extent import seldom
from tests.functional.case import FunctionalTestCase
from tests.functional.postgresql import make_server
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


class ScaleTests(SynchronousTestCase):
    """C{python -m bench.scale} and C{bench.large}: stores that daemons share, and large ones."""

    @seldom
    def test_daemons(self) -> None:
        """A file is measured alone; a server by itself, and with one, two and four daemons, whose transactions hold."""
        server = make_server()
        for place, numbers in ((), [1]), ((server.url(server.make_database()),), [1, 1, 2, 4]):
            command = [sys.executable, "-m", "bench.scale", "0.5", *place]
            done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=120)
            found = [json.loads(line) for line in done.stdout.splitlines()]
            self.assertEqual([each["daemons"] for each in found], numbers)
            for each in found:
                self.assertGreater(each["per_second"], 0)
                self.assertGreater(each["decision_p99_ms"], 0)
                self.assertEqual(each["undone_per_1000"], 0)

    @seldom
    def test_large(self) -> None:
        """Lists of many requests and the verification of many records are measured on both databases."""
        server = make_server()
        for place in ([], [server.url(server.make_database())]):
            for what, names in (("pending", {"first_page_ms", "later_page_ms"}), ("audit", {"cpu_us", "most_mb"})):
                command = [sys.executable, "-m", "bench.large", what, "200", *place]
                done = subprocess.run(command, cwd=ROOT, capture_output=True, check=True, timeout=120)
                for line in done.stdout.splitlines():
                    found = json.loads(line)
                    self.assertLessEqual(names, set(found))
                    self.assertGreater(min(found.values()), 0)
