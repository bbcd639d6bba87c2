"""C{aileron audit}: the audit record, from the daemon, or from a file without a daemon or a passphrase."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from aileron import __version__
from aileron.base.converter import to_json
from aileron.base.json import from_timestamp
from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import FAILED, UNCONFIRMED, CommandError
from aileron.cli.ids import id_argument, id_option
from aileron.cli.output import Columns, block, heading, in_words, note, say, say_json, time_at, values, when
from aileron.cli.session import OperatorCommand, reading_command
from aileron.cli.things import RECORD, RUN, SESSION
from aileron.model.audit import Actor, Checkpoint

from .confirming import ask_daemon, fingerprints, held_against, is_unconfirmed, tell

if TYPE_CHECKING:
    from aileron.store.copy import Copy


_SUBJECTS = ("name", "agent", "host")
_END = 6


def _actor(record: Mapping[str, Any]) -> str:
    actor = record["actor"]
    person = Actor(actor["type"], actor["id"]).person
    if person is not None:
        return person
    return "you" if actor["type"] == "human" else f"{actor['type']} {actor['id']}"


def _short_actor(record: Mapping[str, Any]) -> str:
    """Return the actor: an agent by the end of its session's ID, the operator without the login's number."""
    actor = record["actor"]
    return f"agent {_end(actor['id'])}" if actor["type"] == "agent" else _actor(record)


def _end(id_: str | None) -> str | None:
    """Return the last characters of an ID, which commands accept instead of the whole ID, or None if C{id_} is None."""
    return None if id_ is None else id_[-_END:]


def _subject(record: Mapping[str, Any]) -> str | None:
    """Return the event's subject: its action, connector, file, credential, agent or host, or None."""
    payload = record.get("payload") or {}
    subjects = (record["action"], record["connector"], *(payload.get(name) for name in _SUBJECTS))
    return next((str(each) for each in subjects if each), None)


_COLUMNS: Columns = {
    "NO": "sequence",
    "TIME": time_at("at"),
    "EVENT": "type",
    "ACTOR": _short_actor,
    "ABOUT": _subject,
    "RUN": lambda record: _end(record["run_id"]),
}


_NARROWING = ("type", "action", "connector", "session", "run", "class")


@click.group()
def audit() -> None:
    """Read and verify the audit log."""


@audit.command("list")
@click.option("--since", metavar="TIME", help="From this time on (RFC 3339).")
@click.option("--until", metavar="TIME", help="Before this time.")
@click.option("--type", "type", help="Only this type, such as approval.approved.")
@click.option("--action", help="Only this action.", shell_complete=_completion.actions)
@click.option("--connector", help="Only this connector.", shell_complete=_completion.all_connectors)
@id_option("--session", SESSION, "Only this session.")
@id_option("--run", RUN, "Only this run.")
@click.option("--class", "class", help="Only failures of this class.", shell_complete=_completion.failures)
@click.option(
    "--all", "everything", is_flag=True, help="List the login and logout of each command too, as --json does."
)
@_options.paged
@_options.exact_times
@reading_command
def list_records(command: OperatorCommand, /, everything: bool, **filters: str | int | None) -> None:
    """List records, newest first.

    Each command logs in and out. Without a filter other than a time, these records are left out; --all lists them.
    """
    for bound in ("since", "until"):
        _moment(cast("str | None", filters[bound]), f"--{bound}")
    everything = everything or command.as_json or any(filters[name] for name in _NARROWING)
    logins = None if everything else False
    command.list(
        command.get("audit", query=_options.filter_query(**filters, logins=logins)), _COLUMNS, "No matching records."
    )
    if not everything:
        note("The login and logout of each command are left out. To list them too, add --all.")


@audit.command("show")
@id_argument("audit_id", RECORD)
@_options.exact_times
@reading_command
def show_record(command: OperatorCommand, audit_id: str) -> None:
    """Show one record in full, with its place in the chain."""
    command.show(command.get("audit", audit_id), _show_record)


def _show_record(record: Mapping[str, Any]) -> None:
    heading("{kind}", kind=record["type"])
    named = ("audit_id", "action", "connector", "class", "run_id", "session_id")
    found = {name.replace("_", " "): record[name] for name in named if record.get(name) is not None}
    values({"number": record["sequence"], "time": when(record["at"]), "actor": _actor(record), **found}, "  ")
    heading("Contents")
    if record.get("pruned"):
        say("  Deleted after the retention period (`audit.keep_payloads_days`).")
    else:
        block(in_words(record["payload"]), "  ")
    heading("Chain")
    values({name.replace("_", " "): record[name] for name in ("previous_hash", "hash", "payload_digest")}, "  ")


_FILE = click.Path(path_type=Path, dir_okay=False)


@audit.command("verify")
@click.argument("path", required=False, type=_FILE)
@click.option("--public-key", "keys", multiple=True, metavar="K", help="The key that you noted, or its fingerprint.")
@click.option("--anchor", type=_FILE, help="A file of checkpoints kept elsewhere, written by an anchor.")
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
    """Verify the audit log: of your home, a copy of its database, or an export.

    If a record was altered, removed, inserted, moved or cut off, the first such
    record is named and the exit code is 1. Needs no daemon and no passphrase, and
    writes nothing. For your own home, a running daemon is asked for its newest
    record; if a daemon may be running but cannot be asked, the exit code is 69.
    """
    from .look import look_at

    path = path or _own_database(cli)
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
@click.option("--since", metavar="TIME", help="From this time on (RFC 3339).")
@click.option("--until", metavar="TIME", help="Before this time.")
@pass_cli
def export(cli: CliContext, /, path: Path | None, since: str | None, until: str | None) -> None:
    """Print the audit log of your home, or of a copy of its database, as lines of JSON.

    An exported part can be verified by itself: aileron audit verify FILE
    """
    from aileron.store.copy import open_copy

    database = path or _own_database(cli)
    _present(database)
    with open_copy(database) as copy:
        # First, so that checkpoints of events recorded meanwhile are not compared with this part.
        checkpoints = copy.checkpoints()
        after, last = copy.bounds(_moment(since, "--since"), _moment(until, "--until"))
        told = [each for each in checkpoints if after < each.sequence and (until is None or each.sequence <= last)]
        _write(copy, after, last, told)


def _write(copy: Copy, after: int, until: int, checkpoints: Sequence[Checkpoint]) -> None:
    from aileron.audit.verify import GENESIS, Exporting, record_line

    previous = copy.at(after) if after else GENESIS
    if previous is None:
        raise CommandError("The audit log has a gap where this part would start.", "Check it: aileron audit verify")
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
            f"{path} is not an anchor file: {error}.", "Remove --anchor, or specify a file written by an anchor."
        ) from None


def _own_database(cli: CliContext) -> Path:
    """Return the path of the home's database.

    :raises CommandError: if it was moved to a server.
    """
    home = cli.home
    if home.moved_database.exists() and not home.database.exists():
        raise CommandError(
            "The audit log of this home is on a PostgreSQL server.", "Verify it there: aileron store verify URL"
        )
    return home.database


def _present(path: Path) -> None:
    if not path.is_file():
        raise CommandError(
            f"{path} does not exist, so there is no audit log to read.", "Specify a copy of the database, or an export."
        )


def _moment(text: str | None, option: str) -> datetime | None:
    try:
        return None if text is None else from_timestamp(text.upper())
    except (ValueError, OverflowError):
        raise click.UsageError(f"{option} must be a time, such as 2026-01-31T12:00:00Z.") from None
