"""What a standing grant stands on: where any of it is another, the grant allows nothing."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from aileron.runner.runs.plan import Plan, PlannedStep
from aileron.values import JSON, Action, PreviewRule, digest


def bounds_of_plan(plan: Plan) -> dict[str, str]:
    """What a grant stands on that is made of C{plan}, by what each is called."""
    return bounds(plan.action, plan.steps, None if plan.preview is None else plan.preview.read)


def bounds(action: Action, steps: Iterable[PlannedStep], read: PlannedStep | None) -> dict[str, str]:
    """The action's file, the preview, and of each step, and the preview's C{read}, all that it will use."""
    found = {"the action's file": action.digest, "the preview": _shape(action.approval.preview)}
    for planned in steps:
        found.update(_of_step(planned, f"step {planned.step.id}"))
    return found if read is None else {**found, **dict(_of_step(read, "the preview"))}


def _of_step(planned: PlannedStep, where: str) -> Iterator[tuple[str, str]]:
    binding, described = planned.binding, planned.description
    yield f"the connector of {where}", f"{described.fqn} {described.version}"
    yield f"the content of the connector of {where}", described.content_hash
    yield f"the base URL of {where}", planned.base_url
    yield f"the credential of {where}", "none" if binding is None else f"{binding.name} {binding.revision}"


def describe_changes(bound: Mapping[str, str], now: Mapping[str, str]) -> str | None:
    """In one sentence, what of C{bound} is another now; L{None}: nothing is."""
    changed = [name for name in {**bound, **now} if bound.get(name) != now.get(name)]
    if not changed:
        return None
    return f"It was granted for another state of things; changed since: {', '.join(changed)}."


def _shape(rule: PreviewRule | None) -> str:
    if rule is None:
        return "none"
    shape: JSON = {
        "connector": rule.connector,
        "operation": rule.operation,
        "args": rule.args,
        "render": [list(each) for each in rule.render],
        "multiline": list(rule.multiline),
    }
    return digest(shape)
