"""C{aileron audit}: the record."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from aileron.cli import _completion, _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._output import block, heading, in_words, listed, say, say_json, values
from aileron.cli._session import as_operator

from .offline import export, verify


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
@_options.passphrase_fd
@_options.as_json
@pass_cli
def list_records(cli: CliContext, /, passphrase_fd: int | None, as_json: bool, **filters: str | int | None) -> None:
    """List records, newest first."""
    answer = as_operator(cli, passphrase_fd, lambda operator: operator.audit(_options.given(**filters)))
    rows = (
        (item["sequence"], item["at"], item["type"], _actor(item), item.get("action"), item.get("run_id"))
        for item in answer["items"]
    )
    titles = ("NO", "AT", "WHAT", "WHO", "ACTION", "RUN")
    listed(as_json, answer, titles, rows, "There are no such records.")


@audit.command("show")
@click.argument("audit_id", metavar="ID")
@_options.passphrase_fd
@_options.as_json
@pass_cli
def show_record(cli: CliContext, audit_id: str, passphrase_fd: int | None, as_json: bool) -> None:
    """Show one record whole, with its place in the chain."""
    record = as_operator(cli, passphrase_fd, lambda operator: operator.audit_record(audit_id))
    if as_json:
        say_json(record)
        return
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


audit.add_command(verify)
audit.add_command(export)
