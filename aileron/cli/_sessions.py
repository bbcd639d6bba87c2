"""C{aileron sessions}: which agents are, or were, at work."""

from __future__ import annotations

import click

from . import _options
from ._output import listed
from ._session import as_operator
from ._surroundings import Surroundings, pass_surroundings


@click.group()
def sessions() -> None:
    """See the sessions of agents."""


@sessions.command("list")
@click.option("--live", is_flag=True, default=None, help="Only those that have not ended.")
@_options.paged
@_options.passphrase_fd
@_options.as_json
@pass_surroundings
def list_sessions(
    around: Surroundings, /, passphrase_fd: int | None, as_json: bool, **filters: str | int | bool | None
) -> None:
    """List sessions, newest first; agent and directory are what each claims."""
    answer = as_operator(around, passphrase_fd, lambda operator: operator.sessions(_options.given(**filters)))
    rows = (
        (item["id"], item["state"], item["started_at"], item["agent"], item["working_dir"], item.get("exit_code"))
        for item in answer["items"]
    )
    titles = ("ID", "STATE", "STARTED AT", "AGENT (CLAIMED)", "DIRECTORY (CLAIMED)", "EXIT")
    listed(as_json, answer, titles, rows, "There are no sessions.")
