"""C{aileron vault}: creates, unlocks, locks and resets the vault, and changes its passphrase."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from aileron.cli import options as _options
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import LOST, CommandError
from aileron.cli.output import note, progress, say, say_json
from aileron.cli.records.confirming import record_of, tell_key, tell_tampering
from aileron.cli.session import OperatorCommand, reading_command, vault_state
from aileron.home.discovery import Discovery, live_discovery
from aileron.home.paths import prepare

from .unlocking import attended_key, change_passphrase, refuse_lost, restart_with, state_of_file, unlocking_key
from .unlocking import reset as begin_anew

if TYPE_CHECKING:
    from aileron.vault.keys import DataKey


@click.group()
def vault() -> None:
    """Create, unlock and lock your vault; change its passphrase."""


@vault.command("init")
@_options.passphrase_fd
@pass_cli
def init(cli: CliContext, passphrase_fd: int | None) -> None:
    """Create the vault, with your own passphrase or six generated words, and start the daemon."""
    if cli.home.secrets.exists():
        raise CommandError("The vault already exists and was left as it is.", "To unlock it: aileron vault unlock")
    refuse_lost(cli)
    make_vault(cli, passphrase_fd)
    _tell_next(cli)


def make_vault(cli: CliContext, descriptor: int | None) -> bytes:
    """Create the vault, start the daemon with it, print that, and return the operator's key.

    :raises CommandError: if the vault was not created, or the daemon does not start.
    """
    from aileron.vault.keys import operator_key

    key = _create(cli, descriptor)
    say("Vault created: {path}", path=cli.home.secrets)
    secret = operator_key(key)
    found = restart_with(cli, key)
    _tell_open(found)
    tell_key(cli, found)
    return secret


def ensure_open_vault(cli: CliContext) -> bytes | None:
    """If the vault is open, return None. Otherwise create or unlock it, and return the operator's key.

    :raises CommandError: if the vault is lost, or the daemon does not start.
    :raises WrongPassphrase: if the passphrase does not open the vault.
    :raises InvalidRequest: if no passphrase can be read.
    """
    from aileron.vault.keys import operator_key

    if not cli.home.secrets.exists():
        refuse_lost(cli)
        say("The vault stores your credentials, encrypted with a passphrase.")
        return make_vault(cli, None)
    found = live_discovery(cli.home)
    if found is not None and vault_state(cli, found) == "unlocked":
        say("The vault is unlocked.")
        return None
    key = attended_key(cli, None)
    secret = operator_key(key)
    restart_with(cli, key)
    say("The vault is unlocked.")
    return secret


@vault.command("unlock")
@_options.passphrase_fd
@click.option("--passphrase-file", type=click.Path(path_type=Path), help="Read the passphrase from this file.")
@pass_cli
def unlock(cli: CliContext, passphrase_fd: int | None, passphrase_file: Path | None) -> None:
    """Unlock the vault until the daemon stops. The daemon is started, or restarted.

    If a security key unlocks the vault, you are asked to touch it instead of the passphrase. Agents keep their
    sessions. The passphrase can also be set in AILERON_VAULT_PASSPHRASE.
    """
    found = live_discovery(cli.home)
    if found is not None and vault_state(cli, found) == "unlocked":
        say("The vault is already unlocked.")
        return
    found = restart_with(cli, unlocking_key(cli, passphrase_fd, passphrase_file))
    _tell_open(found)
    _tell_next(cli)
    tell_tampering(record_of(cli, found))


@vault.command("lock")
@reading_command
def lock(command: OperatorCommand) -> None:
    """Lock the vault: nothing runs until it is unlocked, and all your logins end."""
    answer = command.read(lambda operator: operator.post("vault", "lock"))
    command.say(answer, "The vault is locked. Pending approvals are kept.")


@vault.command("passphrase")
@_options.passphrase_fd
@_options.new_passphrase_fd
@pass_cli
def passphrase(cli: CliContext, passphrase_fd: int | None, new_passphrase_fd: int | None) -> None:
    """Change the vault's passphrase and restart the daemon.

    Bindings and trust are kept, and agents keep their sessions. Approved runs that have not started need your approval
    again.
    """
    _tell_open(change_passphrase(cli, passphrase_fd, new_passphrase_fd))
    _tell_next(cli)


@vault.command("reset")
@_options.new_passphrase_fd
@pass_cli
def reset(cli: CliContext, new_passphrase_fd: int | None) -> None:
    """Replace the vault by an empty one with a new passphrase, and restart the daemon.

    Use it if the vault is lost or its passphrase is forgotten; a working vault is replaced too. The new vault has no
    credentials, trust, grants, limits, passkeys, SSH keys or key sources, and approved runs that have not started need
    approval again. You confirm in the terminal by typing the word reset.
    """
    found = begin_anew(cli, new_passphrase_fd)
    _tell_open(found)
    tell_key(cli, found)
    _tell_next(cli)


@vault.command("status")
@_options.as_json
@pass_cli
def vault_status(cli: CliContext, as_json: bool) -> None:
    """Show whether the vault is missing, locked, unlocked or lost."""
    found = live_discovery(cli.home)
    state = vault_state(cli, found) if found is not None else state_of_file(cli)
    if as_json:
        say_json({"state": state, "running": found is not None})
        return
    say(
        "{state}{more}",
        state=state or "no vault file",
        more="" if found is not None else " (the daemon is not running)",
    )
    if state is None:
        note("To find out whether it is missing or lost, start the daemon: aileron daemon start")
    elif state == "lost":
        note(LOST)


def _create(cli: CliContext, descriptor: int | None) -> DataKey:
    from aileron.vault.keys import create

    prepare(cli.home)
    passphrase = cli.new_passphrase(descriptor)
    with progress("Creating the vault"):
        return create(cli.home.secrets, passphrase)


def _tell_open(found: Discovery) -> None:
    say("The daemon is running and the vault is unlocked (PID {pid}).", pid=found.pid)


def _tell_next(cli: CliContext) -> None:
    step = next(iter(cli.features.next_steps("first")), "aileron mcp config CLIENT")
    say("  Next: aileron open (your pages), or {step} (an agent)", step=step)
