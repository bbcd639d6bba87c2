"""The inputs of a connector's operation that were not given, as the actions that use the operation describe them."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import as_file, files

from aileron.cli._context import CliContext
from aileron.cli._output import note
from aileron.values import Action, Input


def tell_missing(cli: CliContext, connector: str, operation: str, names: Sequence[str]) -> None:
    """Print each input that was not given: its type and description, as far as an action says, and its option.

    A connector file declares no types: they are those of actions in the home, and of the ready ones.

    :param names: of the inputs.
    """
    described = _describe(_list_actions(cli), connector, operation)
    ordered = [*(each for each in described if each in names), *(each for each in names if each not in described)]
    for name in ordered:
        about = described.get(name)
        if about is None:
            note("  {name}", name=name)
        else:
            need = "required" if about.required else "optional"
            note("  {name} ({type}, {need}): {words}", name=name, type=about.type, need=need, words=about.description)
        note("    {option}", option=_option(name, "string" if about is None else about.type))


def _option(name: str, kind: str) -> str:
    """Return the option that gives an input; only text is given by C{--arg}."""
    if kind == "string":
        return f"--arg {name}=TEXT"
    return f"--args '{{{json.dumps(name)}: {kind.upper()}}}'"


def _list_actions(cli: CliContext) -> Iterator[Action]:
    from aileron.proving import list_actions

    yield from list_actions(str(cli.home.actions))
    with as_file(files("aileron").joinpath("connectors", "builtin", "actions")) as ready:
        for service in sorted(ready.iterdir()):
            yield from list_actions(str(service))


def _describe(actions: Iterable[Action], connector: str, operation: str) -> dict[str, Input]:
    """Return the inputs of actions that are passed on to inputs of the operation as they are, by the latter's names."""
    found = dict[str, Input]()
    for action in actions:
        passed = {f"${{args.{each.name}}}": each for each in action.inputs}
        steps = [each for each in action.steps if (each.connector, each.operation) == (connector, operation)]
        for step in steps:
            for name, given in step.inputs.items():
                if isinstance(given, str) and given in passed:
                    found.setdefault(name, passed[given])
    return found
