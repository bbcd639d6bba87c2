"""Prints the missing inputs of an action or of a connector's operation, each with its option."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from importlib.resources import as_file, files

from aileron.cli.context import CliContext
from aileron.cli.output import note
from aileron.model.actions import Action, Input


def tell_missing(cli: CliContext, connector: str, operation: str, names: Sequence[str]) -> None:
    """Print each missing input with its option, and its type and description if an action declares them.

    A connector file declares no types, so they come from the actions in the home and the ready-made ones.

    :param names: the names of the missing inputs.
    """
    described = _describe(_list_actions(cli), connector, operation)
    ordered = [*(each for each in described if each in names), *(each for each in names if each not in described)]
    for name in ordered:
        about = described.get(name)
        if about is None:
            note("  {name}", name=name)
        else:
            _describe_input(about, name)
        kind = "string" if about is None else about.type
        note("    {option}", option=f"--arg {name}=TEXT" if kind == "string" else _write_json({name: kind}))


def tell_missing_of(cli: CliContext, action: str, names: Collection[str]) -> None:
    """Print each missing input of an action in the home, and the option that sets them all.

    :param names: the names of the missing inputs.
    """
    from aileron.actions import read_actions

    found = next((each for each in read_actions(str(cli.home.actions)) if each.name == action), None)
    missing = [] if found is None else [each for each in found.inputs if each.name in names]
    if missing:
        note("Inputs that were not given:")
        for each in missing:
            _describe_input(each, each.name)
        note("  Give them: {option}", option=_write_json({each.name: each.type for each in missing}))


def _describe_input(about: Input, name: str) -> None:
    need = "required" if about.required else "optional"
    note("  {name} ({type}, {need}): {words}", name=name, type=about.type, need=need, words=about.description)


def _write_json(types: Mapping[str, str]) -> str:
    """Return the option C{--args} with the inputs as JSON, in which the type of each input stands for its value."""
    values = {name: '"TEXT"' if kind == "string" else kind.upper() for name, kind in types.items()}
    pairs = ", ".join(f"{json.dumps(name)}: {value}" for name, value in values.items())
    return f"--args '{{{pairs}}}'"


def _list_actions(cli: CliContext) -> Iterator[Action]:
    from aileron.actions import read_actions

    yield from read_actions(str(cli.home.actions))
    with as_file(files("aileron").joinpath("connectors", "builtin", "actions")) as ready:
        for service in sorted(ready.iterdir()):
            yield from read_actions(str(service))


def _describe(actions: Iterable[Action], connector: str, operation: str) -> dict[str, Input]:
    """Return, for each input of the operation, an action's input whose value is passed to it unchanged.

    The result is keyed by the names of the operation's inputs. If several actions pass one input, the first action
    counts.
    """
    found = dict[str, Input]()
    for action in actions:
        passed = {f"${{args.{each.name}}}": each for each in action.inputs}
        steps = [each for each in action.steps if (each.connector, each.operation) == (connector, operation)]
        for step in steps:
            for name, given in step.inputs.items():
                if isinstance(given, str) and given in passed:
                    found.setdefault(name, passed[given])
    return found
