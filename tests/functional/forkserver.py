"""Daemons and commands that begin with their modules loaded: forks of a process that has imported them.

Imports are four fifths of the processor time of a daemon's start. From its first line on a forked one is the same
program with the same arguments, environment, descriptors and directory, and leads a session of its own. Tests of the
start itself, of the memory or of what other processes see (``cmdline``, ``environ``) want one that was executed.

``python -I forkserver.py DESCRIPTOR`` serves orders from a socket; a fork of it serves those for commands.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

_MOST_BYTES, _MOST_DESCRIPTORS = 1 << 20, 8
_SAFE = 100
"""Descriptors from here on are nobody's."""
_PRELOADED = (
    "aileron.cli._entry",
    "aileron.daemon",
    "aileron.gateway",
    "aileron.launch",
    "aileron.store",
    "aileron.web",
    "sqlite3",
    "twisted.web.client",
    "twisted.web.server",
)


class ForkServer:
    """Starts daemons for this process, and ends with it."""

    _shared: ClassVar[dict[str, "ForkServer"]] = {}

    def __init__(self) -> None:
        theirs, self._orders = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            arguments = (sys.executable, "-I", str(Path(__file__).resolve()), str(theirs.fileno()))
            self._process = subprocess.Popen(arguments, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL)
        atexit.register(self._orders.close)

    @classmethod
    def lend(cls, manner: str) -> "ForkServer":
        """The one of this process for what a thread of that manner starts; it was started in such a thread."""
        if manner not in cls._shared:
            cls._shared[manner] = cls()
        return cls._shared[manner]

    def limit(self, descriptors: int) -> None:
        """From now on a daemon has so many at most."""
        resource.prlimit(self._process.pid, resource.RLIMIT_NOFILE, (descriptors, descriptors))

    @cached_property
    def command(self) -> tuple[str, ...]:
        """A program with which ``aileron`` begins with its modules loaded; its arguments follow.

        It is another process that is forked, in a session of its own, which is killed if this program is; it hears no
        other signal.
        """
        directory = tempfile.mkdtemp(prefix="aileron-fork-")
        atexit.register(shutil.rmtree, directory)
        path, (theirs, ours) = f"{directory}/socket", os.pipe()
        atexit.register(os.close, ours)
        with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as listening:
            listening.bind(path)
            listening.listen()
            socket.send_fds(self._orders, [b"null"], [listening.fileno(), theirs])
        self._orders.recv(_MOST_BYTES)
        os.close(theirs)
        return (sys.executable, "-I", "-S", "-c", _CLIENT, path)

    def start(
        self,
        arguments: Sequence[str],
        *,
        cwd: os.PathLike[str],
        env: Mapping[str, str],
        output: int,
        pass_fds: Sequence[int] = (),
    ) -> "Forked":
        """Start a daemon.

        :param arguments: of ``aileron``.
        :param pass_fds: descriptors that it has under the same numbers.
        """
        order = {"arguments": arguments, "cwd": os.fspath(cwd), "env": dict(env), "numbers": [1, 2, *pass_fds]}
        socket.send_fds(self._orders, [json.dumps(order).encode()], [output, output, *pass_fds])
        return Forked(int(self._orders.recv(_MOST_BYTES)))


class Forked:
    """A started daemon, as far as `subprocess.Popen` is asked about it."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        try:
            self._ended: int | None = os.pidfd_open(pid)
        except ProcessLookupError:
            self._ended = None

    def poll(self) -> str | None:
        """None while it runs; its status is its parent's to know."""
        if self._ended is not None and select.select([self._ended], [], [], 0)[0]:
            os.close(self._ended)
            self._ended = None
        return "unknown" if self._ended is None else None


# In the place of a command that is forked elsewhere: hands over its descriptors, and ends as the command does.
_CLIENT = """
import json, os, socket, sys
order = {"arguments": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ), "numbers": [0, 1, 2]}
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [json.dumps(order).encode()], [0, 1, 2])
    status = int(server.recv(100))
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def serve_commands(listening: int, ended: int) -> None:
    """Fork at each connection, until the end of a pipe; return in the child, which is the command."""
    server = socket.socket(fileno=listening)
    while ended not in select.select([ended, listening], [], [])[0]:
        connection = server.accept()[0]
        if not os.fork():
            server.close()
            os.close(ended)
            return _supervise(connection)
        connection.close()
    sys.exit()


def _supervise(connection: socket.socket) -> None:
    """Fork once more, and tell how the child ended; return in the child."""
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    data, descriptors, _, _ = socket.recv_fds(connection, _MOST_BYTES, _MOST_DESCRIPTORS)
    pid = os.fork()
    if not pid:
        connection.close()
        return _become(json.loads(data), descriptors)
    for each in descriptors:
        os.close(each)
    if connection.fileno() in select.select([connection.fileno(), os.pidfd_open(pid)], [], [])[0]:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with contextlib.suppress(OSError):
        connection.send(str(status).encode())
    os._exit(0)


def serve(orders: socket.socket) -> None:
    """Fork at each order; return in the child, which is what was ordered."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        data, descriptors, _, _ = socket.recv_fds(orders, _MOST_BYTES, _MOST_DESCRIPTORS)
        if not data:
            sys.exit()
        pid = os.fork()
        if not pid:
            orders.close()
            order = json.loads(data)
            return serve_commands(*descriptors) if order is None else _become(order, descriptors)
        for each in descriptors:
            os.close(each)
        orders.send(str(pid).encode())


def _become(order: Mapping[str, Any], descriptors: Sequence[int]) -> None:
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    os.setsid()
    os.chdir(order["cwd"])
    # First out of each other's way.
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD, _SAFE) for each in descriptors]
    for each in descriptors:
        os.close(each)
    for each, number in zip(moved, order["numbers"], strict=True):
        os.dup2(each, number)
        os.close(each)
    os.environ.clear()
    os.environ.update(order["env"])
    sys.argv[1:] = order["arguments"]


def main() -> None:
    """Import what daemons and commands need, and be one at each order."""
    orders = socket.socket(fileno=int(sys.argv[1]))
    orders.set_inheritable(False)
    for module in _PRELOADED:
        importlib.import_module(module)
    # Something asks for a reactor, for uses that a daemon has not; each daemon has one of its own.
    sys.modules.pop("twisted.internet.reactor", None)
    gc.collect()
    gc.freeze()
    serve(orders)
    from aileron._start import command_line

    command_line()


if __name__ == "__main__":
    main()
