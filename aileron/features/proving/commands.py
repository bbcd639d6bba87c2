"""C{aileron connector prove}: tests connectors against a service that misbehaves."""

from __future__ import annotations

import textwrap
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import click

from aileron.base.converter import to_json
from aileron.base.text import visible
from aileron.cli import completion as _completion
from aileron.cli import options as _options
from aileron.cli.actions.copying import tell_fault
from aileron.cli.context import CliContext, pass_cli
from aileron.cli.errors import FAILED, CommandError
from aileron.cli.output import heading, progress, say, say_json

if TYPE_CHECKING:
    from aileron.connectors import Specimen

    from ._prover import Check, ProofCard

_FILE = click.Path(exists=True, dir_okay=False, path_type=Path)
_WIDTH = 80
_TITLES = {
    "once": "Effect at most once",
    "truth": "Outcome told truthfully",
    "secret": "Secret never out",
    "reconcile": "Effect found by its key",
}


@click.command("prove")
@click.argument("connectors", nargs=-1, metavar="[CONNECTOR]...", shell_complete=_completion.all_connectors)
@click.option("--file", type=_FILE, help="Prove this connector file instead of an installed connector.")
@click.option("--operation", "operations", multiple=True, metavar="NAME", help="Prove only this operation.")
@_options.as_json
@pass_cli
@click.pass_context
def prove_connectors(
    context: click.Context, cli: CliContext, /, connectors: tuple[str, ...], as_json: bool, **choice: Any
) -> None:
    """Test connectors against a local double of their service that fails in every way. Needs no daemon.

    Nothing leaves this machine, and your credentials are not used. Your actions that use them are run as well. Without
    CONNECTOR, all installed connectors are tested.
    """
    names = [f"builtin://{each}" if each.isidentifier() else each for each in connectors]
    specimens = _find(cli, names, choice["file"])
    check_operations(specimens, choice["operations"])
    with progress("Proving connectors"):
        cards = _prove_all(cli, specimens, choice["operations"])
    holds = all(each.holds for each in cards)
    if as_json:
        say_json({"holds": holds, "connectors": [{"holds": each.holds, **to_json(each)} for each in cards]})
    else:
        for card in cards:
            show_card(card)
    if not holds:
        context.exit(FAILED)


def _find(cli: CliContext, names: Collection[str], file: Path | None) -> list[Specimen]:
    from aileron.connectors import find_specimens

    specimens = list(find_specimens(file or cli.home.connectors, names, cli.kinds))
    for name in names:
        if name not in {each.name for each in specimens}:
            raise CommandError(f"There is no valid connector {name}.", "List connectors: aileron connector list")
    return specimens


def check_operations(specimens: Collection[Specimen], operations: Collection[str]) -> None:
    """Check that the connectors have the operations. Skip the check if a connector's file has faults.

    :raises CommandError: if no connector has one of the operations.
    """
    known = {name for each in specimens if each.spec for name in each.spec.description.operations}
    unknown = [each for each in operations if each not in known]
    if unknown and not any(each.problems for each in specimens):
        raise CommandError(f"No such operation: {', '.join(unknown)}.", "Show them: aileron connector show NAME")


def _prove_all(cli: CliContext, found: Collection[Specimen], operations: Collection[str]) -> list[ProofCard]:
    from aileron.actions import read_actions

    from ._bench import Bench, with_bench
    from ._prover import prove

    actions = read_actions(str(cli.home.actions))

    async def work(bench: Bench) -> list[ProofCard]:
        return [await prove(bench, each, operations, actions=actions) for each in found]

    async def drive(_: object) -> list[ProofCard]:
        from twisted.internet import reactor

        return await with_bench(cast("Any", reactor), work)

    return cli.drive(drive)


def show_card(card: ProofCard) -> None:
    """Print the results for one connector, in lines of at most 80 columns."""
    heading("{name} {version}", name=card.connector, version=card.version)
    for problem in card.problems:
        say("  {fault}", fault=tell_fault(problem))
    for name, check in card.checks.items():
        _wrap(f"{_TITLES[name]:<25}{check.verdict:<16}{_describe(check)}")
        for text in _group(check):
            _wrap(text, "    ")
    for remark in dict.fromkeys(card.remarks.values()):
        _wrap(f"{', '.join(name for name, each in card.remarks.items() if each == remark)}: {remark}.")
    if card.actions:
        say("  Actions")
    for name, check in card.actions.items():
        _wrap(f"{name:<23}{check.verdict:<16}{_describe(check, control=False)}", "    ")
        for text in _group(check):
            _wrap(text, "      ")
    say()


def _describe(check: Check, *, control: bool = True) -> str:
    if not check.runs or not control:
        return check.why or f"{check.runs} runs"
    return f"{check.runs} runs; control {'noticed' if check.control else 'NOT noticed'}"


def _group(check: Check) -> Iterator[str]:
    """Yield a text for each distinct fault of an operation, naming all trials in which it occurred."""
    for place in dict.fromkeys((each.operation, each.message) for each in check.faults):
        trials = [each.trial for each in check.faults if (each.operation, each.message) == place]
        yield f"{place[0]}: {place[1].rstrip('.')}. This happens when the service {'; '.join(trials)}."


def _wrap(text: str, indent: str = "  ") -> None:
    for line in textwrap.wrap(visible(text), _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  "):
        click.echo(line)
