"""Trust in C{config.yaml} of a home whose store is on a server, while no daemon runs.

Such a daemon finds its store only by a trusted C{config.yaml}, so a changed file keeps it from starting. The operator
then trusts the file with the start: the new daemon receives its digest beside the vault's key.
"""

from __future__ import annotations

from aileron.base.json import digest_of_bytes
from aileron.cli.context import CliContext
from aileron.cli.errors import CommandError
from aileron.cli.vault.unlocking import attended_key, start_with
from aileron.home.discovery import live_discovery
from aileron.home.private_files import read_private

from .trust_display import Item


def needs_start(cli: CliContext) -> bool:
    """Tell whether no daemon runs and the store is on a server, so that none starts without a trusted C{config.yaml}.

    :raises InvalidRequest, Forbidden: if C{daemon.json} cannot be used.
    """
    home = cli.home
    return home.moved_database.exists() and not home.database.exists() and live_discovery(home) is None


def read_config_item(cli: CliContext) -> Item:
    """Return C{config.yaml} as an item to trust, with its whole text: the text that was trusted last is in the store.

    It may be trusted already, which only the daemon knows.

    :raises CommandError: if the file is missing or has an error.
    :raises InvalidRequest, Forbidden: if it cannot be read.
    """
    from aileron.daemon import config_problem

    problem, data = config_problem(cli.home), read_private(cli.home.config)
    if data is None:
        raise CommandError(f"{cli.home.config} is missing.", "Write it again, with the database as store.url.")
    if problem is not None:
        line = "" if problem.line is None else f":{problem.line}"
        raise CommandError(f"{problem.file}{line}: {problem.message}. Nothing was trusted.")
    text = data.decode("utf-8")
    return {
        "kind": "config",
        "name": cli.home.config.name,
        "path": str(cli.home.config),
        "digest": digest_of_bytes(data),
        "state": "new",
        "difference": text,
        "lines": len(text.splitlines()),
        "bytes": len(data),
    }


def start_trusting(cli: CliContext, item: Item, descriptor: int | None) -> None:
    """Start the daemon, which trusts exactly the shown C{config.yaml} once the passphrase has opened the vault.

    :raises WrongPassphrase: if the passphrase does not open the vault. Nothing was trusted.
    :raises CommandError: if there is no vault, or the daemon does not start.
    """
    start_with(cli, attended_key(cli, descriptor), confirmed=item["digest"])
