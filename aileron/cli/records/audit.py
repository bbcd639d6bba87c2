"""C{aileron audit}: the record, by the daemon, and as it lies in a file, without a daemon and a passphrase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from aileron import __version__
from aileron.cli import _completion, _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._errors import FAILED, UNCONFIRMED, CommandError
from aileron.cli._output import block, heading, in_words, say, say_json, values
from aileron.cli._session import OperatorCommand, operator_command
from aileron.cli.records.confirming import ask_daemon, fingerprints, held_against, is_unconfirmed, tell
from aileron.values import Checkpoint, from_timestamp, to_json

if TYPE_CHECKING:
    from aileron.store.copy import Copy


@click.group()
def audit() -> None:
    """Read the record of what happened, and check it."""


@audit.command("list")
@click.option("--since", metavar="TIME", help="From this moment on (RFC 3339).")
@click.option("--until", metavar="TIME", help="Before this moment.")
@click.option("--type", "type", help="Such as approval.approved.")
@click.option("--action", help="About this action only.", shell_complete=_completion.actions)
@click.option("--connector", help="About this connector only.", shell_complete=_completion.all_connectors)
@click.option("--session", help="Of this session only.")
@click.option("--run", help="Of this run only.")
@click.option("--class", "class", help="Failures of this class only.", shell_complete=_completion.failures)
@_options.paged
@operator_command
def list_records(command: OperatorCommand, /, **filters: str | int | None) -> None:
    """List records, newest first."""
    command.list(
        lambda operator: operator.audit(_options.filter_query(**filters)),
        ("NO", "AT", "WHAT", "WHO", "ACTION", "RUN"),
        lambda item: (item["sequence"], item["at"], item["type"], _actor(item), item.get("action"), item.get("run_id")),
        "There are no such records.",
    )


@audit.command("show")
@click.argument("audit_id", metavar="ID")
@operator_command
def show_record(command: OperatorCommand, audit_id: str) -> None:
    """Show one record whole, with its place in the chain."""
    command.show(command.ask(lambda operator: operator.audit_record(audit_id)), _show_record)


def _show_record(record: Mapping[str, Any]) -> None:
    heading("{kind}", kind=record["type"])
    named = ("audit_id", "at", "action", "connector", "class", "run_id", "session_id")
    found = {name.replace("_", " "): record[name] for name in named if record.get(name) is not None}
    values({"number": record["sequence"], "who": _actor(record), **found}, "  ")
    heading("What")
    if record.get("pruned"):
        say("  The contents were deleted, as `audit.keep_payloads_days` asks.")
    else:
        block(in_words(record["payload"]), "  ")
    heading("Chain")
    values({name.replace("_", " "): record[name] for name in ("previous_hash", "hash", "payload_digest")}, "  ")


def _actor(record: Mapping[str, Any]) -> str:
    return f"{record['actor']['type']} {record['actor']['id']}"


_FILE = click.Path(path_type=Path, dir_okay=False)


@audit.command("verify")
@click.argument("path", required=False, type=_FILE)
@click.option("--public-key", "keys", multiple=True, metavar="K", help="The key you noted, or its fingerprint.")
@click.option("--anchor", type=_FILE, help="A file that an anchor wrote: checkpoints kept elsewhere.")
@_options.as_json
@pass_cli
def verify(
    cli: CliContext,
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
    from aileron.cli.records.look import look_at

    path = path or cli.home.database
    _present(path)
    anchored = () if anchor is None else _read_anchored(anchor)
    running = ask_daemon(cli, path)
    found = look_at(path, keys, anchored, {} if running is None else running.sealed)
    if found.sound and running is not None and running.head is not None:
        found = held_against(cli, path, found)
    if as_json:
        told = None if running is None else running.as_json()
        say_json({**to_json(found), "fingerprints": fingerprints(found), "daemon": told})
    else:
        tell(found, running)
    if is_unconfirmed(found, running):
        return UNCONFIRMED
    return 0 if found.sound else FAILED


@audit.command("export")
@click.argument("path", required=False, type=_FILE)
@click.option("--since", metavar="TIME", help="From this moment on (RFC 3339).")
@click.option("--until", metavar="TIME", help="Before this moment.")
@pass_cli
def export(cli: CliContext, /, path: Path | None, since: str | None, until: str | None) -> None:
    """Write the record as lines of JSON, of your home or of a copy of its database.

    A part of it can be verified by itself: aileron audit verify FILE
    """
    from aileron.store.copy import open_copy

    database = path or cli.home.database
    _present(database)
    with open_copy(database) as copy:
        # First: of a record that goes on growing none must tell of what is not in this part yet.
        checkpoints = copy.checkpoints()
        after, last = copy.bounds(_moment(since, "--since"), _moment(until, "--until"))
        told = [each for each in checkpoints if after < each.sequence and (until is None or each.sequence <= last)]
        _write(copy, after, last, told)


def _write(copy: Copy, after: int, until: int, checkpoints: Sequence[Checkpoint]) -> None:
    from aileron.audit.verify import GENESIS, Exporting, record_line

    previous = copy.at(after) if after else GENESIS
    if previous is None:
        raise CommandError("The record has a gap where this part would begin.", "Look at it: aileron audit verify")
    exporting = Exporting(after, previous, max(after, until), checkpoints)
    for line in exporting.head(__version__):
        click.echo(line, nl=False)
    for rows in copy.rows(after, until):
        click.echo("".join(map(record_line, rows)), nl=False)
    click.echo(exporting.end(), nl=False)


def _read_anchored(path: Path) -> tuple[Checkpoint, ...]:
    from aileron.audit.verify import NotAnExport, read_anchor

    _present(path)
    try:
        with path.open(encoding="utf-8", errors="replace", newline="\n") as file:
            return read_anchor(file)
    except NotAnExport as error:
        raise CommandError(
            f"{path} is no anchor: {error}.", "Leave --anchor out, or name a file that an anchor wrote."
        ) from None


def _present(path: Path) -> None:
    if not path.is_file():
        raise CommandError(
            f"{path} is not there, so there is no record to look at.", "Name a copy of the database, or an export."
        )


def _moment(text: str | None, option: str) -> datetime | None:
    try:
        return None if text is None else from_timestamp(text.upper())
    except (ValueError, OverflowError):
        raise click.UsageError(f"{option} must be a moment, such as 2026-01-31T12:00:00Z.") from None
