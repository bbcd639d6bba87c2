"""How the play looks."""

from __future__ import annotations

import click

from aileron.values import visible

_INDENT = "   "


def act(number: int, title: str) -> None:
    """A part begins."""
    click.echo()
    click.secho(f"{number}  {title}", bold=True)


def tell(text: str) -> None:
    """A line of ours."""
    click.echo(_INDENT + text)


def command(line: str, meaning: str) -> None:
    """A command that is run, and what it is for."""
    click.echo(_INDENT + click.style(f"$ {visible(line)}", fg="cyan"))
    click.echo(_INDENT + "    " + meaning)


def quote(text: str) -> None:
    """What somebody else said, line by line behind a margin."""
    for line in visible(text.rstrip("\n"), multiline=True).split("\n"):
        click.echo(f"{_INDENT}  │ {line}")


def printed(text: str) -> None:
    """What one of our own commands printed; it is fit to be shown already, and is shown so once more."""
    for line in visible(text.rstrip("\n"), multiline=True).split("\n"):
        click.echo(_INDENT + line)
