"""Finds the process at the other end of a loopback connection, as far as Linux shows it to its own user."""

from __future__ import annotations

import os
import socket
import struct
import sys
from collections.abc import Callable, Iterator
from itertools import chain, islice
from typing import TypeAlias

from attrs import frozen
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import IAddress, ITransport

from aileron.model.sessions import Process

IPAddress: TypeAlias = IPv4Address | IPv6Address

_NETLINK_SOCK_DIAG = 4
_SOCK_DIAG_BY_FAMILY = 20
_NLM_F_REQUEST = 1
_ALL_STATES = 0xFFFFFFFF
_NO_COOKIE = struct.pack("=II", 0xFFFFFFFF, 0xFFFFFFFF)
_NO_INTERFACE = struct.pack("=I", 0)
_HEADER = struct.Struct("=IHHII")  # nlmsghdr: length, type, flags, sequence, pid
_FAMILY = struct.Struct("=BBBBI")  # inet_diag_req_v2: family, protocol, extensions, padding, states
_UID_AND_INODE = struct.Struct("=II")
_UID_OFFSET = _HEADER.size + 64  # inet_diag_msg.idiag_uid


def peer_uid_lookup() -> Callable[[ITransport], int | None] | None:
    """Return a function that finds the uid at a transport's other end, or None if this system has no such query."""
    return peer_uid if sys.platform == "linux" else None


@frozen
class Socket:
    """One end of a connection as the kernel lists it."""

    uid: int
    inode: int


def peer_uid(transport: ITransport) -> int | None:
    """Return the uid that owns the socket at the other end, or None if it is not TCP, not local or already closed."""
    found = socket_of(transport.getPeer(), transport.getHost())
    return None if found is None else found.uid


def socket_of(peer: object, own: object) -> Socket | None:
    """Return the socket at the end C{peer} of the connection to C{own}, or None if it is not found."""
    if sys.platform != "linux":
        return None
    if not isinstance(peer, (IPv4Address, IPv6Address)) or not isinstance(own, (IPv4Address, IPv6Address)):
        return None
    return _ask(peer, own)


def _ask(peer: IPAddress, own: IPAddress) -> Socket | None:
    """Query the kernel by netlink for the socket at the end C{peer} of the connection to C{own}.

    Return None if the query fails, the kernel does not know the connection, or no process has the socket open.
    """
    try:
        with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as netlink:
            netlink.settimeout(1)
            netlink.send(_question(peer, own))
            reply = netlink.recv(4096)
        _, kind, _, _, _ = _HEADER.unpack_from(reply)
    except (OSError, struct.error):
        return None
    if kind != _SOCK_DIAG_BY_FAMILY or len(reply) < _UID_OFFSET + _UID_AND_INODE.size:
        return None
    uid, inode = _UID_AND_INODE.unpack_from(reply, _UID_OFFSET)
    # A socket closed by its process has no inode, and the kernel reports uid 0.
    return Socket(int(uid), int(inode)) if inode else None


def _question(peer: IPAddress, own: IPAddress) -> bytes:
    family = socket.AF_INET6 if isinstance(peer, IPv6Address) else socket.AF_INET
    ports = struct.pack("!HH", peer.port, own.port)
    addresses = b"".join(socket.inet_pton(family, end.host).ljust(16, b"\0") for end in (peer, own))
    question = _FAMILY.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES)
    question += ports + addresses + _NO_INTERFACE + _NO_COOKIE
    return _HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 0, 0) + question


MOST_DESCRIPTORS = 20_000
"""The most descriptors inspected for one lookup, which takes about 40 ms. The newest processes are inspected first."""

_PROC = "/proc"

Lookup = Callable[[IAddress, IAddress], Process | None]
"""A function from the far and the near end of a connection to the process at the far end, or None if unknown."""


def process_behind(peer: IAddress, own: IAddress, proc: str = _PROC, most: int = MOST_DESCRIPTORS) -> Process | None:
    """Return the process at the other end of a connection, or None if it cannot be determined.

    :param proc: the path of the proc file system.
    :param most: the most descriptors to inspect.
    """
    found = socket_of(peer, own)
    return None if found is None else _holder(f"socket:[{found.inode}]", proc, most)


def _holder(link: str, proc: str, most: int) -> Process | None:
    """Return this user's newest process that has C{link} open, or None if it is not found in C{most} descriptors.

    :param link: the target of a descriptor, such as C{socket:[4711]}.
    """
    descriptors = chain.from_iterable(_descriptors(proc, pid) for pid in _processes(proc))
    for pid, path in islice(descriptors, most):
        if _target(path) == link:
            return Process(pid, _target(f"{proc}/{pid}/exe"), _target(f"{proc}/{pid}/cwd"))
    return None


def _processes(proc: str) -> Iterator[int]:
    return iter(sorted((int(name) for name in _names(proc) if name.isdigit()), reverse=True))


def _descriptors(proc: str, pid: int) -> Iterator[tuple[int, str]]:
    """Yield C{pid} and a descriptor's path, for each descriptor of the process.

    If the process belongs to another user, is hidden or has ended, yield nothing.
    """
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
