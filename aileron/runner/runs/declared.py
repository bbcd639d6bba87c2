"""Whether a connector declares what an action relies on."""

from __future__ import annotations

from collections.abc import Iterator

from aileron.manifests import preview_paths
from aileron.values import READ, Action, ConnectorDescription, Operation, PreviewRule, Step


def find_undeclared(action: Action, description: ConnectorDescription) -> Iterator[str]:
    """What C{action} relies on and the connector of that description does not declare."""
    for step in action.steps:
        if step.connector == description.fqn:
            yield from _of_step(step, description)
    preview = action.approval.preview
    if preview is not None and preview.connector == description.fqn:
        yield from _of_preview(preview, description)


def _of_step(step: Step, description: ConnectorDescription) -> Iterator[str]:
    operation = description.operations.get(step.operation)
    if operation is None:
        yield f"{description.fqn} has no operation {step.operation}"
        return
    if step.idempotent and not operation.idempotent:
        yield (f"step {step.id} claims to be idempotent; {description.fqn} does not declare {step.operation} so")
    yield from _untied(step, operation, description.fqn)


def _untied(step: Step, operation: Operation, fqn: str) -> Iterator[str]:
    """Inputs that are filled from the preview and are no precondition: what was seen would choose what is done."""
    for name, value in step.inputs.items():
        if preview_paths(value) and name not in operation.precondition:
            yield (
                f"step {step.id} fills `{name}` from the preview; "
                f"{fqn} does not declare it as a precondition of {step.operation}"
            )


def _of_preview(preview: PreviewRule, description: ConnectorDescription) -> Iterator[str]:
    operation = description.operations.get(preview.operation)
    if operation is None:
        yield f"{description.fqn} has no operation {preview.operation}"
    elif operation.effect != READ or not operation.idempotent:
        yield f"the preview must be an idempotent read; {description.fqn} does not declare {preview.operation} so"
