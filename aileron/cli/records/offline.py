"""C{aileron audit verify} and C{export}: the record as it lies in a file, without a daemon and without a passphrase."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING

import click

from aileron import __version__
from aileron.cli import _options
from aileron.cli._errors import FAILED, UNCONFIRMED, Trouble
from aileron.cli._output import say_json
from aileron.cli._surroundings import Surroundings, pass_surroundings
from aileron.values import Checkpoint, from_timestamp

from .confirming import ask_daemon, held_against
from .verdict import fingerprints, is_unconfirmed, tell

if TYPE_CHECKING:
    from aileron.store.copy import Copy

_FILE = click.Path(path_type=Path, dir_okay=False)


@click.command("verify")
@click.argument("path", required=False, type=_FILE)
@click.option("--public-key", "keys", multiple=True, metavar="K", help="The key you noted, or its fingerprint.")
@click.option("--anchor", type=_FILE, help="A file that an anchor wrote: checkpoints kept elsewhere.")
@_options.as_json
@pass_surroundings
def verify(
    around: Surroundings,
    /,
    path: Path | None,
    keys: Sequence[str],
    anchor: Path | None,
    as_json: bool,
) -> int:
    """Check the record: in a copy of the database, in an export, or in your own home.

    Says which record was altered, removed, inserted, moved or cut off first, and
    exits with 1. Needs no daemon and no passphrase, and writes nothing. In your
    own home, a daemon that runs is asked for its newest record; where one may
    run and cannot be asked, it exits with 69.
    """
    from .look import Evidence, look_at

    path = path or around.home.database
    _present(path)
    anchored = () if anchor is None else _anchored(anchor)
    running = ask_daemon(around, path)
    found = look_at(path, Evidence(keys, anchored, {} if running is None else running.sealed))
    if found.sound and running is not None and running.head is not None:
        found = held_against(around, path, found)
    if as_json:
        told = None if running is None else running.as_json()
        say_json({**found.as_json(), "fingerprints": fingerprints(found), "daemon": told})
    else:
        tell(found, running)
    if is_unconfirmed(found, running):
        return UNCONFIRMED
    return 0 if found.sound else FAILED


@click.command("export")
@click.argument("path", required=False, type=_FILE)
@click.option("--since", metavar="TIME", help="From this moment on (RFC 3339).")
@click.option("--until", metavar="TIME", help="Before this moment.")
@pass_surroundings
def export(around: Surroundings, /, path: Path | None, since: str | None, until: str | None) -> None:
    """Write the record as lines of JSON, of your home or of a copy of its database.

    A part of it can be verified by itself: aileron audit verify FILE
    """
    from aileron.store.copy import opened

    database = path or around.home.database
    _present(database)
    with opened(database) as copy:
        # First: of a record that goes on growing none must tell of what is not in this part yet.
        checkpoints = copy.checkpoints()
        after, last = copy.bounds(_moment(since, "--since"), _moment(until, "--until"))
        told = [each for each in checkpoints if after < each.sequence and (until is None or each.sequence <= last)]
        _write(copy, after, last, told)


def _write(copy: Copy, after: int, until: int, checkpoints: Sequence[Checkpoint]) -> None:
    from aileron.audit.verify import GENESIS, Exporting, record_line

    previous = copy.at(after) if after else GENESIS
    if previous is None:
        raise Trouble("The record has a gap where this part would begin.", "Look at it: aileron audit verify")
    exporting = Exporting(after, previous, max(after, until), checkpoints)
    for line in exporting.head(__version__):
        click.echo(line, nl=False)
    for rows in copy.rows(after, until):
        click.echo("".join(map(record_line, rows)), nl=False)
    click.echo(exporting.end(), nl=False)


def _anchored(path: Path) -> tuple[Checkpoint, ...]:
    from aileron.audit.verify import NotAnExport, read_anchor

    _present(path)
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            return read_anchor(file)
    except NotAnExport as error:
        raise Trouble(
            f"{path} is no anchor: {error}.", "Leave --anchor out, or name a file that an anchor wrote."
        ) from None


def _present(path: Path) -> None:
    if not path.is_file():
        raise Trouble(
            f"{path} is not there, so there is no record to look at.", "Name a copy of the database, or an export."
        )


def _moment(text: str | None, option: str) -> datetime | None:
    try:
        return None if text is None else from_timestamp(text.upper())
    except (ValueError, OverflowError):
        raise click.UsageError(f"{option} must be a moment, such as 2026-01-31T12:00:00Z.") from None
