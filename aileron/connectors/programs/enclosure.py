"""The sandbox around a declared program: what is shown of it at once, and what is built when a process is started."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from attrs import field, frozen
from twisted.internet.interfaces import IProtocolFactory

FILTER = 3
"""The descriptor from which a sandbox reads the program by which the kernel judges calls."""

MEETING = 6
"""The descriptor by which a sandbox hands out a socket that listens inside."""

OPENED = 10
"""The first descriptor of what a sandbox mounts where a program writes: a path could lead elsewhere by then."""


@frozen
class Confinement:
    """The sandbox of one process, as it was when it was built.

    :ivar argv: what the program's own stands behind.
    :ivar opened: paths that are opened for it, from the descriptor L{OPENED} on, in this order.
    :ivar is_current: whether what must stay as it is there is still mounted.
    :ivar changes: lists, reading the whole directory, the paths that are new or changed and that other programs obey by
        themselves.
    """

    argv: tuple[str, ...]
    opened: tuple[str, ...] = ()
    is_current: Callable[[], bool] = field(default=lambda: True, repr=False)
    changes: Callable[[], Coroutine[Any, Any, tuple[str, ...]]] | None = field(default=None, repr=False)


@frozen
class Enclosure:
    """A sandbox, as it is put around a program.

    :ivar root: the directory that it can write, but for what is read-only there.
    :ivar confine: builds it as it must be now, in a thread; it may raise L{InvalidRequest}.
    :ivar seccomp: what the kernel judges its calls by, to be read from C{filter_descriptor}.
    :ivar entry: what a program's argv stands behind that is to find us at C{api_port}; empty: it shares our network.
    :ivar listen: has a factory take what connects to that: the socket for L{MEETING}, and what ends the listening.
    """

    first_descriptor: ClassVar[int] = OPENED
    filter_descriptor: ClassVar[int] = FILTER
    meeting_descriptor: ClassVar[int] = MEETING
    api_port: ClassVar[int] = 8377
    root: str
    confine: Callable[[], Coroutine[Any, Any, Confinement]] = field(eq=False, repr=False)
    seccomp: bytes = field(repr=False)
    entry: tuple[str, ...] = ()
    listen: Callable[[IProtocolFactory], tuple[Any, Callable[[], object]]] | None = field(default=None, repr=False)


Enclose = Callable[[str, bool, bool], Enclosure]
"""From a working directory, and whether the network is reached and the whole repository written, to its sandbox, which
may raise L{InvalidRequest}."""
