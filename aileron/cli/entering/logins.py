"""C{aileron operator list} and C{revoke}: who is logged in as you."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

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
    """List your live logins, newest first; one of them is this command's own."""
    answer = as_operator(around, passphrase_fd, lambda operator: operator.operator_sessions())
    rows = (
        (item["id"], _where(item), item["started_at"], item["used_at"], item["expires_at"]) for item in answer["items"]
    )
    listed(as_json, answer, ("ID", "WHERE", "SINCE", "LAST USED", "UNTIL"), rows, "Nobody is logged in.")


def _where(item: Mapping[str, Any]) -> str:
    if item["yours"]:
        return "this command"
    return "browser" if item["browser"] else "terminal"


@click.command("revoke")
@click.argument("login", metavar="[ID]", required=False)
@click.option("--all", "every", is_flag=True, help="All of them, which leaves you logged in nowhere.")
@_options.passphrase_fd
@_options.as_json
@pass_surroundings
def revoke(around: Surroundings, login: str | None, every: bool, passphrase_fd: int | None, as_json: bool) -> None:
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
        say("Ended: {ids}.", ids=", ".join(answer["ended"]) or "none, for there was no other")
