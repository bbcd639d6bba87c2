"""C{aileron profile}: the profiles that restrict which actions an agent may use."""

from __future__ import annotations

from collections.abc import Sequence

import click

from aileron.cli.output import Columns
from aileron.cli.session import OperatorCommand, reading_command


def _join(words: Sequence[str], otherwise: str) -> str:
    return ", ".join(words) or otherwise


_COLUMNS: Columns = {
    "NAME": "name",
    "ALLOWS": lambda item: _join(item["allow"], "all"),
    "DENIES": lambda item: _join(item["deny"], "-"),
    "AGENTS": lambda item: _join(item["agents"], "all" if item["projects"] else "-"),
    "PROJECTS": lambda item: _join(item["projects"], "all" if item["agents"] else "-"),
    "ACTIONS": lambda item: _join(item["actions"], "none"),
}


@click.group("profile")
def profile() -> None:
    """See which actions an agent may use, by its profile."""


@profile.command("list")
@reading_command
def list_profiles(command: OperatorCommand, /) -> None:
    """List the profiles of config.yaml, each with the actions that it allows now."""
    command.list(command.get("profiles"), _COLUMNS, "config.yaml has no profiles.")
