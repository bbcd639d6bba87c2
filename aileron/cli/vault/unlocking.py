"""From a passphrase to a daemon whose vault is open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aileron.cli._context import CliContext
from aileron.cli._errors import LOST, CommandError
from aileron.cli._session import PROMPT, vault_state
from aileron.cli.daemon.process import start, stop
from aileron.home import Discovery, live_discovery

if TYPE_CHECKING:
    from aileron.vault.keys import DataKey


def state_of_file(cli: CliContext) -> str | None:
    """What can be told without a daemon: C{locked}, C{missing}, or L{None}: the daemon knows whether it is lost."""
    if cli.home.secrets.exists():
        return "locked"
    return None if cli.home.database.exists() else "missing"


def refuse_lost(cli: CliContext) -> None:
    """Make sure that a vault which is not there was never there; where there is history, a daemon tells.

    :raises CommandError: it is lost, and must not be replaced by the way.
    """
    if state_of_file(cli) is not None:
        return
    found = live_discovery(cli.home) or start(cli, None)
    if vault_state(cli, found) == "lost":
        raise CommandError("The vault is lost, so no other is made by the way.", LOST)


def any_key(cli: CliContext, descriptor: int | None, file: Path | None) -> DataKey | None:
    """The vault's key, if there is a vault and a passphrase can be had; else L{None}.

    :raises WrongPassphrase: it does not open the vault.
    """
    if not cli.home.secrets.exists():
        return None
    if descriptor is None and file is None and not _in_environment(cli) and not cli.interactive():
        return None
    return unlocking_key(cli, descriptor, file)


def unlocking_key(cli: CliContext, descriptor: int | None, file: Path | None) -> DataKey:
    """The vault's key.  The sources that prove no person is there are good for this, and for nothing else.

    :raises NoVault: there is no vault.
    :raises WrongPassphrase: it does not open the vault.
    """
    from aileron.cli.credentials.passphrase import Unattended

    passphrase = cli.passphrase(PROMPT, descriptor, Unattended(cli.environ, file))
    return cli.open_vault(cli.home.secrets, passphrase)


def restart_with(cli: CliContext, key: DataKey) -> Discovery:
    """The daemon with its vault open; one that runs with a locked vault, or none, is replaced.

    Agents keep their sessions: ports and tokens survive.
    """
    found = live_discovery(cli.home)
    if found is not None and vault_state(cli, found) == "unlocked":
        key.wipe()
        return found
    stop(cli)
    try:
        found = start(cli, key)
    finally:
        key.wipe()
    if vault_state(cli, found) != "unlocked":
        raise CommandError("The daemon runs, but did not take the vault's key.", f"Its log: {cli.home.log}")
    return found


def _in_environment(cli: CliContext) -> bool:
    from aileron.cli.credentials.passphrase import VARIABLE

    return VARIABLE in cli.environ
