"""C{aileron daemon}: starts and stops the daemon, and shows its status."""

from __future__ import annotations

from pathlib import Path

import attrs
import click

from aileron.base.json import JSON
from aileron.base.text import duration
from aileron.cli import options as _options
from aileron.cli._tree import hide
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import FAILED, LOST
from aileron.cli.output import Columns, note, say, say_json, time_at, values
from aileron.cli.session import OperatorCommand, reading_command, vault_state
from aileron.cli.vault.unlocking import any_key, start_with
from aileron.home.discovery import Discovery, live_discovery
from aileron.home.lock import running_pid

from .process import stop
from .status import tell_version
from .supervise import run_daemon

_HINTS = {
    "missing": "There is no vault yet. Create one: aileron vault init",
    "lost": LOST,
    "locked": "The vault is locked, so nothing runs. Unlock it: aileron vault unlock",
}

_COLUMNS: Columns = {
    "ID": lambda item: f"{item['id']} (this one)" if item["own"] else item["id"],
    "HOST": "host",
    "PID": "pid",
    "VERSION": "version",
    "SCHEMA": "schema_version",
    "SINCE": time_at("started_at"),
    "LEASE ENDS IN": lambda item: _describe_lease(item["lease_seconds_left"]),
    "UNFINISHED RUNS": "unfinished_runs",
}


@click.group()
def daemon() -> None:
    """Start and stop the daemon."""


daemon.add_command(run_daemon)


@daemon.command("start")
@_options.passphrase_fd
@click.option("--passphrase-file", type=click.Path(path_type=Path), help="Unlock with the passphrase in this file.")
@click.option("--locked", is_flag=True, help="Leave the vault locked, and ask for no passphrase.")
@_options.as_json
@pass_cli
def start_daemon(
    cli: CliContext, passphrase_fd: int | None, passphrase_file: Path | None, locked: bool, as_json: bool
) -> None:
    """Start the daemon if it is not running.

    The vault is unlocked if a passphrase is given: by --passphrase-fd, --passphrase-file or
    AILERON_VAULT_PASSPHRASE, or in the terminal. Otherwise the vault's key sources are asked, once.
    """
    from aileron.cli.vault.unattended import UnattendedUnlock

    found = live_discovery(cli.home)
    fresh = found is None
    if found is None:
        unattended = UnattendedUnlock(cli)
        if locked:
            unattended.stop()  # and remove what an earlier start stored
        key = None if locked else any_key(cli, passphrase_fd, passphrase_file, unattended)
        unattended.give_up()
        found = start_with(cli, key)
    _tell(cli, found, as_json, "The daemon is running" if fresh else "The daemon is already running")


@daemon.command("stop")
@pass_cli
def stop_daemon(cli: CliContext) -> None:
    """Stop the daemon, after requests in progress have finished or been recorded."""
    say("The daemon has stopped." if stop(cli) else "The daemon is not running.")


@click.command("status")
@_options.as_json
@click.pass_context
@pass_cli
def daemon_status(cli: CliContext, context: click.Context, as_json: bool) -> None:
    """Show whether the daemon is running, and where. The exit code is 1 if it is not."""
    found = live_discovery(cli.home)
    if found is not None:
        _tell(cli, found, as_json, "The daemon is running")
        return
    pid = running_pid(cli.home)
    if as_json:
        say_json({"running": pid is not None, "pid": pid, "home": str(cli.home.root)})
    elif pid is None:
        say("The daemon is not running for {home}.", home=cli.home.root)
    else:
        say("The daemon (PID {pid}) is starting or stopping.", pid=pid)
    context.exit(FAILED)


hide(daemon, daemon_status, "status")


@daemon.command("list")
@_options.exact_times
@reading_command
def list_daemons(command: OperatorCommand, /) -> None:
    """List the daemons that use the database, with the rest of their leases and the runs that each holds.

    With the store in the home there is one. On a PostgreSQL server there may be several.
    """
    command.list(command.get("daemons"), _COLUMNS, "No daemon uses the database.")


def _tell(cli: CliContext, found: Discovery, as_json: bool, first: str) -> None:
    state = vault_state(cli, found)
    if as_json:
        known: dict[str, JSON] = attrs.asdict(found)
        public = {name: item for name, item in known.items() if not name.endswith("_key")}
        say_json({"running": True, "vault_state": state, "home": str(cli.home.root), **public})
    else:
        say("{first} (PID {pid}).", first=first, pid=found.pid)
        values(
            {
                "agent URL": found.url,
                "your pages": f"{found.operator_url} (aileron open)",
                "home": str(cli.home.root),
                "vault": state,
            },
            "  ",
        )
    tell_version(found)
    if state in _HINTS:
        note(_HINTS[state])


def _describe_lease(seconds_left: float | None) -> str | None:
    """Return when a lease ends, or None if the daemon has none because it is alone."""
    if seconds_left is None:
        return None
    return duration(seconds_left) if seconds_left > 0 else "has ended"
