"""C{aileron action add}, C{check}, C{edit} and C{new}: action files on this machine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import click
from attrs import evolve

from aileron.actions.drafting import Draft, example, text_of, wanted
from aileron.base.load_error import LoadError
from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import CommandError
from aileron.cli.output import note, say
from aileron.home.paths import Home, prepare
from aileron.home.private_files import atomic_write
from aileron.model.actions import is_action_name
from aileron.model.connectors import ConnectorDescription, Operation

from .copying import Sort, add_command, check_command
from .own_files import edit_and_trust, find_file, remove_command

_SUFFIX = ".md"
_MAX_BYTES = 1024 * 1024


def _faults(path: Path) -> Sequence[LoadError]:
    from aileron.actions import check as faults_of

    return faults_of(str(path))


ACTIONS = Sort("action", _SUFFIX, lambda home: home.actions, _faults)
check = check_command(ACTIONS)
add = add_command(ACTIONS)
remove = remove_command(ACTIONS)


@click.command("edit")
@click.argument("name", shell_complete=_completion.actions)
@click.option("--new", is_flag=True, help="Create a new action.")
@_options.passphrase_fd
@pass_cli
def edit(cli: CliContext, name: str, new: bool, passphrase_fd: int | None) -> None:
    """Open an action of your home in your editor, then check it and ask you to trust it.

    The editor is set by VISUAL or EDITOR.
    """
    prepare(cli.home)
    path = begin(cli.home, example(name)) if new else find_file(cli.home, ACTIONS, name)
    if path is None:
        raise CommandError(
            f"There is no action {name} in {cli.home.actions}.", f"To create it: aileron action new {name}"
        )
    edit_and_trust(cli, ACTIONS, path, passphrase_fd)


def begin(home: Home, draft: Draft) -> Path:
    """Write the file of a new action into the home, and return its path. The file is complete and needs no editing.

    :raises CommandError: if the name is invalid, or the action exists.
    """
    if not is_action_name(draft.name):
        raise CommandError(
            f"{draft.name} is not a valid name for an action; nothing was written.",
            "Use a-z, 0-9, hyphens, dots and underscores.",
        )
    path = home.actions / f"{draft.name}{_SUFFIX}"
    try:
        atomic_write(path, text_of(draft).encode(), replace=False)
    except FileExistsError:
        raise CommandError(
            f"{path.name} already exists and was left as it is.", f"To change it: aileron action edit {draft.name}"
        ) from None
    return path


@click.command("new")
@click.argument("name")
@click.option(
    "--connector", metavar="NAME[@VERSION]", help="Connector to use.", shell_complete=_completion.all_connectors
)
@click.option("--op", help="Operation of that connector.")
@click.option("--gated/--ungated", default=None, help="Whether each run needs your approval.")
@click.option(
    "--input",
    "inputs",
    multiple=True,
    metavar="NAME:TYPE[:optional]",
    help="An input; can be repeated. Default: the inputs of the operation, as text.",
)
@click.option("--edit", is_flag=True, help="Open it in your editor, then check it and ask for trust.")
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
    """Create an action in your home from an operation of a connector.

    Missing options are asked for. Nothing is overwritten, and the action is not active until you trust it.
    """
    prepare(cli.home)
    description, takes = _connector(cli, connector)
    operation, given = _operation(cli, description.operations, takes, op)
    draft = Draft(
        name,
        description.name,
        description.version,
        operation,
        gated=_is_gated(cli, gated),
        inputs=tuple(map(wanted, inputs or given)),
        takes=tuple(given),
    )
    path = begin(cli.home, draft)
    say("Written: {path}", path=path)
    if edit:
        edit_and_trust(cli, ACTIONS, path, passphrase_fd)
        return
    note(
        "Not active until you trust it. Complete the description, then trust it: aileron action edit {name}", name=name
    )


def _connector(cli: CliContext, named: str | None) -> tuple[ConnectorDescription, Mapping[str, Sequence[str]]]:
    """Return the connector that the person chooses, and the inputs of its operations.

    The connector of a plugin has no file, so nothing but its name and version is known.

    :param named: the connector's name, with a version after C{@} if wanted, or None to ask for it.
    :raises CommandError: if there is no file of this connector, and no version was given.
    """
    from aileron.connectors import read_descriptions

    there = {each.name: (each, takes) for each, takes in read_descriptions(cli.home.connectors, cli.kinds)}
    text = named or _ask(cli, "connector", f"Which connector ({', '.join(there)})? ")
    name, _, version = text.partition("@")
    if name in there:
        found, takes = there[name]
        return evolve(found, version=version or found.version), takes
    if not version:
        raise CommandError(
            f"There is no valid connector file for {name}; nothing was written.",
            f"For a connector of a plugin, add its version: --connector {name}@1.0.0",
        )
    return ConnectorDescription(name, version, "", None, bindable=False, hosts=(), operations={}), {}


def _operation(
    cli: CliContext, operations: Mapping[str, Operation], takes: Mapping[str, Sequence[str]], named: str | None
) -> tuple[str, Sequence[str]]:
    """Return the chosen operation and its inputs. For a plugin's operation the inputs are unknown.

    :raises CommandError: if the connector has no such operation.
    """
    choices = "Operations: " + ", ".join(f"{each.name} ({each.effect})" for each in operations.values())
    if named is None and operations:
        note("{choices}", choices=choices)
    name = named or _ask(cli, "op", "Which operation? ")
    if operations and name not in operations:
        raise CommandError(f"The connector has no operation {name}; nothing was written.", choices)
    return name, takes.get(name, ())


def _is_gated(cli: CliContext, said: bool | None) -> bool:
    """Return whether the new action needs approval.

    :param said: the option of the command line, which counts if it was given. Otherwise the person is asked. Without a
        terminal the action needs approval.
    """
    if said is not None or not cli.interactive():
        return said is not False
    return cli.ask("Require your approval before each run? [Y/n] ").strip().lower() not in {"n", "no"}


def _ask(cli: CliContext, option: str, question: str) -> str:
    answer = cli.ask(question).strip() if cli.interactive() else ""
    if not answer:
        raise click.UsageError(f"Missing option --{option}; nothing was written.")
    return answer
