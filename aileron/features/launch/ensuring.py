"""Ensures before a launch that the daemon runs, its vault is open, and LLM traffic goes where this terminal says."""

from __future__ import annotations

from aileron.cli.context import CliContext
from aileron.cli.daemon.process import run_child, start
from aileron.cli.errors import CommandError
from aileron.cli.output import note
from aileron.cli.session import vault_state
from aileron.cli.vault.unlocking import refuse_lost
from aileron.home.discovery import Discovery, live_discovery

_LOCKED = (
    "The vault is locked. The agent starts, but no action runs and the gateway forwards nothing until you unlock it in "
    "another terminal: aileron vault unlock"
)


def ensure_daemon(cli: CliContext) -> Discovery:
    """Return the running daemon. Start it, and create and unlock its vault, if necessary and there is a terminal.

    Child processes read the passphrase: an agent must not inherit memory of a process that held it.

    :raises CommandError: there is no vault, or the user did not create or unlock it.
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
        raise CommandError("There is no vault yet, so no agent was started.", "Create one: aileron vault init")
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
