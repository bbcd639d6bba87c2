"""C{aileron vault}: make it, open it, lock it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from aileron.home import Discovery, live_discovery, prepare

from . import _options
from ._errors import Trouble
from ._output import say, say_json
from ._session import as_operator
from ._surroundings import Surroundings, pass_surroundings
from ._unlocking import restart_with, unlocking_key, vault_state

if TYPE_CHECKING:
    from aileron.vault.keys import DataKey


@click.group()
def vault() -> None:
    """Make, unlock and lock your vault."""


@vault.command("init")
@_options.passphrase_fd
@pass_surroundings
def init(around: Surroundings, passphrase_fd: int | None) -> None:
    """Make the vault, with a passphrase of your own or six generated words, and start the daemon."""
    if around.home.secrets.exists():
        raise Trouble("There is a vault already; it was left as it is.", "To open it: aileron vault unlock")
    make_vault(around, passphrase_fd)


def make_vault(around: Surroundings, descriptor: int | None) -> bytes:
    """Make a vault where there is none, start the daemon with it, and say so; the operator's key to it."""
    from aileron.vault.keys import operator_key

    key = _create(around, descriptor)
    say("The vault is made: {path}", path=around.home.secrets)
    secret = operator_key(key)
    _tell_open(restart_with(around, key))
    return secret


@vault.command("unlock")
@_options.passphrase_fd
@click.option("--passphrase-file", type=click.Path(path_type=Path), help="Read the passphrase from this file.")
@pass_surroundings
def unlock(around: Surroundings, passphrase_fd: int | None, passphrase_file: Path | None) -> None:
    """Open the vault for this life of the daemon, which is started, or started anew.

    Agents keep their sessions. The passphrase may also stand in AILERON_VAULT_PASSPHRASE.
    """
    found = live_discovery(around.home)
    if found is not None and vault_state(around, found) == "unlocked":
        say("The vault is unlocked already.")
        return
    _tell_open(restart_with(around, unlocking_key(around, passphrase_fd, passphrase_file)))


@vault.command("lock")
@_options.passphrase_fd
@pass_surroundings
def lock(around: Surroundings, passphrase_fd: int | None) -> None:
    """Lock the vault: nothing runs until it is unlocked, and every login of yours ends."""
    as_operator(around, passphrase_fd, lambda operator: operator.lock_vault())
    say("The vault is locked. What waits for approval keeps waiting.")


@vault.command("status")
@_options.as_json
@pass_surroundings
def vault_status(around: Surroundings, as_json: bool) -> None:
    """Say whether the vault is missing, locked or unlocked."""
    found = live_discovery(around.home)
    state = vault_state(around, found) if found is not None else _state_of_file(around)
    if as_json:
        say_json({"state": state, "running": found is not None})
    else:
        say("{state}{more}", state=state, more="" if found is not None else " (no daemon runs)")


def _create(around: Surroundings, descriptor: int | None) -> DataKey:
    from aileron.vault.keys import create

    prepare(around.home)
    return create(around.home.secrets, around.new_passphrase(descriptor))


def _state_of_file(around: Surroundings) -> str:
    return "locked" if around.home.secrets.exists() else "missing"


def _tell_open(found: Discovery) -> None:
    say("The daemon runs with the vault unlocked (pid {pid}).", pid=found.pid)
    say("  Your pages: aileron open. An agent: aileron launch opencode")
