"""A script that makes the network of a sandbox, listens there on the port of HTTPS, and then becomes bubblewrap.

It is called as C{_network.py DESCRIPTOR PROGRAM [ARGUMENTS…]}. No program in a sandbox may listen on a port
below 1024. So the network is made here, in a user namespace in which this process may do so for a moment, and
bubblewrap makes the sandbox within. The listening socket gets the number C{DESCRIPTOR}. If anything fails, nothing is
started.
"""

from __future__ import annotations

import ctypes
import fcntl
import os
import socket
import struct
import sys
from pathlib import Path

HTTPS_PORT = 443
_NEW_USER, _NEW_NETWORK = 0x10000000, 0x40000000  # linux/sched.h
_SET_FLAGS, _UP = 0x8914, 0x1  # linux/sockios.h, linux/if.h
_INTERFACE = struct.Struct("16sH14x")
_BACKLOG = 128


def enter_network(descriptor: int, command: list[str]) -> None:
    """Make a network without any connection, listen on its port of HTTPS, and replace this process by C{command}.

    :raises OSError: if the system does not allow it.
    """
    user, group = os.getuid(), os.getgid()
    if ctypes.CDLL(None, use_errno=True).unshare(_NEW_USER | _NEW_NETWORK) != 0:
        raise OSError(ctypes.get_errno(), "no namespace can be made")
    own = Path("/proc/self")
    (own / "setgroups").write_text("deny", encoding="ascii")
    (own / "uid_map").write_text(f"{user} {user} 1", encoding="ascii")
    (own / "gid_map").write_text(f"{group} {group} 1", encoding="ascii")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, _SET_FLAGS, _INTERFACE.pack(b"lo", _UP))
    number = socket.create_server(("127.0.0.1", HTTPS_PORT), backlog=_BACKLOG).detach()
    if number != descriptor:
        os.dup2(number, descriptor)
        os.close(number)
    os.set_inheritable(descriptor, True)
    os.execv(command[0], command)  # noqa: S606  # it becomes bubblewrap


if __name__ == "__main__":
    try:
        enter_network(int(sys.argv[1]), sys.argv[2:])
    except OSError as error:
        sys.exit(f"aileron: {error.strerror}")
