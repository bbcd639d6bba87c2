"""C{aileron action new}: an action's file, from a few questions or flags."""

from __future__ import annotations

import click
from attrs import evolve

from aileron.cli import _completion, _options
from aileron.cli._context import CliContext, pass_cli
from aileron.cli._errors import CommandError
from aileron.cli._output import note, say
from aileron.home import prepare

from .drafting import Draft, Wanted, wanted
from .files import begin, edit_and_trust
from .operations import Known, known_connectors


@click.command("new")
@click.argument("name")
@click.option("--connector", metavar="NAME[@VERSION]", help="What it uses.", shell_complete=_completion.all_connectors)
@click.option("--op", help="The operation of that connector.")
@click.option("--gated/--ungated", default=None, help="Whether you are asked before each run.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME:TYPE[:optional]",
    help="What it takes; repeat for more. Without one: what the operation takes, as text.",
)
@click.option("--edit", is_flag=True, help="Open it in your editor; then it is checked, and you are asked to trust it.")
@_options.passphrase_fd
@pass_cli
def new(
    cli: CliContext,
    /,
    name: str,
    connector: str | None,
    op: str | None,
    gated: bool | None,
    inputs: tuple[str, ...],
    edit: bool,
    passphrase_fd: int | None,
) -> None:
    """Begin an action of your home, from an operation of a connector.

    What is not said is asked for. Nothing is overwritten, and what is written does nothing before you trust it.
    """
    prepare(cli.home)
    there = known_connectors(cli.home)
    known = _connector(cli, there, connector)
    draft = _draft(cli, name, known, op)
    draft = evolve(draft, gated=_gated(cli, gated))
    if inputs:
        draft = evolve(draft, inputs=tuple(map(wanted, inputs)))
    path = begin(cli.home, draft)
    say("Written: {path}", path=path)
    if edit:
        edit_and_trust(cli, path, passphrase_fd)
        return
    note("It does nothing before you trust it. Put it into words, then: aileron action edit {name}", name=name)


def _connector(cli: CliContext, there: dict[str, Known], named: str | None) -> Known:
    """The connector that is meant; one of a plugin is taken at its word.

    :raises CommandError: it is not known, and no version of it was said.
    """
    text = named or _asked(cli, "connector", f"Which connector ({', '.join(there)})? ")
    name, _, version = text.partition("@")
    if name in there:
        found = there[name]
        return evolve(found, version=version) if version else found
    if not version:
        raise CommandError(
            f"There is no file of a connector {name} here; nothing was written.",
            f"Of a plugin's name its version: --connector {name}@1.0.0",
        )
    return Known(name, version, {})


def _draft(cli: CliContext, name: str, known: Known, op: str | None) -> Draft:
    if op is None and known.operations:
        note("{choices}", choices=known.choices())
    op = op or _asked(cli, "op", "Which operation? ")
    if not known.operations:
        return Draft(name, known.name, known.version, op)
    takes = known.operation(op).takes
    return Draft(name, known.name, known.version, op, inputs=tuple(map(Wanted, takes)), takes=takes)


def _gated(cli: CliContext, said: bool | None) -> bool:
    """Whether it is gated; where nobody can be asked, it is."""
    if said is not None or not cli.interactive():
        return said is not False
    return cli.ask("Ask you before each run? [Y/n] ").strip().lower() not in {"n", "no"}


def _asked(cli: CliContext, option: str, question: str) -> str:
    answer = cli.ask(question).strip() if cli.interactive() else ""
    if not answer:
        raise click.UsageError(f"Say it by --{option}; nothing was written.")
    return answer
