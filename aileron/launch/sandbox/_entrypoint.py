"""A script that runs in the sandbox before the agent: listens as the daemon would, and hands that to the launcher.

C{_entrypoint.py PORT DESCRIPTOR PROGRAM [ARGUMENTS…]}.  The sandbox has a network of its own with nothing in it.  What
connects to that port there is taken by the launcher, which is outside and hands it on to the daemon.
"""

from __future__ import annotations

import os
import socket
import sys

_BACKLOG = 128


def enter(port: int, descriptor: int, command: list[str]) -> None:
    """Hand the listening socket over and become C{command}.

    :param descriptor: of a socket whose other end the launcher has; closed for the command.
    """
    with (
        socket.socket(fileno=descriptor) as launcher,
        socket.create_server(("127.0.0.1", port), backlog=_BACKLOG) as listening,
    ):
        socket.send_fds(launcher, [b"\0"], [listening.fileno()])
        if not launcher.recv(1):
            sys.exit("aileron: the launcher has exited")
    os.execv(command[0], command)  # noqa: S606  # it becomes the agent


if __name__ == "__main__":
    enter(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
