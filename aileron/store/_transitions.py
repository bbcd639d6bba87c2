"""Changes a run and its approval by a transition: pure, so that a row is read and written once."""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve, frozen

from aileron.errors import StateConflict
from aileron.values import Approval, Ask, Decision, Run, Transition


@frozen
class Standing:
    """A run as it stands in the transaction, and its approval if it has one."""

    run: Run
    approval: Approval | None = None


def advanced(standing: Standing, transitions: Iterable[Transition]) -> Standing:
    """Return what C{standing} is after C{transitions}, in order.

    :raises StateConflict: the run is not where one of them starts.
    :raises ValueError: one is of another run, or decides where nothing was asked.
    """
    for transition in transitions:
        standing = _advanced(standing, transition)
    return standing


def _advanced(standing: Standing, transition: Transition) -> Standing:
    run = standing.run
    if transition.run_id != run.id:
        raise ValueError("a transition of another run")
    if run.state is not transition.start:
        raise StateConflict(run)
    if transition.verify is not None:
        transition.verify(run, standing.approval)
    run = transition.applied(run)
    return Standing(run, _approval(run, standing.approval, transition))


def _approval(run: Run, approval: Approval | None, transition: Transition) -> Approval | None:
    if transition.ask is not None:
        approval = _asked(run, transition.ask)
    if transition.decision is not None:
        if approval is None:
            raise ValueError("a decision on a run that nobody was asked about")
        approval = _decided(approval, transition.decision, transition)
    return approval if approval is None else evolve(approval, run=run)


def _asked(run: Run, ask: Ask) -> Approval:
    return Approval(run, ask.digest, ask.review, ask.requested_at, ask.expires_at, ask.stale, changes=ask.changes)


def _decided(approval: Approval, decision: Decision, transition: Transition) -> Approval:
    return evolve(
        approval,
        approved=decision.approved,
        decided_at=decision.decided_at or transition.at,
        decided_by=decision.decided_by,
        reason=decision.reason,
        not_before=decision.not_before,
        not_after=decision.not_after,
        mark=decision.mark,
        grant_id=decision.grant_id,
    )
