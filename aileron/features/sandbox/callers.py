"""Finds the process in a sandbox that opened a connection. The launcher looks from outside, in C{/proc}.

The sandbox has no part in this, but its programs choose their names and command lines.
"""

from __future__ import annotations

import os
import shlex
import socket
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from aileron.base.text import visible
from aileron.model.tool_claims import MOST_COMMAND, NO_CALLER, ToolCaller

Address = tuple[str, int]
"""An IPv4 address and a port."""

_PROC = Path("/proc")
_MOST_TABLE_BYTES = 1 << 20
_MOST_PROCESSES = 8192
_MOST_DESCRIPTORS = 4096
_MOST_COMMAND_BYTES = 4096
_INODE = 9
_MAPPED = b"\0\0\xff\xff"
"""The third quarter of an IPv6 address that stands for an IPv4 address."""


def find_caller(first: int, client: Address, server: Address, proc: Path = _PROC) -> ToolCaller:
    """Return the process that opened a TCP connection in a sandbox, or an unknown one if it is not found.

    If several processes have the connection, it is the one that started first.

    :param first: the number of the sandbox's first process.
    :param client: the address from which the connection was opened.
    :param server: the address to which it was opened.
    """
    try:
        network = _read_network(proc / str(first))
        inode = _find_inode(proc / str(first) / "net", client, server)
    except OSError:
        return NO_CALLER
    holders = () if inode is None else _find_holders(proc, network, f"socket:[{inode}]")
    started = ((read_start_time(number, proc), number) for number in holders)
    found = min(((int(ticks), number) for ticks, number in started if ticks.isdecimal()), default=None)
    return NO_CALLER if found is None else ToolCaller(found[1], found[0], _read_command(proc, found[1]))


def read_start_time(number: int, proc: Path = _PROC) -> str:
    """Return the start time of a process in the kernel's ticks, or an empty text if it does not exist."""
    try:
        stat = (proc / str(number) / "stat").read_text(encoding="utf-8", errors="replace")
        # guard of own tools: the name of a process cannot pass for its start time
        #    -> features.sandbox.test_callers.StartTests.test_hostile, instead return stat.split()[21]
        return stat.rpartition(")")[2].split()[19]
    except (OSError, IndexError):
        return ""


def _read_network(folder: Path) -> str:
    return os.readlink(folder / "ns" / "net")


def _find_inode(folder: Path, client: Address, server: Address) -> str | None:
    """Return the number of the client's socket of a connection, or None if there is none.

    :raises OSError: if the tables of connections cannot be read.
    """
    for name, prefix in (("tcp", ""), ("tcp6", f"{'0' * 16}{_write_word(_MAPPED)}")):
        ends = [f"{prefix}{_write_address(each)}" for each in (client, server)]
        for line in _read_table(folder / name):
            fields = line.split()
            # guard of own tools: the other end of the connection is the launcher's own
            #    -> features.sandbox.test_callers.CallerTests.test_found, instead if fields[2:0:-1] == ends
            if fields[1:3] == ends:
                return fields[_INODE]
    return None


def _read_table(path: Path) -> list[str]:
    """Return the whole lines of a table of connections, or none if the system has no such table."""
    try:
        with path.open(encoding="ascii") as file:
            return file.read(_MOST_TABLE_BYTES).split("\n")[:-1]
    except FileNotFoundError:
        return []


def _find_holders(proc: Path, network: str, socket_name: str) -> Iterator[int]:
    """Yield the processes in a network that have a socket open."""
    numbers = (each for each in os.listdir(proc) if each.isdecimal())
    for number in islice(numbers, _MOST_PROCESSES):
        try:
            # guard of own tools: the files of programs outside the sandbox are not looked at
            #    -> features.sandbox.test_callers.CallerTests.test_outside
            if _read_network(proc / number) != network:
                continue
            if _has_open(proc / number / "fd", socket_name):
                yield int(number)
        except OSError:
            continue  # it has ended, or it cannot be looked at


def _has_open(folder: Path, socket_name: str) -> bool:
    for name in islice(os.listdir(folder), _MOST_DESCRIPTORS):
        try:
            if os.readlink(folder / name) == socket_name:
                return True
        except OSError:
            continue  # it was closed meanwhile
    return False


def _read_command(proc: Path, number: int) -> str:
    """Return the command line of a process as it would be written in a shell, shortened, or an empty text."""
    try:
        with (proc / str(number) / "cmdline").open("rb") as file:
            found = file.read(_MOST_COMMAND_BYTES)
    except OSError:
        return ""
    words = found.rstrip(b"\0").decode("utf-8", errors="replace").split("\0")
    # guard of own tools: a command line has no invisible characters
    #    -> features.sandbox.test_callers.CallerTests.test_invisible, instead text = shlex.join(words)
    text = visible(shlex.join(words)) if found else ""
    return text if len(text) <= MOST_COMMAND else f"{text[: MOST_COMMAND - 1]}…"


def _write_address(address: Address) -> str:
    """Return an address as the kernel writes it in its tables."""
    return f"{_write_word(socket.inet_aton(address[0]))}:{address[1]:04X}"


def _write_word(word: bytes) -> str:
    return f"{int.from_bytes(word, sys.byteorder):08X}"
