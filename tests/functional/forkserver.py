"""Daemons and commands that begin with their modules loaded: forks of a process that has imported them.

Imports are four fifths of the processor time of a daemon's start, and half of the rest is to parse the connector files
that ship with Aileron, which L{aileron.connectors} caches by their bytes. From its first line on a forked daemon is the
same program with the same arguments, environment, descriptors and directory, and leads a session of its own. Tests of
the start itself, of the memory or of what other processes see (``cmdline``, ``environ``) want one that was executed.

``python -I forkserver.py LISTENING ENDED`` is forked at each connection, for each process of the tests; those forks
serve orders, some of them from commands, or after they have given up rights.
"""

import atexit
import contextlib
import fcntl
import gc
import importlib
import json
import os
import select
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import termios
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

_MOST_BYTES, _MOST_DESCRIPTORS = 1 << 20, 8
_VARIABLE = "AILERON_TEST_FORKS"
_COMMAND = "aileron"
_SAFE = 100
"""Descriptors from here on are nobody's, but for those that an order names: a process of many tests has more open."""
_PRELOADED = (
    "aileron.cli._entry",
    "aileron.cli._main",
    "aileron.cli.approvals.approval",
    "aileron.cli.vault.open",
    "aileron.features.launch.commands",
    "aileron.connectors.kinds.mcp._client",
    "aileron.daemon",
    "aileron.features.gateway",
    "aileron.features.inband._handler",
    "aileron.features.launch",
    "aileron.features.mcp_http._http_endpoint",
    "aileron.features.sandbox.enclosing",
    "aileron.features.sandbox.program",
    "aileron.features.setup.connect",
    "aileron.mcp.plain",
    "aileron.mcp._stdio",
    "aileron.store",
    "aileron.web",
    "cattrs",
    "encodings.idna",
    "re2",
    "sqlite3",
    "twisted.web.client",
    "twisted.web.server",
    "yaml",
)


class ForkServer:
    """Starts daemons for this process, and ends with it."""

    _shared: ClassVar[dict[str, "ForkServer"]] = {}

    def __init__(self, orders: socket.socket) -> None:
        self._orders = orders
        atexit.register(orders.close)

    @staticmethod
    def share() -> None:
        """Load the modules in a process of which all are forks that this process lends, and those that it starts.

        It has the rights of this thread, and ends with this process.
        """
        path, listening, theirs = _listen()
        with listening:
            given = listening.fileno(), theirs
            arguments = (sys.executable, "-I", str(Path(__file__).resolve()), *map(str, given))
            subprocess.Popen(arguments, pass_fds=given, stdin=subprocess.DEVNULL)
        os.close(theirs)
        os.environ[_VARIABLE] = path

    @classmethod
    def lend(cls, first: str = "") -> "ForkServer":
        """The one of this process whose daemons have had this program run, which may give up rights."""
        if "" not in cls._shared:
            if _VARIABLE not in os.environ:
                cls.share()
            orders = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
            orders.connect(os.environ[_VARIABLE])
            cls._shared[""] = cls(orders)
        if first not in cls._shared:
            cls._shared[first] = cls._shared[""]._fork(first)
        return cls._shared[first]

    def _fork(self, first: str) -> "ForkServer":
        theirs, ours = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            self._order({"first": first}, [theirs.fileno()])
        return type(self)(ours)

    def command(self, program: str) -> tuple[str, ...]:
        """A program with which ``aileron`` or ``aileron-mcp`` begins with its modules loaded; its arguments follow.

        It is another process that is forked, in a session of its own, which is killed if this program is; it hears no
        other signal. A terminal is its own then, and Ctrl-C there reaches it.
        """
        return (sys.executable, "-I", "-S", "-c", _CLIENT, self._path, program)

    @cached_property
    def _path(self) -> str:
        path, listening, theirs = _listen()
        with listening:
            self._order({}, [listening.fileno(), theirs])
        os.close(theirs)
        return path

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
        order = {"arguments": [_COMMAND, *arguments], "cwd": os.fspath(cwd), "env": dict(env)}
        numbers = [1, 2, *pass_fds]
        return Forked(self._order({**order, "numbers": numbers}, [output, output, *pass_fds]))

    def _order(self, order: Mapping[str, Any], descriptors: Sequence[int]) -> int:
        socket.send_fds(self._orders, [json.dumps(order).encode()], descriptors)
        return int(self._orders.recv(_MOST_BYTES))


def _listen() -> tuple[str, socket.socket, int]:
    """A socket that listens at a path, and the end of a pipe whose other end is closed with this process."""
    directory = tempfile.mkdtemp(prefix="aileron-fork-")
    atexit.register(shutil.rmtree, directory)
    path, (theirs, ours) = f"{directory}/socket", os.pipe()
    atexit.register(os.close, ours)
    listening = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    listening.bind(path)
    listening.listen()
    return path, listening, theirs


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
import fcntl, json, os, signal, socket, sys, termios
order = {"arguments": sys.argv[2:], "cwd": os.getcwd(), "env": dict(os.environ), "numbers": [0, 1, 2]}
if os.isatty(0):
    signal.signal(signal.SIGHUP, signal.SIG_IGN)  # which says that the terminal is let go of
    fcntl.ioctl(0, termios.TIOCNOTTY)
    order["terminal"] = 0
with socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET) as server:
    server.connect(sys.argv[1])
    socket.send_fds(server, [json.dumps(order).encode()], [0, 1, 2])
    status = int(server.recv(100))
if status < 0:
    os.kill(os.getpid(), -status)
sys.exit(status)
"""


def fork_each(listening: int, ended: int) -> socket.socket:
    """Fork at each connection, until the end of a pipe; return the connection in the child."""
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    server = socket.socket(fileno=listening)
    while ended not in select.select([ended, listening], [], [])[0]:
        connection = server.accept()[0]
        if not os.fork():
            server.close()
            os.close(ended)
            return connection
        connection.close()
    sys.exit()


def _supervise(connection: socket.socket) -> str:
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


def serve(orders: socket.socket) -> str:
    """Fork at each order; return in the child, which is what was ordered, unless that is to serve others."""
    while True:
        data, descriptors, _, _ = socket.recv_fds(orders, _MOST_BYTES, _MOST_DESCRIPTORS)
        if not data:
            sys.exit()
        pid = os.fork()
        if pid:
            for each in descriptors:
                os.close(each)
            orders.send(str(pid).encode())
            continue
        orders.close()
        order = json.loads(data)
        if "first" in order:
            orders = socket.socket(fileno=descriptors[0])
            exec(order["first"], {})
        else:
            return _become(order, descriptors) if order else _supervise(fork_each(*descriptors))


def _become(order: Mapping[str, Any], descriptors: Sequence[int]) -> str:
    """Be the process that is ordered; return which program it is to run."""
    for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGQUIT):
        signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # which is ignored where the tests run in the background
    os.setsid()
    os.chdir(order["cwd"])
    # First out of each other's way.
    safe = max(_SAFE, *(number + 1 for number in order["numbers"]))
    moved = [fcntl.fcntl(each, fcntl.F_DUPFD, safe) for each in descriptors]
    for each in descriptors:
        os.close(each)
    for each, number in zip(moved, order["numbers"], strict=True):
        os.dup2(each, number)
        os.close(each)
    if "terminal" in order:
        fcntl.ioctl(order["terminal"], termios.TIOCSCTTY, 0)
    os.environ.clear()
    os.environ.update(order["env"])
    program, *sys.argv[1:] = order["arguments"]
    return str(program)


def _preload() -> None:
    """Import the modules of daemons and commands, also of the features, and parse the shipped connector files."""
    for module in _PRELOADED:
        importlib.import_module(module)
    from aileron import connectors, features

    for name in ("running", "routes"):
        for path in Path(features.__file__).parent.glob(f"*/{name}.py"):
            importlib.import_module(f"{features.__name__}.{path.parent.name}.{name}")
    list(connectors.read_descriptions(Path(__file__).parent))  # a directory without connector files


def main() -> None:
    """Import what daemons and commands need, and be one at each order."""
    given = [int(each) for each in sys.argv[1:]]
    for each in given:
        os.set_inheritable(each, False)
    _preload()
    # Something asks for a reactor, for uses that a daemon has not; each process has one of its own, as two that share
    # what one waits with take each other's events.
    sys.modules.pop("twisted.internet.reactor", None)
    vars(sys.modules["twisted.internet"]).pop("reactor", None)
    gc.collect()
    gc.freeze()
    program = serve(fork_each(*given))
    from aileron import _start

    (_start.command_line if program == _COMMAND else _start.mcp_server)()


if __name__ == "__main__":
    main()
