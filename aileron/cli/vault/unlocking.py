"""From a passphrase to a daemon whose vault is open."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from aileron.cli._errors import LOST, Trouble
from aileron.cli._session import PROMPT, vault_state
from aileron.cli._surroundings import Surroundings
from aileron.cli.daemon.process import start, stop
from aileron.home import Discovery, live_discovery

if TYPE_CHECKING:
    from aileron.vault.keys import DataKey


def state_of_file(around: Surroundings) -> str | None:
    """What can be told without a daemon: C{locked}, C{missing}, or L{None}: the daemon knows whether it is lost."""
    if around.home.secrets.exists():
        return "locked"
    return None if around.home.database.exists() else "missing"


def refuse_lost(around: Surroundings) -> None:
    """Make sure that a vault which is not there was never there; where there is history, a daemon tells.

    :raises Trouble: it is lost, and must not be replaced by the way.
    """
    if state_of_file(around) is not None:
        return
    found = live_discovery(around.home) or start(around, None)
    if vault_state(around, found) == "lost":
        raise Trouble("The vault is lost, so no other is made by the way.", LOST)


def any_key(around: Surroundings, descriptor: int | None, file: Path | None) -> DataKey | None:
    """The vault's key, if there is a vault and a passphrase can be had; else L{None}.

    :raises WrongPassphrase: it does not open the vault.
    """
    if not around.home.secrets.exists():
        return None
    if descriptor is None and file is None and not _in_environment(around) and not around.interactive():
        return None
    return unlocking_key(around, descriptor, file)


def unlocking_key(around: Surroundings, descriptor: int | None, file: Path | None) -> DataKey:
    """The vault's key.  The sources that prove no person is there are good for this, and for nothing else.

    :raises NoVault: there is no vault.
    :raises WrongPassphrase: it does not open the vault.
    """
    from aileron.cli.credentials.passphrase import Unattended

    passphrase = around.passphrase(PROMPT, descriptor, Unattended(around.environ, file))
    return around.open_vault(around.home.secrets, passphrase)


def restart_with(around: Surroundings, key: DataKey) -> Discovery:
    """The daemon with its vault open; one that runs with a locked vault, or none, is replaced.

    Agents keep their sessions: ports and tokens survive.
    """
    found = live_discovery(around.home)
    if found is not None and vault_state(around, found) == "unlocked":
        key.wipe()
        return found
    stop(around)
    try:
        found = start(around, key)
    finally:
        key.wipe()
    if vault_state(around, found) != "unlocked":
        raise Trouble("The daemon runs, but did not take the vault's key.", f"Its log: {around.home.log}")
    return found


def _in_environment(around: Surroundings) -> bool:
    from aileron.cli.credentials.passphrase import VARIABLE

    return VARIABLE in around.environ
