"""C{aileron mcp}: Aileron's tools in clients that C{aileron launch} does not know."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import click

from aileron.cli import _options
from aileron.cli._output import note, say_json
from aileron.cli._surroundings import Surroundings, pass_surroundings

from .snippets import CLIENTS, Server

_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,31}")


@click.group()
def mcp() -> None:
    """Use Aileron's tools in a client that aileron launch does not know."""


@mcp.command("config")
@click.argument("client", type=click.Choice(sorted(CLIENTS)))
@click.option("--name", help="The name by which you let it in, if not the client's own.")
@_options.as_json
@pass_surroundings
def config(around: Surroundings, client: str, name: str | None, as_json: bool) -> None:
    """Print what goes into the configuration of CLIENT, and say how it is let in; no key is in it."""
    chosen = CLIENTS[client]
    called = name or chosen.name
    if not _NAME.fullmatch(called):
        raise click.UsageError("A name is of a-z, 0-9 and -, 32 at most.")
    text = chosen.text(Server(_command(), _variables(around, called)))
    if as_json:
        say_json({"client": called, "places": list(chosen.places), "text": text})
        return
    click.echo(text)
    note("")
    note("It goes into, beside what is there:")
    for place in chosen.places:
        note("  {place}", place=place)
    note("No key is in it. The client gets in by its name, once you have let it in:")
    note("  1. in {path}: clients: [{name}]", path=around.home.config, name=called)
    note("  2. aileron config trust")
    note("  3. aileron daemon stop, then aileron vault unlock: what is trusted counts from the next start")
    note("Then aileron-mcp opens a session for it, which ends with it: aileron sessions list --live")


def _command() -> str:
    beside = Path(sys.executable).absolute().parent / "aileron-mcp"
    return str(beside) if os.access(beside, os.X_OK) else "aileron-mcp"


def _variables(around: Surroundings, name: str) -> dict[str, str]:
    home = around.environ.get("AILERON_HOME")
    return {"AILERON_CLIENT": name, **({"AILERON_HOME": home} if home else {})}
