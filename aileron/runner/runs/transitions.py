"""The one table of legal steps in a run's life, and the one way to build a change of state."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from aileron.values import Event, Run, RunState, Transition

_R = RunState

LEGAL: frozenset[tuple[RunState, RunState]] = frozenset(
    {
        (_R.RECEIVED, _R.APPROVED),  # ungated
        (_R.RECEIVED, _R.PENDING),
        (_R.PENDING, _R.PENDING),  # stale: asked anew
        (_R.PENDING, _R.APPROVED),
        (_R.PENDING, _R.DENIED),
        (_R.PENDING, _R.CANCELLED),
        (_R.PENDING, _R.EXPIRED),
        (_R.APPROVED, _R.PENDING),  # stale, too old or no decision: asked anew
        (_R.APPROVED, _R.AWAITING_VAULT),
        (_R.APPROVED, _R.CANCELLED),
        (_R.APPROVED, _R.EXECUTING),
        (_R.AWAITING_VAULT, _R.APPROVED),
        (_R.AWAITING_VAULT, _R.CANCELLED),
        (_R.AWAITING_VAULT, _R.PENDING),  # the record or the vault was put back: asked anew
        (_R.EXECUTING, _R.COMPLETED),
        (_R.EXECUTING, _R.FAILED),
        (_R.EXECUTING, _R.UNKNOWN),
        (_R.UNKNOWN, _R.COMPLETED),
        (_R.UNKNOWN, _R.FAILED),
        (_R.UNKNOWN, _R.UNKNOWN),  # something was found out, and not all
    }
)
"""Whatever is not here never happens."""


def transition(run: Run, end: RunState, at: datetime, *events: Event, **changes: Any) -> Transition:
    """A change of C{run} to C{end}, recorded by C{events}; the last one is the C{audit_id} of an end that it reaches.

    The reason that somebody gave stays until another is given or it is asked anew.

    :param changes: further fields of L{Transition}.
    :raises ValueError: the table does not know this step.
    """
    if (run.state, end) not in LEGAL:
        raise ValueError(f"a run never goes from {run.state.value} to {end.value}")
    if end.settled and end is not run.state:
        changes["audit_id"] = events[-1].id
    changes.setdefault("audit_id", run.audit_id if end is run.state else None)
    changes.setdefault("reason", None if "ask" in changes else run.reason)
    return Transition(run_id=run.id, start=run.state, end=end, at=at, events=events, **changes)
