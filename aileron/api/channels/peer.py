"""Whose process is at the other end of a loopback connection: one question to Linux's C{sock_diag}.

7 microseconds, where reading C{/proc/net/tcp} takes milliseconds.
"""

from __future__ import annotations

import socket
import struct
import sys
from collections.abc import Callable

from attrs import frozen
from twisted.internet.address import IPv4Address, IPv6Address
from twisted.internet.interfaces import ITransport

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
    """What tells the uid of a transport's other end, or L{None} on a system where this cannot be asked."""
    return peer_uid if sys.platform == "linux" else None


@frozen
class Socket:
    """One end of a connection, as the kernel knows it."""

    uid: int
    inode: int


def peer_uid(transport: ITransport) -> int | None:
    """The uid that owns the socket at the other end, or L{None}: no TCP, not local, already closed."""
    found = socket_of(transport.getPeer(), transport.getHost())
    return None if found is None else found.uid


def socket_of(peer: object, own: object) -> Socket | None:
    """The socket at the end C{peer} of the connection to C{own}, or L{None}: no TCP, not local, closed, not Linux."""
    if sys.platform != "linux":
        return None
    if not isinstance(peer, (IPv4Address, IPv6Address)) or not isinstance(own, (IPv4Address, IPv6Address)):
        return None
    try:
        return _ask(_question(peer, own))
    except OSError:
        return None


def _question(peer: IPv4Address | IPv6Address, own: IPv4Address | IPv6Address) -> bytes:
    family = socket.AF_INET6 if isinstance(peer, IPv6Address) else socket.AF_INET
    ports = struct.pack("!HH", peer.port, own.port)
    addresses = b"".join(socket.inet_pton(family, end.host).ljust(16, b"\0") for end in (peer, own))
    question = _FAMILY.pack(family, socket.IPPROTO_TCP, 0, 0, _ALL_STATES)
    question += ports + addresses + _NO_INTERFACE + _NO_COOKIE
    return _HEADER.pack(_HEADER.size + len(question), _SOCK_DIAG_BY_FAMILY, _NLM_F_REQUEST, 1, 0) + question


def _ask(question: bytes) -> Socket | None:
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, _NETLINK_SOCK_DIAG) as netlink:
        netlink.settimeout(1)
        netlink.send(question)
        return _read(netlink.recv(4096))


def _read(reply: bytes) -> Socket | None:
    if len(reply) < _UID_OFFSET + _UID_AND_INODE.size or _HEADER.unpack_from(reply)[1] != _SOCK_DIAG_BY_FAMILY:
        return None
    uid, inode = _UID_AND_INODE.unpack_from(reply, _UID_OFFSET)
    # A socket that its process has closed has no inode, and the kernel then says uid 0.
    return Socket(int(uid), int(inode)) if inode else None
