"""Tests whether this machine can make sandboxes, and starts a process in a sandbox that reaches only Aileron."""

from __future__ import annotations

import fcntl
import os
import platform
import shutil
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, closing, contextmanager, nullcontext
from pathlib import Path
from stat import S_ISBLK, S_ISDIR, S_ISREG, S_ISSOCK
from tempfile import TemporaryFile
from typing import Any

from attrs import evolve, field, frozen
from twisted.internet.interfaces import IProtocolFactory

from aileron.base.addresses import read_origin
from aileron.model.errors import Forbidden, InvalidRequest, NotFound

from ._boundary import BoundaryCheck
from ._filter import filter_for
from ._processes import SandboxProcesses
from ._socket_forwarder import SocketForwarder, forward_to
from .direct import HOSTS_FILE, DirectFactory, DirectHosts, lead_here
from .layout import SandboxLayout
from .project import SandboxProject
from .way_out import PROXY_PORT, WayOut, proxy_variables

_ENTRYPOINT, _NETWORK = (Path(__file__).with_name(name) for name in ("_entrypoint.py", "_network.py"))
_MEETING, _FILTER, _INFO, _LISTENING = 3, 4, 5, 6
"""The descriptors of a child: the socket to the launcher, the C{seccomp} program, bubblewrap's report of its own child,
and a socket that listens on the port of HTTPS, if there is one."""

_OPENED = 10
"""The first descriptor of the paths that are mounted in the project."""

_BY_DESCRIPTOR = ("--bind-fd", "0", "/")
_STANDARD = {0: "input", 1: "output", 2: "error"}
_PIECE_BYTES = 1 << 20
_SECONDS = 20.0
_OWN_NETWORK = "--unshare-net"
_TRIAL = ("--unshare-user", "--unshare-pid", _OWN_NETWORK, "--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc")
_PROVEN = (
    "Sandbox: checked: TCP, UDP, DNS, Unix sockets and inherited descriptors lead nowhere but to Aileron. "
    "Its proxy allows: {words}."
)
_PROXY_ONLY = (
    "Sandbox: this system does not let Aileron serve the port of HTTPS in a sandbox, so tools that ignore HTTPS_PROXY "
    "cannot use services here."
)
_OFF = (
    "bubblewrap cannot create a sandbox here: {said} As root, allow user namespaces "
    "(sysctl kernel.unprivileged_userns_clone=1, or on Ubuntu kernel.apparmor_restrict_unprivileged_userns=0), "
    "or launch without --sandbox."
)


@frozen
class ProcessPlan:
    """The plan of a process.

    :ivar argv: the arguments, which hold no secret.
    :ivar environment: the whole environment.
    :ivar directories: directories that the process reads besides those of the layout.
    :ivar descriptors: further descriptors that the process inherits: the number in the process, and ours.
    :ivar replaced: see L{SandboxLayout}.
    """

    argv: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)
    directories: tuple[str, ...] = ()
    descriptors: Mapping[int, int] = field(factory=dict)
    replaced: Mapping[str, str] = field(factory=dict)


@frozen
class Sandbox:
    """Makes sandboxes with bubblewrap on this machine.

    :ivar reactor: provides TCP, adopts sockets, and reports when they are readable.
    :ivar program: the path of bubblewrap.
    :ivar interpreter: the path of the Python that runs the entrypoint.
    :ivar seccomp: the program by which the kernel filters system calls.
    :ivar by_descriptor: True if bubblewrap can mount an open descriptor (C{--bind-fd}).
    """

    reactor: Any
    program: str
    interpreter: str
    seccomp: bytes = field(repr=False)
    by_descriptor: bool = False

    @contextmanager
    def around(
        self, plan: ProcessPlan, project: SandboxProject, url: str, way_out: WayOut | None = None
    ) -> Iterator[ProcessPlan]:
        """Provide the plan that starts the process in a sandbox. Within the context the process reaches only C{url}.

        :param url: the agent site, at an IPv4 address of this machine.
        :param way_out: the connection to allowed hosts, or None. With it the process starts only after a check that
            nothing else leads out of the sandbox.
        :raises InvalidRequest: if a program that runs outside could not be protected from the process, or a standard
            descriptor leads out of the sandbox.
        """
        site = read_origin(url)
        layout, direct = project.layout, None if way_out is None else self._find_direct(way_out, project.say)
        _make_own_files(layout)
        ours, theirs = socket.socketpair()
        led: AbstractContextManager[Mapping[str, str]] = nullcontext({}) if direct is None else lead_here(direct.names)
        with (
            ours,
            theirs,
            _readable() as copies,
            _pipe() as (told, telling),
            _pipe(self.seccomp) as (filtered, _),
            led as hosts,
        ):
            programs = (*layout.programs, *plan.directories)
            opened = evolve(project, layout=evolve(layout, programs=programs, replaced={**plan.replaced, **hosts}))
            processes = SandboxProcesses(told)
            factories: list[Any] = [forward_to(self.reactor, site.host, site.port)]
            check = None
            if way_out is not None:
                factories.extend(self._make_factories(way_out, direct, processes))
                check = BoundaryCheck(PROXY_PORT + (site.port == PROXY_PORT), None if direct is None else _LISTENING)
            proven = "" if way_out is None else _PROVEN.format(words=", ".join(way_out.words))
            forwarder = SocketForwarder(
                self.reactor, factories, ours, processes.find_first, project.say, check=check, proven=proven
            )
            # guard against attack: what is mounted in the project is opened before
            #    -> test_sandbox_links.LinkTests.test_at_the_last_moment, instead first = None
            first = _OPENED if self.by_descriptor else None
            with closing(forwarder), opened.prepared(processes, first_descriptor=first) as (prefix, held):
                options = (*prefix, "--seccomp", str(_FILTER), "--info-fd", str(_INFO))
                question = "-" if check is None else check.question()
                entry = self.entry(site.port, _MEETING, question)
                argv = (*self._begin(options, listens=direct is not None), "--", *entry, *plan.argv)
                forwarder.open()
                ends = {_MEETING: theirs.fileno(), _FILTER: filtered, _INFO: telling}
                variables = {} if check is None else proxy_variables(check.proxy_port)
                environment = {**plan.environment, **variables}
                yield evolve(plan, argv=argv, environment=environment, descriptors={**copies, **ends, **held})

    def can_listen(self) -> bool:
        """Return whether programs in a sandbox can be served on the port of HTTPS, by starting a sandbox once."""
        if not os.path.isfile(HOSTS_FILE):
            return False
        try:
            _try_out((*self._begin(_TRIAL, listens=True), "--", self.program, "--version"))
        except Forbidden:
            return False
        return True

    def _find_direct(self, way_out: WayOut, say: Callable[[str], object]) -> DirectHosts | None:
        """Return the hosts that are served on the port of HTTPS. If this system does not allow it, tell the user."""
        if way_out.direct is not None and not self.can_listen():
            say(_PROXY_ONLY)
            return None
        return way_out.direct

    def _make_factories(
        self, way_out: WayOut, direct: DirectHosts | None, processes: SandboxProcesses
    ) -> Iterator[IProtocolFactory]:
        """Yield the factories for connections to the proxy, and to the port of HTTPS if there are hosts for it."""
        proxied = way_out.factory(self.reactor, processes.find_caller)
        yield proxied
        if direct is not None:
            yield DirectFactory(proxied, direct, self.reactor)

    def _begin(self, options: Sequence[str], *, listens: bool) -> tuple[str, ...]:
        """Return the beginning of the command that starts a sandbox.

        :param listens: whether something listens on the port of HTTPS in the sandbox, for which its network is made
            before bubblewrap starts.
        """
        if not listens:
            return (self.program, *options)
        kept = (each for each in options if each != _OWN_NETWORK)
        return (self.interpreter, "-I", str(_NETWORK), str(_LISTENING), self.program, *kept)

    def entry(self, port: int, meeting: int, question: str = "-") -> tuple[str, ...]:
        """Return the arguments to put before a program's own, so that the entrypoint runs first and then the program.

        The entrypoint listens on C{port} inside, and sends the listening socket to the descriptor C{meeting}.
        """
        return (self.interpreter, "-I", str(_ENTRYPOINT), str(port), str(meeting), question)

    def listen(self, factory: IProtocolFactory) -> tuple[socket.socket, Callable[[], object]]:
        """Serve connections from inside the sandbox.

        :return: the socket for L{entry}, and the function that stops serving.
        """
        ours, theirs = socket.socketpair()
        forwarder = SocketForwarder(self.reactor, [factory], ours, lambda: None, lambda _: None)
        forwarder.open()
        return theirs, forwarder.close


def _make_own_files(layout: SandboxLayout) -> None:
    """Make the agent's own directories and files, unless they exist."""
    for directory in (*layout.own, *layout.settings):
        Path(directory).mkdir(mode=0o700, parents=True, exist_ok=True)
    for path in layout.own_files:
        Path(path).touch(mode=0o600)


def find_sandbox(reactor: Any, environment: Mapping[str, str], *needed: str) -> Sandbox:
    """Start one sandbox as a test, and return the sandboxes of this machine.

    :param needed: options of bubblewrap that must work. They may use descriptor 0, which is the directory C{/}.
    :raises NotFound: if the system is not Linux, bubblewrap is not installed, or there is no filter for this processor.
    :raises Forbidden: if the system does not allow sandboxes.
    """
    program = shutil.which("bwrap", path=environment.get("PATH")) if sys.platform == "linux" else None
    if program is None:
        raise NotFound("The sandbox needs Linux and bubblewrap: install the package bubblewrap (its program is bwrap).")
    seccomp = filter_for(platform.machine())
    if seccomp is None:
        raise NotFound(f"The sandbox needs x86-64, ARM64 or RISC-V (64 bits); this machine is {platform.machine()}.")
    by_descriptor = True
    try:
        refuse_unable(program, *_BY_DESCRIPTOR)
    except Forbidden:
        by_descriptor = False
    if not by_descriptor or set(needed) - set(_BY_DESCRIPTOR):
        refuse_unable(program, *needed)
    return Sandbox(reactor, program, sys.executable, seccomp, by_descriptor)


def refuse_unable(program: str, *needed: str) -> None:
    """Check that bubblewrap works with some options, by starting it once.

    :raises Forbidden: if bubblewrap cannot be started, is too slow or failed; the message quotes its error.
    """
    top = os.open("/", os.O_RDONLY | os.O_DIRECTORY)
    try:
        _try_out((program, *_TRIAL, *needed, "--", program, "--version"), top)
    finally:
        os.close(top)


def _try_out(command: Sequence[str], standard_input: int = subprocess.DEVNULL) -> None:
    """Run a command that starts bubblewrap.

    :raises Forbidden: if it cannot be started, is too slow or failed; the message quotes its error.
    """
    try:
        tried = subprocess.run(
            command, stdin=standard_input, capture_output=True, text=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Forbidden(_OFF.format(said=f"{error}.")) from error
    if tried.returncode != 0:
        raise Forbidden(_OFF.format(said=tried.stderr.strip()[:200] or f"it ended with {tried.returncode}."))


@contextmanager
def _pipe(content: bytes = b"") -> Iterator[tuple[int, int]]:
    """Open a pipe that holds C{content}, which must fit its buffer, and provide both ends within the context."""
    reading, writing = os.pipe()
    try:
        os.write(writing, content)
        if content:
            os.close(writing)
        yield reading, writing
    finally:
        os.close(reading)
        if not content:
            os.close(writing)


@contextmanager
def _readable() -> Iterator[Mapping[int, int]]:
    """Copy each standard descriptor that is a file opened for reading, and provide the copies for the process.

    With a descriptor of a file that was opened outside, the process could open that file for writing
    (C{/proc/self/fd/0}). With a descriptor of a directory, it could reach everything around the directory. No mount
    of the sandbox prevents that.

    :raises InvalidRequest: if a standard descriptor is a directory, a disk or a network socket, which lead out.
    """
    with ExitStack() as held:
        copies = {}
        for descriptor, name in _STANDARD.items():
            try:
                mode = os.fstat(descriptor).st_mode
            except OSError:
                continue  # the descriptor is closed
            if S_ISDIR(mode) or S_ISBLK(mode):
                raise InvalidRequest(f"In a sandbox standard {name} cannot be a directory or a disk.")
            if S_ISSOCK(mode) and not _is_local(descriptor):
                raise InvalidRequest(f"In a sandbox standard {name} cannot be a network socket.")
            if S_ISREG(mode) and fcntl.fcntl(descriptor, fcntl.F_GETFL) & os.O_ACCMODE == os.O_RDONLY:
                # guard against attack: a file that is standard input is copied
                #    -> test_sandbox.SandboxTests.test_standard_input
                copies[descriptor] = held.enter_context(_copy_of(descriptor))
        yield copies


def _is_local(descriptor: int) -> bool:
    with socket.socket(fileno=os.dup(descriptor)) as end:
        return end.family == socket.AF_UNIX


@contextmanager
def _copy_of(descriptor: int) -> Iterator[int]:
    """Provide a nameless copy of the unread rest of a file. The position of the file does not change."""
    position = os.lseek(descriptor, 0, os.SEEK_CUR)
    with TemporaryFile() as copy:
        while piece := os.pread(descriptor, _PIECE_BYTES, position):
            copy.write(piece)
            position += len(piece)
        copy.seek(0)
        yield copy.fileno()
