"""C{aileron connector}: what the daemon can talk to."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from aileron.values import LoadError

from . import _options
from ._files import Sort, add_command, check_command
from ._output import listed, note
from ._session import as_operator
from ._surroundings import Surroundings, pass_surroundings
from ._trust_commands import distrust_command, trust_command


@click.group()
def connector() -> None:
    """Look at, add and trust connectors."""


def _faults(path: Path) -> Sequence[LoadError]:
    from aileron.connectors import check as faults_of

    return faults_of(path)


_CONNECTORS = Sort("connector", ".toml", lambda home: home.connectors, _faults)
connector.add_command(add_command(_CONNECTORS))
connector.add_command(check_command(_CONNECTORS))
connector.add_command(trust_command("connector"))
connector.add_command(distrust_command("connector"))


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
