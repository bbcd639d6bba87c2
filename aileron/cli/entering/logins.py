"""C{aileron operator list} and C{end}: who is logged in as you."""

from __future__ import annotations

import click

from aileron.cli import _options
from aileron.cli._output import listed, say, say_json
from aileron.cli._session import as_operator
from aileron.cli._surroundings import Surroundings, pass_surroundings


@click.command("list")
@_options.passphrase_fd
@_options.as_json
@pass_surroundings
def list_logins(around: Surroundings, passphrase_fd: int | None, as_json: bool) -> None:
    """List your live logins, newest first; the first is this command's own."""
    answer = as_operator(around, passphrase_fd, lambda operator: operator.operator_sessions())
    rows = (
        (item["id"], "browser" if item["browser"] else "terminal", item["started_at"], item["expires_at"])
        for item in answer["items"]
    )
    listed(as_json, answer, ("ID", "WHERE", "SINCE", "UNTIL"), rows, "Nobody is logged in.")


@click.command("end")
@click.argument("login", metavar="[ID]", required=False)
@click.option("--all", "every", is_flag=True, help="All of them.")
@_options.passphrase_fd
@_options.as_json
@pass_surroundings
def end_logins(around: Surroundings, login: str | None, every: bool, passphrase_fd: int | None, as_json: bool) -> None:
    """End one of your logins, or all: its browser or command can do nothing more."""
    if every is (login is not None):
        raise click.UsageError("Say which login: its ID, or --all.")
    answer = as_operator(
        around,
        passphrase_fd,
        lambda operator: operator.end_operator_sessions() if login is None else operator.end_operator_session(login),
    )
    if as_json:
        say_json(answer)
    else:
        say("Ended: {ids}.", ids=", ".join(answer["ended"]))
