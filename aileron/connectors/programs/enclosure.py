"""The sandbox of a declared program: its description for review, and the parts built when a process starts."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, ClassVar

from attrs import field, frozen
from twisted.internet.interfaces import IProtocolFactory

FILTER = 3
"""The descriptor from which a sandbox reads its seccomp filter."""

MEETING = 6
"""The descriptor of the socket pair over which a sandbox passes a socket that listens inside."""

OPENED = 10
"""The first descriptor of paths that a sandbox mounts in writable places. A path could lead elsewhere by then."""


@frozen
class Confinement:
    """The sandbox of one process, as built.

    :ivar argv: the command put before the program's own.
    :ivar opened: paths that are opened for it, from the descriptor L{OPENED} on, in this order.
    :ivar is_current: returns whether every file and directory that must be protected is still mounted read-only.
    :ivar changes: returns the paths of files that the program made or changed and that other programs load
        automatically. It reads the whole directory. None if the sandbox does not support this.
    """

    argv: tuple[str, ...]
    opened: tuple[str, ...] = ()
    is_current: Callable[[], bool] = field(default=lambda: True, repr=False)
    changes: Callable[[], Coroutine[Any, Any, tuple[str, ...]]] | None = field(default=None, repr=False)


@frozen
class Enclosure:
    """A sandbox for a program.

    :ivar root: the writable directory, except for its protected parts.
    :ivar confine: builds the sandbox in a thread. It may raise L{InvalidRequest}.
    :ivar seccomp: the kernel's filter program, read from C{filter_descriptor}.
    :ivar entry: the command put before a program that must reach the daemon at C{api_port}, or empty if it shares the
        daemon's network.
    :ivar listen: listens with a factory for connections to that port. Returns the socket for L{MEETING}, and a
        function that stops listening.
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
"""Returns the sandbox for a working directory, with or without network and a writable repository. It may raise
L{InvalidRequest}."""
