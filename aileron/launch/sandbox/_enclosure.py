"""Puts a planned agent into a sandbox, and keeps the one way out open while it runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from attrs import evolve, field, frozen

from aileron.launch._plan import Plan

from ._passage import Passage
from ._project import SandboxProject

_THRESHOLD = Path(__file__).with_name("_threshold.py")
_MEETING, _FILTER = 3, 4
"""The descriptors of a child: the socket by which it meets the launcher, and the program for C{seccomp}."""


@frozen
class Sandbox:
    """Makes sandboxes for agents.

    :ivar reactor: provides TCP, adopts sockets and tells when they can be read.
    :ivar program: bubblewrap's.
    :ivar interpreter: by which the threshold is crossed.
    :ivar seccomp: the program that the kernel judges the agent's calls by.
    """

    reactor: Any
    program: str
    interpreter: str
    seccomp: bytes = field(repr=False)

    @contextmanager
    def around(self, plan: Plan, project: SandboxProject, url: str) -> Iterator[Plan]:
        """What is to be started in its place; C{url} is the only thing that it reaches, as long as this lasts.

        :param url: of the agent site, at an IPv4 address of this machine.
        :raises InvalidRequest: something that runs outside could not be protected from the agent.
        """
        site = urlsplit(url)
        port = site.port or 80
        layout = project.layout
        needed = () if plan.directory is None else (plan.directory,)
        for directory in (*layout.own, *layout.settings):
            Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        opened = evolve(project, layout=evolve(layout, programs=(*layout.programs, *needed)))
        ours, theirs = socket.socketpair()
        passage = Passage(self.reactor, site.hostname or "", port, ours)
        with theirs, closing(passage), opened.prepared() as prefix, self._filter() as filtered:
            crossing = (self.interpreter, "-I", str(_THRESHOLD), str(port), str(_MEETING))
            argv = (self.program, *prefix, "--seccomp", str(_FILTER), "--", *crossing, *plan.argv)
            passage.open()
            yield evolve(plan, argv=argv, descriptors={_MEETING: theirs.fileno(), _FILTER: filtered})

    @contextmanager
    def _filter(self) -> Iterator[int]:
        """A descriptor from which the program for C{seccomp} is read."""
        reading, writing = os.pipe()
        try:
            with open(writing, "wb") as file:  # far less than a pipe holds
                file.write(self.seccomp)
            yield reading
        finally:
            os.close(reading)
