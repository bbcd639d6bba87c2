"""Which process is at the other end of a loopback connection, as far as Linux lets its own user see."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from itertools import chain, islice

from twisted.internet.interfaces import IAddress

from aileron.values import Process

from .peer import socket_of

MOST_DESCRIPTORS = 20_000
"""Looked at for one answer, some 40 ms; newer processes first, since whoever asks has mostly just begun."""

_PROC = "/proc"

Lookup = Callable[[IAddress, IAddress], Process | None]
"""From the far and the near end of a connection to the process at the far end, or L{None}: it cannot be told."""


def process_behind(peer: IAddress, own: IAddress, proc: str = _PROC, most: int = MOST_DESCRIPTORS) -> Process | None:
    """See L{Lookup}.

    :param proc: where the kernel shows its processes.
    :param most: how many descriptors are looked at.
    """
    found = socket_of(peer, own)
    return None if found is None else _holder(f"socket:[{found.inode}]", proc, most)


def _holder(link: str, proc: str, most: int) -> Process | None:
    """The newest process of ours that has C{link} open."""
    descriptors = chain.from_iterable(_descriptors(proc, pid) for pid in _processes(proc))
    for pid, path in islice(descriptors, most):
        if _target(path) == link:
            return Process(pid, _target(f"{proc}/{pid}/exe"), _target(f"{proc}/{pid}/cwd"))
    return None


def _processes(proc: str) -> Iterator[int]:
    return iter(sorted((int(name) for name in _names(proc) if name.isdigit()), reverse=True))


def _descriptors(proc: str, pid: int) -> Iterator[tuple[int, str]]:
    """Those of one process; none where it is another user's, or hidden, or gone."""
    for name in _names(f"{proc}/{pid}/fd"):
        yield pid, f"{proc}/{pid}/fd/{name}"


def _names(directory: str) -> list[str]:
    try:
        return os.listdir(directory)
    except OSError:
        return []


def _target(path: str) -> str | None:
    try:
        return os.fsencode(os.readlink(path)).decode("utf-8", "replace")
    except OSError:
        return None
