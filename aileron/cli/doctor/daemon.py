"""Checks of the vault's file, the daemon's process and address, and features' checks of its status."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from aileron.cli.context import CliContext
from aileron.cli.errors import DAMAGED, LOST, CommandError
from aileron.cli.vault.unlocking import state_of_file
from aileron.home.discovery import Discovery, live_discovery, read_discovery
from aileron.home.lock import running_pid
from aileron.home.paths import Home
from aileron.home.ports import load_ports
from aileron.home.unlocking import read_unlock_problem
from aileron.model.errors import AileronError

from .authority import open_and_close
from .findings import DoctorFinding, remark, waits, wrong

_CORE = re.compile(r"^Max core file size +0 +0 ", re.MULTILINE)
_AGAIN = "aileron daemon stop, then aileron vault unlock"
_RESTART = f"Restart it: {_AGAIN}"


def vault(cli: CliContext, state: str | None) -> Iterator[DoctorFinding]:
    """Yield findings about the vault.

    :param state: the state from the daemon, or None if no daemon runs.
    """
    from aileron.vault.keys import check_file

    is_locked = state == "locked"
    state = state or state_of_file(cli)
    if state == "missing":
        yield waits("There is no vault yet, so nothing can be bound, trusted or run.", "Create one: aileron vault init")
    elif state == "lost":
        yield wrong("The vault is lost, so nothing can run.", LOST)
    elif state is None:
        yield wrong(
            "There is a database, but no vault file.",
            "Start the daemon to check whether the vault is lost: aileron daemon start",
        )
    else:
        if is_locked:
            yield waits("The vault is locked, so nothing runs.", "Unlock it: aileron vault unlock")
        problem = read_unlock_problem(cli.home)
        if problem is not None and state == "locked":
            yield wrong(problem.sentence)
        try:
            misaddressed = check_file(cli.home.secrets)
        except AileronError as error:
            yield wrong(error.message, DAMAGED)
            return
        for each in misaddressed:
            yield wrong(
                f"{each.name} cannot be used: its address, which an earlier release accepted, {each.address_problem}.",
                f"Bind it again: aileron credential revoke {each.name}, then aileron credential setup {each.connector} "
                "--base-url URL",
            )


def configuration(home: Home) -> Iterator[DoctorFinding]:
    """Report an error in C{config.yaml}. The daemon does not start with a trusted file that has errors."""
    from aileron.daemon import config_problem

    error = config_problem(home) if home.root.exists() else None
    if error is not None:
        place = f"{error.file}:{error.line}" if error.line else error.file
        yield wrong(f"{place}: {error.message}", "Fix it, then trust it: aileron config trust")


def process(cli: CliContext, found: Discovery | None) -> Iterator[DoctorFinding]:
    """Yield findings about the daemon's process: whether it runs, responds, and is closed to other processes."""
    home = cli.home
    pid = running_pid(home) if home.root.exists() else None
    if pid is None:
        if state_of_file(cli) == "locked":
            yield waits("The daemon is not running.", "Start it and unlock the vault: aileron vault unlock")
        else:
            yield waits("The daemon is not running.", "Start it: aileron daemon start")
        yield from _check_without_daemon(home)
    elif found is None:
        yield wrong(
            f"The daemon is running (PID {pid}), but daemon.json does not point to it: it is starting or stopping, or "
            "another program wrote that file.",
            f"If this persists, restart it: {_AGAIN}",
        )
    else:
        yield from _answers(cli, found)
        yield from hardening(found.pid)


def hardening(pid: int, proc: Path = Path("/proc"), platform: str = sys.platform) -> Iterator[DoctorFinding]:
    """Yield a finding for each way in which the daemon's process is not closed to other processes. Linux only."""
    if not platform.startswith("linux"):
        return
    try:
        status, limits = ((proc / str(pid) / name).read_text() for name in ("status", "limits"))
    except OSError:
        yield remark(f"The daemon's process (PID {pid}) cannot be inspected from here.")
        return
    told = dict(line.split(":\t", 1) for line in status.splitlines() if ":\t" in line)
    if told.get("NoNewPrivs") != "1":
        yield wrong("The daemon's process can gain new privileges.", _RESTART)
    if not _CORE.search(limits):
        yield wrong("The daemon's memory would be written to disk if it crashed.", _RESTART)
    # A check by root proves nothing: root may read every process.
    if os.geteuid() != 0 and os.access(proc / str(pid) / "environ", os.R_OK):
        yield wrong("Your other processes can read the daemon's memory.", _RESTART)


def _answers(cli: CliContext, found: Discovery) -> Iterator[DoctorFinding]:
    from aileron import __version__

    try:
        cli.probe(found.url, "/v1/health", None)
    except CommandError as error:
        yield wrong(f"The daemon (PID {found.pid}) does not respond at {found.url}. {error.message}", _RESTART)
    if found.version != __version__:
        yield wrong(f"The daemon is version {found.version}, this command is {__version__}.", _RESTART)


def _check_without_daemon(home: Home) -> Iterator[DoctorFinding]:
    try:
        if read_discovery(home) is not None:
            yield remark("There is an old daemon.json of a daemon that crashed. It is ignored.")
    except AileronError as error:
        yield remark(error.message)
    ports = load_ports(home)
    for port in filter(None, (ports.agent, ports.operator)):
        with suppress(OSError):
            open_and_close("127.0.0.1", port, 0.5)
            yield wrong(
                f"No daemon is running, but another program uses its port, {port}: an agent would send it a token.",
                "Find and stop that program. The daemon will use another port; launch agents again.",
            )


def found_daemon(home: Home) -> Discovery | None:
    """Return the daemon's address if it runs and the file with the address is safe, else None."""
    try:
        return live_discovery(home) if home.root.exists() else None
    except AileronError:
        return None


def report_status(cli: CliContext, found: Discovery | None) -> Iterator[DoctorFinding]:
    """Yield the findings of features in the daemon's status. If no daemon runs or responds, yield nothing."""
    if found is None:
        return
    try:
        status = cli.probe(found.url, "/v1/status", found.launch_key)
    except CommandError:
        return  # another check reports that the daemon does not respond
    for check in cli.features.doctor_checks():
        yield from check(status)
