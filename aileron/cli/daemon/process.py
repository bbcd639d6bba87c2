"""Starts and stops the daemon as a separate process, and runs our commands as children in this terminal."""

from __future__ import annotations

import fcntl
import os
import signal
import site
import socket
import subprocess
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from aileron.base.disk import is_disk_full
from aileron.cli._entry import SERVE
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.output import note, progress
from aileron.home.discovery import Discovery, live_discovery, read_discovery
from aileron.home.lock import running_pid
from aileron.home.paths import Home, prepare
from aileron.model.errors import AileronError

if TYPE_CHECKING:
    from aileron.vault.keys import DataKey

START_SECONDS = 60.0
STOP_SECONDS = 30.0
_POLL_SECONDS = 0.05
_QUIET_SECONDS = 1.0
_TAIL_LINES = 12
_STANDARD_ERROR = 2
_TAIL_BYTES = 8192
_PACKAGE = Path(__file__).parent

_PASSED_ON = frozenset(
    "PATH HOME USER LOGNAME LANG TZ TMPDIR AILERON_HOME XDG_RUNTIME_DIR DBUS_SESSION_BUS_ADDRESS".split()
)


class NoHome(CommandError):
    """The daemon could not start because its home could not be created."""


def start(cli: CliContext, key: DataKey | None, confirmed: str | None = None) -> Discovery:
    """Start the daemon, or return the running one. It is healthy on return.

    :param key: unlocks a new daemon's vault. It is sent through a socket, never in arguments or environment.
    :param confirmed: the digest of a C{config.yaml} that the operator trusts with this start, or None.
    :raises NoHome: if the home cannot be created.
    :raises CommandError: if the daemon ended, or was not healthy in time. The message has its last output.
    """
    home = cli.home
    found = live_discovery(home)
    if found is not None:
        return found
    try:
        prepare(home)
    except OSError as error:
        why = f"{error.strerror}: {error.filename}"
        raise NoHome(
            f"{home.root} cannot be created ({why}). No daemon was started.",
            "Let AILERON_HOME name a directory that you can write to.",
        ) from None
    for line in cli.features.announce_environment(cli.environ):
        note("{line}", line=line)
    with progress("Starting the daemon"):
        return _until_healthy(cli, home, _spawn(cli, home, key, confirmed))


def stop(cli: CliContext) -> bool:
    """Ask the daemon to end, and wait until it has ended.

    :return: whether a daemon was running.
    :raises CommandError: if the daemon takes longer than L{STOP_SECONDS}, or than it announced, or runs in another
        container. It is not killed.
    """
    home = cli.home
    pid = running_pid(home)
    if pid is None:
        return False
    if pid == 0:
        raise CommandError("The daemon runs in another container, so it was not stopped. Stop it there.")
    most = _longest_stop(home)
    with suppress(ProcessLookupError):  # it may have ended just now
        os.kill(pid, signal.SIGTERM)
    began, told = cli.seconds(), False
    while running_pid(home) == pid:
        waited = cli.seconds() - began
        if waited > most:
            raise CommandError(
                f"The daemon (PID {pid}) has not stopped after {most:g} s; it was not killed.",
                f"It is finishing requests in progress. Its log is in {home.log}",
            )
        if waited > _QUIET_SECONDS and not told:
            note("Waiting for the daemon (PID {pid}) to finish requests in progress …", pid=pid)
            told = True
        cli.sleep(_POLL_SECONDS)
    return True


def _longest_stop(home: Home) -> float:
    """Return the most seconds to wait for the end of the daemon. One that shares its database may take longer."""
    found = None
    with suppress(AileronError):  # a damaged daemon.json says nothing
        found = read_discovery(home)
    announced = None if found is None else found.stop_seconds
    return max(STOP_SECONDS, announced or 0.0)


@contextmanager
def replacing(home: Home) -> Iterator[None]:
    """Hold a lock while a command replaces the daemon. L{is_being_replaced} is true meanwhile.

    The lock is on the home's directory and belongs to this process, so it also ends if the process is killed.
    """
    with _home_opened(home) as descriptor:
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        yield


def is_being_replaced(home: Home) -> bool:
    """Return True if a command is replacing the daemon. If there is no home, return False."""
    try:
        with _home_opened(home) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except (FileNotFoundError, NotADirectoryError):
        return False
    return False


@contextmanager
def _home_opened(home: Home) -> Iterator[int]:
    descriptor = os.open(home.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def child_environment(environ: Mapping[str, str], more: Collection[str] = ()) -> dict[str, str]:
    """Return the part of our environment that the daemon receives.

    No variable that steers Python or holds a secret is passed on, except a proxy's.

    :param more: the names of variables that features read.
    """
    passed_on = {*_PASSED_ON, *more}
    # guard against attack: a passphrase stays out of the daemon's environment
    #    -> test_process.PoisonTests.test_passphrase_from_environment, instead return dict(environ)
    return {name: text for name, text in environ.items() if name in passed_on or name.startswith("LC_")}


def _spawn(cli: CliContext, home: Home, key: DataKey | None, confirmed: str | None) -> subprocess.Popen[bytes]:
    trusting = () if confirmed is None else ("--trust-config", confirmed)
    serve = command(SERVE, "--home", str(home.root), *trusting)
    variables = cli.features.variables()
    if key is None:
        return _start_detached(serve, home, cli.environ, variables=variables)
    reading, writing = private_pair()
    try:
        key.send(writing)  # 32 bytes fit the socket's buffer until the child reads them
        return _start_detached((*serve, "--key-fd", str(reading)), home, cli.environ, (reading,), variables)
    finally:
        os.close(reading)


def _start_detached(
    command: Sequence[str],
    home: Home,
    environ: Mapping[str, str],
    descriptors: tuple[int, ...] = (),
    variables: Collection[str] = (),
) -> subprocess.Popen[bytes]:
    path = output_of(home)
    if path.exists():
        path.replace(path.with_suffix(".out.before"))
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with open(descriptor, "wb") as output:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            cwd=home.root,
            env=child_environment(environ, variables),
            pass_fds=descriptors,
            start_new_session=True,
        )


def output_of(home: Home) -> Path:
    """Return the path of the daemon's standard output, which is not its log."""
    return home.log / "daemon.out"


def _until_healthy(cli: CliContext, home: Home, child: subprocess.Popen[bytes]) -> Discovery:
    deadline = cli.seconds() + START_SECONDS
    while cli.seconds() < deadline:
        ended = child.poll()
        found = live_discovery(home)
        with suppress(CommandError):
            if found is not None and cli.probe(found.url, "/v1/health", None).get("service") == "aileron":
                return found
        if (
            ended is not None and running_pid(home) is None
        ):  # otherwise another command started it first: wait for that daemon
            if is_disk_full(home.root):
                raise CommandError(
                    f"The disk that holds {home.root} is full, so the daemon cannot start.",
                    "Free some space, then start it again: aileron daemon start",
                )
            raise CommandError(
                f"The daemon exited immediately (status {ended}).", f"Its log is in {home.log}", last_words(home)
            )
        cli.sleep(_POLL_SECONDS)
    raise CommandError(
        f"The daemon (PID {child.pid}) is not healthy after {START_SECONDS:g} s.",
        f"It was left running. Its log is in {home.log}",
        last_words(home),
    )


def last_words(home: Home) -> Sequence[str]:
    """Return the last lines of the daemon's standard output and error, or nothing if they cannot be read."""
    try:
        data = output_of(home).read_bytes()[-_TAIL_BYTES:]
    except OSError:
        return ()
    return data.decode("utf-8", "replace").rstrip().splitlines()[-_TAIL_LINES:]


def command(*arguments: str, executable: str = sys.executable, package: Path = _PACKAGE) -> tuple[str, ...]:
    """Return the command line that runs this program isolated from its environment and working directory.

    :param package: the directory of this package. In the user's own site directory C{-I} would not find it.
    """
    deaf = ("-E", "-P") if package.is_relative_to(site.getusersitepackages()) else ("-I",)
    return (executable, *deaf, "-m", "aileron", *arguments)


def private_pair() -> tuple[int, int]:
    """Return two descriptors: one to read, and one to write. One of the two is for a child process.

    A child cannot close itself to other processes of the user before it runs. Until then these may reopen its pipes
    from C{/proc} and read in its place. A socket cannot be reopened this way.
    """
    # guard against attack: a token goes to its command by a socket -> test_process.HandedOnTests.test_token,
    #    instead return os.pipe()
    reading, writing = (_above_standard(each.detach()) for each in socket.socketpair())
    return reading, writing


def _above_standard(descriptor: int) -> int:
    """Return a descriptor above 2. A lower one is duplicated and closed.

    Otherwise a child's standard streams would overwrite it.
    """
    if descriptor > _STANDARD_ERROR:
        return descriptor
    moved: int = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _STANDARD_ERROR + 1)
    os.close(descriptor)
    return moved


def run_child(cli: CliContext, *arguments: str) -> bool:
    """Run one of our commands in this terminal, and return whether it succeeded.

    Ctrl-C reaches the child as well, and ends both.
    """
    from aileron.cli.drive import interruptible

    with interruptible():
        return subprocess.run(command(*arguments), env=dict(cli.environ), check=False).returncode == 0
