"""C{aileron connector}: what the daemon can talk to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from aileron.values import LoadError

from . import _options
from ._action_files import tell_faults
from ._output import listed, note
from ._session import as_operator
from ._surroundings import Surroundings, pass_surroundings


@click.group()
def connector() -> None:
    """Look at connectors."""


@connector.command("list")
@_options.passphrase_fd
@_options.as_json
@pass_surroundings
def list_connectors(around: Surroundings, passphrase_fd: int | None, as_json: bool) -> None:
    """List connectors, what they may talk to, and why others did not load."""
    answer = as_operator(around, passphrase_fd, lambda operator: operator.connectors())
    rows = (
        (
            item["name"],
            item["version"],
            ", ".join(item["hosts"]),
            item["credential"]["kind"] if item.get("credential") else None,
            ", ".join(f"{each['name']} ({each['effect']})" for each in item["operations"]),
        )
        for item in answer["items"]
    )
    titles = ("NAME", "VERSION", "HOSTS", "CREDENTIAL", "OPERATIONS")
    listed(as_json, answer, titles, rows, "There are no connectors.")
    if not as_json:
        for problem in answer.get("problems", ()):
            note("did not load: {file}: {message}", file=problem["file"], message=problem["message"])


@connector.command("check")
@click.argument("files", nargs=-1, required=True, type=click.Path(exists=True, dir_okay=False, path_type=Path))
@_options.as_json
@click.pass_context
def check(context: click.Context, files: tuple[Path, ...], as_json: bool) -> None:
    """Say what is wrong with connector files; needs no daemon."""
    tell_faults(context, files, {path: _faults(path) for path in files}, as_json)


def _faults(path: Path) -> Sequence[LoadError]:
    from aileron.connectors import check as faults_of

    return faults_of(path)
