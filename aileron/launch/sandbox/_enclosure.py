"""Puts a planned agent into a sandbox, and keeps the one way out open while it runs."""

from __future__ import annotations

import os
import socket
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

from attrs import evolve, field, frozen

from aileron.addresses import read_origin
from aileron.launch._plan import Plan

from ._passage import Passage
from ._processes import SandboxProcesses
from ._project import SandboxProject

_THRESHOLD = Path(__file__).with_name("_threshold.py")
_MEETING, _FILTER, _INFO = 3, 4, 5
"""The descriptors of a child: to meet the launcher by, to read the program for C{seccomp} from, and for what bubblewrap
tells of its own child."""


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
        site = read_origin(url)
        layout = project.layout
        needed = () if plan.directory is None else (plan.directory,)
        for directory in (*layout.own, *layout.settings):
            Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
        opened = evolve(project, layout=evolve(layout, programs=(*layout.programs, *needed)))
        ours, theirs = socket.socketpair()
        with _pipe() as (told, telling), _pipe(self.seccomp) as (filtered, _), theirs:
            processes = SandboxProcesses(told)
            passage = Passage(self.reactor, site.host, site.port, ours, processes.begun)
            with closing(passage), opened.prepared(processes) as prefix:
                options = (*prefix, "--seccomp", str(_FILTER), "--info-fd", str(_INFO))
                crossing = (self.interpreter, "-I", str(_THRESHOLD), str(site.port), str(_MEETING))
                argv = (self.program, *options, "--", *crossing, *plan.argv)
                passage.open()
                yield evolve(
                    plan, argv=argv, descriptors={_MEETING: theirs.fileno(), _FILTER: filtered, _INFO: telling}
                )


@contextmanager
def _pipe(content: bytes = b"") -> Iterator[tuple[int, int]]:
    """The two ends of a pipe, in which C{content} lies, far less than it holds."""
    reading, writing = os.pipe()
    try:
        os.write(writing, content)
        if content:
            os.close(writing)
        yield reading, writing
    finally:
        os.close(reading)
        if not content:
            os.close(writing)
