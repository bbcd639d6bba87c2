"""Tells whether the standing grant by which a run was approved still allows it, and what a grant stands on."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from attrs import define

from aileron.base.json import JSON, digest
from aileron.model.actions import Action, PreviewRule
from aileron.model.authority import Grant, GrantState
from aileron.model.errors import ApprovalStale
from aileron.model.interfaces.authority import IGrants
from aileron.model.runs import Approval

from .decisions import NoDecision
from .plan import Plan, PlannedStep
from .predicates import allows
from .runs import EventFactory

_BY = "grant:"


@define(eq=False)
class GrantCheck:
    """Looks at what grants approved, until it begins; what a person approved is none of its business."""

    _grants: IGrants
    _events: EventFactory

    def check(self, approval: Approval, plan: Plan) -> None:
        """Look at all of it.

        :raises NoDecision: no grant in the vault ever allowed this.
        :raises ApprovalStale: it does so no longer.
        """
        grant = self._in_force(approval)
        if grant is None:
            return
        if not allows(grant, plan.arguments) or grant.session_id not in (None, approval.run.session_id):
            raise NoDecision("The grant that approved it does not allow it.")
        why = describe_changes(grant.bound, bounds_of_plan(plan))
        if why is not None:
            raise ApprovalStale(f"The grant that allowed it no longer does. {why}")

    def in_force(self, approval: Approval | None) -> None:
        """Look only whether it was revoked; cheap, and in any thread.

        :raises ApprovalStale, NoDecision: as of L{check}.
        """
        if approval is not None:
            self._in_force(approval)

    def _in_force(self, approval: Approval) -> Grant | None:
        by = approval.decided_by or ""
        named = by.removeprefix(_BY) if by.startswith(_BY) else None
        if named != approval.grant_id:
            raise NoDecision("The row names a different grant than the decision.")
        if named is None:
            return None
        grant = self._grants.get(named)
        if grant is None:
            raise NoDecision("The grant that approved it is not in the vault.")
        state = grant.state(self._events.now())
        if state in (GrantState.REVOKED, GrantState.OVER):
            how = "was revoked" if state is GrantState.REVOKED else "is over"
            raise ApprovalStale(f"The grant that allowed it {how}.")
        return grant


def name_decider(grant: Grant) -> str:
    """Name C{grant} as who decided: it stands under the decision's mark."""
    return f"{_BY}{grant.id}"


def bounds_of_plan(plan: Plan) -> dict[str, str]:
    """Collect what a grant stands on that is made of C{plan}, by what each is called."""
    return collect_bounds(plan.action, plan.steps, None if plan.preview is None else plan.preview.read)


def collect_bounds(action: Action, steps: Iterable[PlannedStep], read: PlannedStep | None) -> dict[str, str]:
    """Collect the action's file, the preview, and of each step, and the preview's C{read}, all that it will use."""
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
    """Describe in one sentence what of C{bound} is another now; L{None}: nothing is."""
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
