"""What strikes the daemons' database, and one daemon's clock."""

from __future__ import annotations

import asyncio
import ctypes
import os
import random
import signal
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

from attrs import define, field

from tests.functional.postgresql import Server, as_ordinary_user

RESTARTED, PAUSED, CUT = "the server restarted", "the database stood still", "all its connections cut"
SLOW, FULL = "the database slow", "the database's disk full"
_PULSES, _CUTS = 12, 4
_SMALL_BYTES = 128 * 1024 * 1024
_NEW_MOUNTS = 0x20000  # CLONE_NEWNS
_BLOCK = bytes(64 * 1024)


def _mount(*arguments: str) -> bool:
    with suppress(OSError):
        return subprocess.run(("mount", *arguments), check=False, stderr=subprocess.DEVNULL).returncode == 0
    return False


@define(eq=False)
class Disk:
    """A small file system of its own for one database, so that it can really be full.

    :ivar path: where it is mounted, or None if this user may mount nothing.
    """

    path: Path | None = None

    @classmethod
    def mount(cls) -> Disk:
        """Mount it at a new directory, for the server's user, where this process and its children alone see it.

        Call before there are threads or children, which would not see it.
        """
        path = Path(tempfile.mkdtemp(prefix="aileron-small-", dir="/tmp"))
        options = f"size={_SMALL_BYTES},mode=0700"
        who = as_ordinary_user()
        if who:
            options += f",uid={who['user']},gid={who['group']}"
        if ctypes.CDLL(None).unshare(_NEW_MOUNTS) != 0 or not (
            _mount("--make-rprivate", "/") and _mount("-t", "tmpfs", "-o", options, "aileron-matrix", str(path))
        ):
            path.rmdir()
            return cls()
        return cls(path)

    def fill(self) -> None:
        """Leave no byte free."""
        assert self.path is not None
        with suppress(OSError), self._ballast.open("ab", buffering=0) as file:
            for size in (len(_BLOCK), 4096, 1):
                with suppress(OSError):
                    while True:
                        file.write(_BLOCK[:size])

    def empty(self) -> None:
        """Give the room back."""
        self._ballast.unlink(missing_ok=True)

    def unmount(self) -> None:
        """Remove it. The database on it is gone."""
        if self.path is not None:
            subprocess.run(("umount", "--lazy", str(self.path)), check=True)
            self.path.rmdir()

    @property
    def _ballast(self) -> Path:
        assert self.path is not None
        return self.path / "ballast"


@define(eq=False)
class Strikes:
    """Strikes the database of the daemons, and makes it well again.

    :param seconds: how long a strike may last at most: some leases.
    """

    server: Server
    database: str
    disk: Disk
    chance: random.Random
    seconds: float
    _kinds: dict[str, Callable[[], object]] = field(init=False)

    def __attrs_post_init__(self) -> None:
        full = {} if self.disk.path is None else {FULL: self._fill}
        self._kinds = {**full, RESTARTED: self._restart, PAUSED: self._pause, CUT: self._cut, SLOW: self._slow}

    def names(self) -> tuple[str, ...]:
        """What may strike."""
        return tuple(self._kinds)

    async def strike(self, name: str) -> None:
        """Strike, and return once the database is well again."""
        work: partial[object] = partial(self._kinds[name])
        found = work()
        if asyncio.iscoroutine(found):
            await found

    async def _restart(self) -> None:
        how = self.chance.choice(("immediate", "fast"))
        control = partial(asyncio.get_running_loop().run_in_executor, None, self.server.control)
        await control("stop", "-m", how)
        await asyncio.sleep(self.chance.random() * self.seconds)
        await control("start")

    async def _pause(self) -> None:
        stopped = self._signal(signal.SIGSTOP)
        try:
            await asyncio.sleep(self.chance.uniform(0.2, self.seconds))
        finally:
            _send(stopped, signal.SIGCONT)

    async def _slow(self) -> None:
        for _ in range(_PULSES):
            stopped = self._signal(signal.SIGSTOP)
            try:
                await asyncio.sleep(self.chance.uniform(0.05, 0.6))
            finally:
                _send(stopped, signal.SIGCONT)
            await asyncio.sleep(self.chance.uniform(0.005, 0.05))

    async def _cut(self) -> None:
        for _ in range(_CUTS):
            await asyncio.get_running_loop().run_in_executor(None, self._cut_all)
            await asyncio.sleep(self.chance.uniform(0.0, 0.5))

    def _cut_all(self) -> None:
        with self.server.connect() as admin:
            admin.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [self.database])

    async def _fill(self) -> None:
        self.disk.fill()
        try:
            await asyncio.sleep(self.chance.uniform(0.5, self.seconds))
        finally:
            self.disk.empty()

    def _signal(self, how: int) -> tuple[int, ...]:
        """Send a signal to all processes of the server, and return them."""
        found = tuple(self._processes())
        _send(found, how)
        return found

    def _processes(self) -> Iterator[int]:
        """Yield the server's first process and its children."""
        lines = (self.server.directory / "data" / "postmaster.pid").read_text().splitlines()
        first = int(lines[0])
        yield first
        for task in Path(f"/proc/{first}/task").iterdir():
            yield from map(int, (task / "children").read_text().split())


def _send(processes: tuple[int, ...], how: int) -> None:
    for each in processes:
        with suppress(ProcessLookupError):
            os.kill(each, how)
