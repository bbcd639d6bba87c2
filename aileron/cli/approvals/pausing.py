"""C{aileron pause} and C{aileron resume}: everything off at once, and on again one by one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

from aileron.cli import _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._output import heading, note, say, say_json, table
from aileron.cli._session import as_operator

_SESSION = click.option("--session", help="Of this session only.")


@click.command()
@_SESSION
@click.option("--reason", help="Why; agents are told.")
@_options.passphrase_fd
@_options.as_json
@pass_cli
def pause(
    cli: CliContext, /, passphrase_fd: int | None, as_json: bool, session: str | None, reason: str | None
) -> None:
    """Let nothing more begin: no call is taken, nothing can be approved.

    It stays so across restarts, until you resume it. What has begun is listed,
    and goes on; what is approved and has not begun waits.
    """
    answer = as_operator(cli, passphrase_fd, lambda operator: operator.pause(session, reason))
    if as_json:
        say_json(answer)
        return
    say("Paused since {since}. Nothing more begins.", since=answer["pause"]["since"])
    _list("Under way; this goes on", answer["under_way"])
    note("Go on with: aileron resume{of}", of=f" --session {session}" if session else "")


@click.command()
@_SESSION
@_options.passphrase_fd
@_options.as_json
@pass_cli
def resume(cli: CliContext, /, passphrase_fd: int | None, as_json: bool, session: str | None) -> None:
    """Take calls again; what was approved before waits until you approve it once more.

    A session that was paused for itself stays so: resume it by --session.
    """
    answer = as_operator(cli, passphrase_fd, lambda operator: operator.resume(session))
    if as_json:
        say_json(answer)
        return
    say("Resumed.")
    _list("Approved before, and not begun; release each with aileron approval approve", answer["asked_anew"])


def _list(title: str, runs: Sequence[Mapping[str, Any]]) -> None:
    if runs:
        heading(title)
        table(("ID", "ACTION", "ASKED AT"), [(run["id"], run["action"], run["received_at"]) for run in runs])
