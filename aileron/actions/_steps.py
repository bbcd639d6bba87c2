"""Parses C{[[execute]]}, the steps of an action, and checks the references in their inputs."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import frozen

from aileron.base.json import JSON
from aileron.base.tables import FileTable, TextRule, quote, repeated
from aileron.base.toml import Path
from aileron.model.actions import ConnectorPin, Step

from ._references import ArgumentReference, OutputReference, PreviewReference, Reference, template_parts

MAX_STEPS = 16
_ID = TextRule.shape(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "must match ^[A-Za-z0-9][A-Za-z0-9_-]*$, with at most 64 characters"
)


@frozen
class StepScope:
    """The names that a step's references may use.

    :ivar pins: the connectors that the action requires, by name.
    :ivar inputs: the names of the action's inputs.
    :ivar gated: True if a person approves the action before its steps run.
    :ivar previewed: True if that person is shown a preview.
    """

    pins: Mapping[str, ConnectorPin]
    inputs: Collection[str]
    gated: bool
    previewed: bool = False


@frozen
class Place:
    """The place of a template in the file.

    :ivar kind: C{step}, C{preview} or C{undo}.
    :ivar earlier: the ids of the earlier steps.
    """

    kind: str
    earlier: Collection[str] = ()


def read_steps(tables: Sequence[FileTable], scope: StepScope) -> tuple[Step, ...]:
    """Parse the steps, in order. Faults are recorded in C{tables}."""
    steps: list[Step] = []
    for table in tables:
        step = _read_step(table, scope, {one.id for one in steps})
        capability_faults(table, step.connector, step.operation, scope)
        steps.append(step)
    for index in repeated([step.id for step in steps]):
        tables[index].fault("id", f"{steps[index].id!r} stands twice")
    return tuple(steps)


def read_inputs_of(table: FileTable, key: str, scope: StepScope, place: Place) -> Mapping[str, JSON]:
    """Parse the inputs of an operation at C{key} and check their references. Faults are recorded in C{table}."""
    inputs = table.object(key) or {}
    for path, message in _template_faults(inputs, (), scope, place):
        table.faults.add((*table.path, key, *path), message)
    return inputs


def capability_faults(table: FileTable, connector: str, operation: str, scope: StepScope) -> None:
    """Record a fault in C{table} if the action's pins do not list C{connector} with C{operation}."""
    pin = scope.pins.get(connector)
    if pin is None and connector:
        table.fault("connector", f"{quote(connector)} is not among `[[requires.connectors]]`")
    elif pin is not None and operation and operation not in pin.capabilities:
        table.fault("op", f"{quote(operation)} is not among the `capabilities` of {quote(pin.name)}")


def _read_step(table: FileTable, scope: StepScope, earlier: Collection[str]) -> Step:
    step = Step(
        id=table.text("id", _ID),
        connector=table.text("connector"),
        operation=table.text("op"),
        inputs=read_inputs_of(table, "inputs", scope, Place("step", earlier)),
        idempotent=table.flag("idempotent", default=False) if "idempotent" in table.values else None,
    )
    table.close()
    return step


def _template_faults(value: JSON, path: Path, scope: StepScope, place: Place) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        for message in _text_faults(value, scope, place):
            yield path, message
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if "${" in key:
                yield (*path, key), f"the key {quote(key)} is a template; only values can be"
            yield from _template_faults(item, (*path, key), scope, place)
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            yield from _template_faults(item, (*path, index), scope, place)


def _text_faults(text: str, scope: StepScope, place: Place) -> Iterator[str]:
    try:
        parts = template_parts(text)
    except ValueError as error:
        yield str(error)
        return
    for part in parts:
        if not isinstance(part, str):
            yield from _reference_faults(part, scope, place)


def _reference_faults(reference: Reference, scope: StepScope, place: Place) -> Iterator[str]:
    match reference:
        case ArgumentReference(name) if name not in scope.inputs:
            yield f"`${{args.{name}}}` is not a declared input"
        case OutputReference() | PreviewReference() if place.kind == "preview":
            yield "a preview comes first: only `${args.…}` can be used there"
        case PreviewReference() if place.kind == "undo":
            yield "undoing uses what the run was given and what came of it: only `${args.…}` and `${steps.…}`"
        case OutputReference(step) if step not in place.earlier:
            yield f"`${{steps.{step}.…}}` is not an earlier step"
        case OutputReference() if scope.gated and place.kind == "step":
            yield (
                "a step of an action that needs approval cannot use another step's result: "
                "what is approved must be known beforehand"
            )
        case PreviewReference() if not scope.previewed:
            yield "`${preview.…}` needs `[approval.preview]`"
