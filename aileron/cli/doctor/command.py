"""C{aileron doctor}: checks everything and changes nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import click
from attrs import asdict

from aileron.base.disk import free_bytes
from aileron.cli.context import CliContext
from aileron.cli.errors import FAILED, CommandError, lines_of
from aileron.cli.session import OperatorCommand, reading_command, vault_state
from aileron.home.discovery import Discovery
from aileron.model.errors import AileronError

from .authority import Answers, ask, authority, network
from .daemon import configuration, found_daemon, process, report_status, vault
from .findings import DoctorFinding, Severity, remark, tell, wrong
from .machine import THIS_PACKAGE, disk, files, program, search_path, tracing

_OF_LATE = timedelta(days=7)


@click.command()
@click.option("--offline", is_flag=True, help="Check only files and processes, and ask no daemon.")
@click.option("--network", "over_network", is_flag=True, help="Also check whether services can be reached.")
@reading_command
def doctor(command: OperatorCommand, offline: bool, over_network: bool) -> None:
    """Check the whole installation, and report problems and how to fix them.

    Nothing is changed. The exit code is 1 if there is a problem; "action needed" alone is none.
    """
    cli = command.cli
    found = found_daemon(cli.home)
    state = _state(cli, found)
    asks = found is not None and state == "unlocked" and not offline
    told, findings = _ask(command) if asks else (None, [])
    findings += _all(cli, found, state, told)
    if told is not None and over_network:
        findings += network(told)
    command.show({"findings": [asdict(each) for each in findings]}, lambda _: tell(findings))
    if any(each.severity is Severity.WRONG for each in findings):
        click.get_current_context().exit(FAILED)


def _ask(command: OperatorCommand) -> tuple[Answers | None, list[DoctorFinding]]:
    """Return the daemon's answers without findings, or None and a finding with the reason why there are no answers."""
    from aileron.client import DaemonError

    try:
        return command.read(ask), []
    except (AileronError, DaemonError, CommandError) as error:
        says, *hints = lines_of(error)
        return None, [wrong(says, " ".join(hints) or None)]


def _all(cli: CliContext, found: Discovery | None, state: str | None, told: Answers | None) -> Iterator[DoctorFinding]:
    yield from files(cli.home, os.getuid())
    yield from disk(cli.home, free_bytes(cli.home.root))
    yield from program(THIS_PACKAGE, Path(sys.executable), os.getuid())
    yield from search_path(cli.environ)
    yield from vault(cli, state)
    yield from process(cli, found)
    yield from tracing(cli.features.doctor_advice("tracing"))
    yield from report_status(cli, found)
    if told is not None:
        yield from authority(told, datetime.now(UTC) - _OF_LATE)
    else:
        yield from configuration(cli.home)
        yield remark(
            "Trust, bindings and the audit log were not checked: that needs a running daemon and an unlocked vault."
        )


def _state(cli: CliContext, found: Discovery | None) -> str | None:
    try:
        return None if found is None else vault_state(cli, found)
    except CommandError:
        return None  # another check reports that the daemon does not respond
