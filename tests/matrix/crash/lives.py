"""Lives of the daemon from outside: begun, found, ended."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

from attrs import define, frozen

from aileron.home.discovery import Discovery, read_discovery
from aileron.home.paths import Home
from aileron.model.errors import AileronError

from .nursery import Birth

_LOOK_SECONDS = 0.01


@frozen
class Death:
    """How a life ended.

    :ivar points: those that it came to, in order.
    """

    status: int
    points: tuple[str, ...]


@define(eq=False)
class Life:
    """One life of the daemon."""

    pid: int
    birth: Birth
    death: asyncio.Future[Death]

    def end(self, how: int = signal.SIGKILL) -> None:
        """End it, if it has not ended.  The nursery has not collected it before C{death} is told."""
        if not self.death.done():
            with suppress(ProcessLookupError):
                os.kill(self.pid, how)

    async def found(self) -> Discovery | None:
        """Where it serves, as soon as it does; L{None}: it ended before."""
        home = Home(Path(self.birth.home))
        while not self.death.done():
            with suppress(AileronError):
                found = read_discovery(home)
                if found is not None and found.pid == self.pid:
                    return found
            await asyncio.sleep(_LOOK_SECONDS)
        return None


@define(eq=False)
class Nursery:
    """The process that forks lives, one at a time."""

    _process: asyncio.subprocess.Process
    _watching: asyncio.Task[None] | None = None

    @classmethod
    async def open(cls) -> Nursery:
        """Start it."""
        command = (sys.executable, "-m", "tests.matrix.crash.nursery")
        pipe = asyncio.subprocess.PIPE
        return cls(await asyncio.create_subprocess_exec(*command, stdin=pipe, stdout=pipe, limit=1 << 24))

    async def begin(self, birth: Birth) -> Life:
        """Begin a life."""
        assert self._process.stdin
        self._process.stdin.write(birth.line().encode() + b"\n")
        death: asyncio.Future[Death] = asyncio.get_running_loop().create_future()
        life = Life(json.loads(await self._line())["pid"], birth, death)
        self._watching = asyncio.create_task(self._watch(life))
        return life

    async def close(self) -> None:
        """End it; no life runs."""
        assert self._process.stdin
        self._process.stdin.close()
        await self._process.wait()

    async def _watch(self, life: Life) -> None:
        told = json.loads(await self._line())
        life.death.set_result(Death(told["status"], tuple(told["points"])))

    async def _line(self) -> bytes:
        assert self._process.stdout
        return await self._process.stdout.readline()
