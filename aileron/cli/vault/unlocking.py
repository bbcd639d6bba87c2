"""Unlocks the daemon's vault with a passphrase, changes the passphrase, and resets the vault."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from aileron.cli.context import CliContext
from aileron.cli.daemon.process import replacing, start, stop
from aileron.cli.errors import LOST, CommandError
from aileron.cli.opening import open_with_passphrase
from aileron.cli.output import note, say
from aileron.cli.session import vault_state
from aileron.home.discovery import Discovery, live_discovery
from aileron.home.paths import prepare
from aileron.model.errors import Forbidden, InvalidRequest, NetworkError, VaultDamaged

if TYPE_CHECKING:
    from aileron.model.interfaces.vault import IKeySource
    from aileron.vault.keys import DataKey

    from .unattended import UnattendedUnlock


def state_of_file(cli: CliContext) -> str | None:
    """Return the state of the vault without a daemon: C{locked}, C{missing}, or None if it may be lost.

    Only the daemon can tell whether the vault's file is lost: the home has a database but no vault.
    """
    if cli.home.secrets.exists():
        return "locked"
    return None if cli.home.has_store() else "missing"


def refuse_lost(cli: CliContext) -> None:
    """Refuse to create a vault if there was one before and its file is lost.

    If there is no vault's file but a database, start the daemon and ask it.

    :raises CommandError: if the vault is lost.
    """
    if state_of_file(cli) is not None:
        return
    found = live_discovery(cli.home) or start(cli, None)
    if vault_state(cli, found) == "lost":
        raise CommandError("The vault is lost, so no new one was created.", LOST)


def any_key(cli: CliContext, descriptor: int | None, file: Path | None, unattended: UnattendedUnlock) -> DataKey | None:
    """Return the vault's key, or None if there is no vault or no passphrase can be read.

    If a key source fails, print why.

    :param unattended: asks the key sources that need no person. They are asked first, unless a passphrase is given.
    :raises WrongPassphrase: if the given passphrase does not open the vault.
    :raises InvalidRequest: if no passphrase can be read from the descriptor or the file.
    """
    from .passphrase import VARIABLE

    given = descriptor is not None or file is not None or VARIABLE in cli.environ
    if not given and (key := unattended.ask()) is not None:
        return key
    if not cli.home.secrets.exists() or not (given or cli.interactive()):
        return None
    key = unlocking_key(cli, descriptor, file)
    unattended.stop()
    return key


def _key_by_source(cli: CliContext, sources: Sequence[IKeySource]) -> DataKey | None:
    """Return the vault's key by a key source, or None if there is none. If a source fails, print why."""
    from aileron.vault import keys

    if not cli.home.secrets.exists():
        return None
    try:
        return keys.open_by_source(cli.home.secrets, sources)
    except (
        VaultDamaged
    ):  # reported by what opens the vault next: the passphrase, or the daemon, which starts without it
        return None
    except (Forbidden, InvalidRequest, NetworkError) as error:
        note("The vault was not unlocked by its key source. {why}", why=error.message)
        return None


def unlocking_key(cli: CliContext, descriptor: int | None, file: Path | None) -> DataKey:
    """Return the vault's key, also from sources that prove no person is present. Use it only to unlock.

    If no passphrase is given, a security key is asked first.

    :raises NoVault: if there is no vault.
    :raises WrongPassphrase: if the passphrase does not open the vault.
    :raises InvalidRequest: if no passphrase can be read.
    """
    from .passphrase import Unattended

    unattended = Unattended(cli.environ, file)
    if unattended.given:
        return open_with_passphrase(cli, descriptor, unattended)[0]
    return attended_key(cli, descriptor)


def attended_key(cli: CliContext, descriptor: int | None) -> DataKey:
    """Return the vault's key from the person at the terminal: by a security key, or else by the passphrase.

    If a security key fails, print why, and ask for the passphrase.

    :param descriptor: where the passphrase is read, or None for a security key or the terminal.
    :raises NoVault: if there is no vault.
    :raises WrongPassphrase: if the passphrase does not open the vault.
    :raises InvalidRequest: if no passphrase can be read.
    """
    found = None if descriptor is not None else _key_by_source(cli, cli.features.key_sources(cli))
    return open_with_passphrase(cli, descriptor)[0] if found is None else found


def is_unlocked(cli: CliContext) -> bool:
    """Return whether the daemon runs with an unlocked vault.

    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    """
    found = live_discovery(cli.home)
    return found is not None and vault_state(cli, found) == "unlocked"


def unlock_for_login(cli: CliContext, descriptor: int | None) -> bytes | None:
    """Start the daemon and unlock its vault, and return the operator's key, or None if the vault is unlocked already.

    :raises CommandError: if there is no vault.
    :raises WrongPassphrase: if the passphrase does not open the vault.
    :raises InvalidRequest: if no passphrase can be read.
    """
    from aileron.vault.keys import operator_key

    if is_unlocked(cli):
        return None
    refuse_lost(cli)
    if not cli.home.secrets.exists():
        step = next(iter(cli.features.next_steps("missing")), "aileron vault init")
        raise CommandError("There is no vault yet. Nothing was opened.", f"Set up Aileron: {step}")
    key = attended_key(cli, descriptor)
    secret = operator_key(key)
    restart_with(cli, key)
    say("The vault is unlocked.")
    return secret


def restart_with(cli: CliContext, key: DataKey) -> Discovery:
    """Unlock the daemon's vault. A daemon that runs with a locked vault, or none, is replaced.

    Return the running daemon. Agents keep their sessions, because ports and tokens stay. The addresses of providers
    stay as well, unless a person chooses those of this terminal.

    :raises CommandError: if the daemon does not start, or a feature refused the environment. The key is erased.
    """
    found = live_discovery(cli.home)
    if found is not None and vault_state(cli, found) == "unlocked":
        key.wipe()
        return found
    try:
        cli = cli.features.choose_environment(cli)
    except CommandError:
        key.wipe()
        raise
    with replacing(cli.home):
        stop(cli)
        found = start_with(cli, key)
    if vault_state(cli, found) != "unlocked":
        raise CommandError(
            "The daemon is running, but did not accept the vault's key.", f"Its log is in {cli.home.log}"
        )
    return found


WORD = "reset"


def change_passphrase(cli: CliContext, descriptor: int | None, new_descriptor: int | None) -> Discovery:
    """Change the vault's passphrase, and restart the daemon. Return the new daemon.

    Both passphrases are checked before the daemon is asked to end. If the file cannot be written, the daemon starts
    again with the old passphrase.

    :raises WrongPassphrase: if the old passphrase is wrong. Nothing was changed.
    :raises WeakPassphrase: if the new passphrase is too weak. Nothing was changed.
    :raises StoreUnavailable: if the file cannot be written.
    :raises CommandError: if the daemon does not end, or does not start with the new passphrase.
    """
    from aileron.vault import keys

    cli = cli.features.choose_environment(cli)
    old_key, old = open_with_passphrase(cli, descriptor)
    try:
        new = cli.new_passphrase(new_descriptor)
        with replacing(cli.home):
            stop(cli)
            try:
                key = keys.change_passphrase(cli.home.secrets, old, new)
            except BaseException:
                note("The passphrase was not changed. The daemon is restarted as it was.")
                start(cli, old_key)
                raise
            say("Passphrase changed. Older copies of secrets.json still open with the old one: delete them.")
            say("Approved runs that have not started need your approval again.")
            return start_with(cli, key)
    finally:
        old_key.wipe()


def reset(cli: CliContext, new_descriptor: int | None) -> Discovery:
    """Replace a lost, damaged or permanently locked vault by an empty one, and start the daemon. Return the new daemon.

    :raises CommandError: if the person did not type L{WORD}, and nothing was changed; or if the daemon does not end, or
        does not start with the new vault.
    :raises WeakPassphrase: if the new passphrase is too weak. Nothing was changed.
    :raises StoreUnavailable: if the file cannot be written. Nothing was changed.
    """
    from aileron.vault import keys

    prepare(cli.home)
    cli = cli.features.choose_environment(cli)
    _tell_what_is_void(cli)
    if cli.ask(f"Type the word {WORD} to continue: ").strip() != WORD:
        raise CommandError("Nothing was changed.")
    passphrase = cli.new_passphrase(new_descriptor)
    with replacing(cli.home):
        ran = stop(cli)
        try:
            key = keys.reset(cli.home.secrets, passphrase, replace=True)
        except BaseException:
            if ran:
                start(cli, None)
            raise
        say("Empty vault created: {path}", path=cli.home.secrets)
        return start_with(cli, key)


def start_with(cli: CliContext, key: DataKey | None, confirmed: str | None = None) -> Discovery:
    """Start the daemon, or return the running one, and erase the key in any case.

    :param confirmed: the digest of a C{config.yaml} that the daemon is to trust, or None.
    :raises NoHome: if the home cannot be created.
    :raises CommandError: if the daemon ended, or was not healthy in time. The message has its last output.
    """
    try:
        return start(cli, key, confirmed)
    finally:
        if key is not None:
            key.wipe()


def _tell_what_is_void(cli: CliContext) -> None:
    note("This creates an empty vault with a new passphrase. You lose:")
    note("  all bound credentials (bind each again);")
    note("  trust in all actions, connectors and config.yaml (review and trust each again);")
    note("  grants, your own limits, passkeys, SSH keys and key sources;")
    note("  approvals of runs that have not started (approve each again).")
    note("The audit log is kept.")
    if cli.home.secrets.exists():
        note("The current file is kept as secrets.json.before-reset-<n>.")
    else:
        note("If you have a copy of secrets.json, restore it instead: it has all of this, as of that day.")
