"""Puts a planned agent behind walls, and keeps the one way out open while it runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve, frozen

from aileron.launch._plan import Plan

from ._filter import terminal_filter
from ._later import make_hooks
from ._passage import Passage
from ._walls import Walls

_THRESHOLD = Path(__file__).with_name("_threshold.py")
_MEETING, _FILTER = 3, 4
"""The descriptors of a child: the socket by which it meets the launcher, and the program for C{seccomp}."""


@frozen
class Sandbox:
    """Puts agents behind walls.

    :ivar reactor: provides TCP, adopts sockets and tells when they can be read.
    :ivar program: bubblewrap's.
    :ivar interpreter: by which the threshold is crossed.
    :ivar machine: as C{platform.machine()} says.
    """

    reactor: Any
    program: str
    interpreter: str
    machine: str

    @contextmanager
    def around(self, plan: Plan, walls: Walls, url: str) -> Iterator[Plan]:
        """What is to be started in its place; C{url} is the only thing that it reaches, as long as this lasts.

        :param url: of the agent site, at an IPv4 address of this machine.
        :raises InvalidRequest: there is no such place to work in a sandbox.
        """
        site = urlsplit(url)
        port = site.port or 80
        needed = () if plan.directory is None else (plan.directory,)
        for directory in (*walls.own, *walls.settings):
            Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        make_hooks(walls.places)
        prefix = evolve(walls, programs=(*walls.programs, *needed)).arguments()
        ours, theirs = socket.socketpair()
        passage = Passage(self.reactor, site.hostname or "", port, ours)
        with theirs, self._filter() as filtered:
            descriptors = {_MEETING: theirs.fileno(), **({} if filtered is None else {_FILTER: filtered})}
            # Where terminals cannot be guarded otherwise, the agent loses its own.
            guard = ("--new-session",) if filtered is None else ("--seccomp", str(_FILTER))
            crossing = (self.interpreter, "-I", str(_THRESHOLD), str(port), str(_MEETING))
            argv = (self.program, *prefix, *guard, "--", *crossing, *plan.argv)
            passage.open()
            try:
                yield evolve(plan, argv=argv, descriptors=descriptors)
            finally:
                passage.close()

    @contextmanager
    def _filter(self) -> Iterator[int | None]:
        """A descriptor from which the program for C{seccomp} is read, or L{None} on a machine that is not known."""
        program = terminal_filter(self.machine)
        if program is None:
            yield None
            return
        reading, writing = os.pipe()
        try:
            with open(writing, "wb") as file:  # far less than a pipe holds
                file.write(program)
            yield reading
        finally:
            os.close(reading)
