"""Ports that stay free until a test listens on them, though other tests run beside it."""

from __future__ import annotations

import socket
from functools import cache
from itertools import count
from pathlib import Path
from random import Random

LOOPBACK = "127.0.0.1"
_RANGE = Path("/proc/sys/net/ipv4/ip_local_port_range")
_FIRST, _EPHEMERAL = 20_000, 32_768
_TRIES = 1_000
_reserved: list[socket.socket] = []
_numbers = count()


@cache
def free_port(_which: str = "") -> int:
    """Return a port that is free, the same at each call of this process with the same name.

    It is below those that the system gives to connections and to whoever listens on port 0, and no other process that
    asks here gets it while this one lives.
    """
    lowest = int(_RANGE.read_text(encoding="ascii").split()[0]) if _RANGE.exists() else _EPHEMERAL
    for port in Random().sample(range(_FIRST, max(lowest, _FIRST + _TRIES)), _TRIES):
        if _reserve(port):
            return port
    raise AssertionError("no port is free")


def another_port() -> int:
    """Return a free port that no other call returns."""
    return free_port(f"another-{next(_numbers)}")


def _reserve(port: int) -> bool:
    """Whether a port is free and no other process has reserved it: a name of Linux's abstract sockets is the mark."""
    mark = socket.socket(socket.AF_UNIX)
    try:
        mark.bind(f"\0aileron-test-port-{port}")
        with socket.create_server((LOOPBACK, port)):
            pass
    except OSError:
        mark.close()
        return False
    _reserved.append(mark)
    return True
