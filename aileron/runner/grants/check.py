"""Whether the grant by which a run was approved still allows it."""

from __future__ import annotations

from attrs import define

from aileron.errors import ApprovalStale
from aileron.interfaces import IGrants
from aileron.runner.approval.decisions import NoDecision
from aileron.runner.runs.events import EventFactory
from aileron.runner.runs.plan import Plan
from aileron.values import Approval, Grant, GrantState

from .bounds import bounds_of_plan, describe_changes
from .predicates import allows

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
            raise NoDecision("The standing grant by which it was approved does not allow it.")
        why = describe_changes(grant.bound, bounds_of_plan(plan))
        if why is not None:
            raise ApprovalStale(f"The standing grant that allowed it does so no longer. {why}")

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
            raise NoDecision("The row names another standing grant than the decision.")
        if named is None:
            return None
        grant = self._grants.get(named)
        if grant is None:
            raise NoDecision("The standing grant by which it was approved is not in the vault.")
        state = grant.state(self._events.now())
        if state in (GrantState.REVOKED, GrantState.OVER):
            how = "was revoked" if state is GrantState.REVOKED else "is over"
            raise ApprovalStale(f"The standing grant that allowed it {how}.")
        return grant


def name_decider(grant: Grant) -> str:
    """Who decided, where C{grant} did: it stands under the decision's mark."""
    return f"{_BY}{grant.id}"
