"""C{[[execute]]}: what an action does, and where its values come from."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence

from attrs import frozen

from aileron.toml import Path
from aileron.values import JSON, ConnectorPin, Step

from ._faults import shown
from ._references import ArgumentReference, OutputReference, Reference, template_parts
from ._table import Rule, Table, repeated

MAX_STEPS = 16
_ID = Rule.shape(
    r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}", "must match ^[A-Za-z0-9][A-Za-z0-9_-]*$, with at most 64 characters"
)
_KEYS = ("id", "connector", "op", "idempotent", "inputs")


@frozen
class Scope:
    """What a step may use.

    :ivar inputs: names of the action's inputs.
    :ivar gated: whether somebody approves the action before its steps run.
    """

    pins: Mapping[str, ConnectorPin]
    inputs: Collection[str]
    gated: bool


def read_steps(tables: Sequence[Table], scope: Scope) -> tuple[Step, ...]:
    """The steps, in order; what is wrong with them is kept with their tables."""
    steps: list[Step] = []
    for table in tables:
        step = _read_step(table)
        _check_operation(table, step, scope)
        earlier = {one.id for one in steps}
        for path, message in _template_faults(step.inputs, (), scope, earlier):
            table.faults.add((*table.path, "inputs", *path), message)
        steps.append(step)
    for index in repeated([step.id for step in steps]):
        tables[index].fault("id", f"the step `{steps[index].id}` stands twice")
    return tuple(steps)


def _read_step(table: Table) -> Step:
    inputs = table.json("inputs") if table.table("inputs").values else {}
    step = Step(
        id=table.text("id", _ID),
        connector=table.text("connector"),
        operation=table.text("op"),
        inputs=inputs if isinstance(inputs, Mapping) else {},
        idempotent=table.flag("idempotent", default=False) if "idempotent" in table.values else None,
    )
    table.close(_KEYS)
    return step


def _check_operation(table: Table, step: Step, scope: Scope) -> None:
    pin = scope.pins.get(step.connector)
    if pin is None and step.connector:
        table.fault("connector", f"{shown(step.connector)} is not among `[[requires.connectors]]`")
    elif pin is not None and step.operation and step.operation not in pin.capabilities:
        table.fault("op", f"{shown(step.operation)} is not among the `capabilities` of {shown(pin.name)}")


def _template_faults(value: JSON, path: Path, scope: Scope, earlier: Collection[str]) -> Iterator[tuple[Path, str]]:
    if isinstance(value, str):
        for message in _text_faults(value, scope, earlier):
            yield path, message
    elif isinstance(value, Mapping):
        for key, item in value.items():
            if "${" in key:
                yield (*path, key), f"the key {shown(key)} is a template; only values can be"
            yield from _template_faults(item, (*path, key), scope, earlier)
    elif isinstance(value, Sequence):
        for index, item in enumerate(value):
            yield from _template_faults(item, (*path, index), scope, earlier)


def _text_faults(text: str, scope: Scope, earlier: Collection[str]) -> Iterator[str]:
    try:
        parts = template_parts(text)
    except ValueError as error:
        yield str(error)
        return
    for part in parts:
        if not isinstance(part, str):
            yield from _reference_faults(part, scope, earlier)


def _reference_faults(reference: Reference, scope: Scope, earlier: Collection[str]) -> Iterator[str]:
    match reference:
        case ArgumentReference(name) if name not in scope.inputs:
            yield f"`${{args.{name}}}` is not a declared input"
        case OutputReference(step) if step not in earlier:
            yield f"`${{steps.{step}.…}}` is not an earlier step"
        case OutputReference() if scope.gated:
            yield (
                "a step of an action that needs approval cannot use another step's result: "
                "what is approved must be known beforehand"
            )
