"""Ensures before a launch that the daemon runs, its vault is unlocked, and the environment fits the gateway."""

from __future__ import annotations

from aileron.cli.context import CliContext
from aileron.cli.daemon.process import run_child, start
from aileron.cli.errors import CommandError
from aileron.cli.output import note
from aileron.cli.session import vault_state
from aileron.cli.vault.unlocking import refuse_lost
from aileron.home.discovery import Discovery, live_discovery

_LOCKED = (
    "The vault is locked. No action runs and the gateway forwards nothing until you unlock it in another terminal: "
    "aileron vault unlock"
)


def ensure_daemon(cli: CliContext) -> Discovery:
    """Return the running daemon, after starting it if necessary. In a terminal, create and unlock the vault if needed.

    Child processes read the passphrase, so that the agent never inherits the memory of a process that had it.

    :raises CommandError: if there is no vault and no terminal, the user did not create or unlock the vault, or the
        running daemon does not match this environment.
    """
    if not cli.home.secrets.exists():
        refuse_lost(cli)
        _make_vault(cli)
    found = live_discovery(cli.home) or start(cli, None)
    if vault_state(cli, found) == "locked":
        found = _unlock(cli, found)
    cli.features.check_environment(cli, found)
    return found


def _make_vault(cli: CliContext) -> None:
    if not cli.interactive():
        raise CommandError("There is no vault yet, so nothing was started.", "Create one: aileron vault init")
    note("There is no vault yet. It stores your credentials. Creating one now.")
    if not run_child(cli, "vault", "init"):
        raise CommandError("The vault was not created, so the agent was not started.")


def _unlock(cli: CliContext, found: Discovery) -> Discovery:
    if not cli.interactive():
        note(_LOCKED)
        return found
    if not run_child(cli, "vault", "unlock"):
        raise CommandError(
            "The vault was not unlocked, so the agent was not started.", "Try again: aileron vault unlock"
        )
    return cli.running()
