"""C{aileron store}: moves the store of a home to a PostgreSQL server, and back."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import FAILED, CommandError
from aileron.cli.output import progress, say, values
from aileron.home.lock import acquire_lock, release_lock, running_pid
from aileron.model.audit import Verdict
from aileron.model.errors import Conflict

from .confirming import tell
from .look import look_at, look_at_copy

_FILE = "sqlite"


_password_file = click.option(
    "--password-file",
    type=click.Path(path_type=Path, dir_okay=False),
    help="A file of yours with the password for the database.",
)


@click.group()
def store() -> None:
    """Move this home's store to a PostgreSQL server, or back."""


@store.command("verify")
@click.argument("url")
@_password_file
def verify(url: str, password_file: Path | None) -> int:
    """Verify the audit log in the database at URL. Exit with 1 if it is broken.

    The daemon may be running. Nothing is written.
    """
    from aileron.store.moving import open_server_copy

    with open_server_copy(_address(url, password_file)) as copy:
        found = look_at_copy(copy)
    tell(found)
    return 0 if found.sound else FAILED


def _address(url: str, password_file: Path | None) -> Any:
    from aileron.daemon import find_server

    return find_server(url, None if password_file is None else password_file.absolute())


@store.command("migrate")
@click.option("--to", "target", metavar="URL", required=True, help="The database, or sqlite to move back.")
@click.option("--from", "source", metavar="URL", help="The database to move back from.")
@_password_file
@pass_cli
def migrate(cli: CliContext, target: str, source: str | None, password_file: Path | None) -> None:
    """Copy everything into an empty database, and verify the audit log on both sides.

    The daemon must be stopped. What is copied from stays as it is: the file is
    renamed to aileron.db.moved, a database on a server is not changed.
    """
    if (target == _FILE) != (source is not None):
        raise click.UsageError("Specify --to URL, or, to move back, --to sqlite --from URL.")
    address = _address(source or target, password_file)
    pid = running_pid(cli.home)
    if pid is not None:
        raise CommandError("The daemon is running; nothing was copied.", "Stop it: aileron daemon stop")
    try:
        acquire_lock(cli.home)
    except Conflict as error:
        raise CommandError(error.message, "Stop the daemon: aileron daemon stop") from None
    try:
        (_to_server if source is None else _to_file)(cli, address)
    finally:
        release_lock(cli.home)


def _to_server(cli: CliContext, address: Any) -> None:
    from aileron.store.moving import move_to_server, open_server_copy, settle_file

    path = cli.home.database
    if not path.exists():
        raise CommandError(f"{path} does not exist, so there is nothing to copy.", "See what is there: aileron status")
    settle_file(path)
    before = _checked(look_at(path))
    with progress("Copying the store"):
        moved = move_to_server(path, address)
    with open_server_copy(address) as copy:
        _compare(before, look_at_copy(copy))
    path.replace(cli.home.moved_database)
    _tell(before, moved.rows["runs"], f"Moved to {address.url}")
    say(
        "The file is now {file}. Keep its name: it keeps a daemon from starting without the database.",
        file=cli.home.moved_database,
    )
    say("Start the daemon: aileron vault unlock")


def _to_file(cli: CliContext, address: Any) -> None:
    from aileron.store.moving import move_to_file, open_server_copy

    with open_server_copy(address) as copy:
        before = _checked(look_at_copy(copy))
    with progress("Copying the store"):
        moved = move_to_file(address, cli.home.database)
    try:
        _compare(before, look_at(cli.home.database))
    except CommandError:
        cli.home.database.unlink()
        raise
    _tell(before, moved.rows["runs"], f"Moved to {cli.home.database}")
    say("Remove store.url from config.yaml, and start the daemon: aileron vault unlock")


def _checked(found: Verdict) -> Verdict:
    """Return the verdict of a sound record.

    :raises CommandError: if the record is broken.
    """
    if found.broken is not None:
        raise CommandError(
            f"The audit log is broken at record {found.broken.sequence} ({found.broken.kind}); nothing was copied.",
            "See what is wrong: aileron audit verify, or aileron store verify URL",
        )
    return found


def _compare(before: Verdict, after: Verdict) -> None:
    """Check that the copy has the same record, whose chain is sound.

    :raises CommandError: if it has not.
    """
    _checked(after)
    if (before.last, before.head) != (after.last, after.head):
        raise CommandError("The audit log of the copy differs; the copy must not be used.", "Delete the copy.")


def _tell(verdict: Verdict, runs: int, done: str) -> None:
    say("{done}", done=done)
    values({"runs": str(runs), "audit records": f"{verdict.last}, verified on both sides"}, "  ")
