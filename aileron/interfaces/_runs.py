"""Where runs, their approvals, steps and attempts are kept."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from zope.interface import Interface

from aileron.values import (
    Approval,
    AttemptRow,
    Charge,
    Page,
    PendingLimits,
    Progress,
    Run,
    RunQuery,
    StepRow,
    Transition,
)


class IRuns(Interface):
    """Rows that change only by compare-and-set, in one transaction with the events that record it.

    Every method that writes answers after the commit and raises L{aileron.errors.StoreUnavailable} if nothing was kept.
    Cancelling a waiting caller never undoes what was written.
    """

    async def receive(run: Run, transitions: Sequence[Transition], limits: PendingLimits) -> tuple[Run, bool]:
        """Insert C{run} (state C{received}) and apply C{transitions} to it, in order, in one transaction.

        :return: the run as it now stands and C{True}; or, where this session and action have used the idempotency key
            in the last 7 days, the run of then and C{False}: nothing was written.  (Keys of runs without a session are
            one space.)
        :raises Conflict: that run had other arguments or another manifest.
        :raises LimitExceeded: a transition to C{pending_approval} would pass C{limits}; nothing was written.
        """

    async def find_by_key(session_id: str | None, action: str, idempotency_key: str) -> Run | None:
        """The run that used this key in the last 7 days, or L{None}."""

    async def apply(*transitions: Transition) -> Run:
        """Apply C{transitions} of one run, in order, all or none.

        An C{ask} in a transition replaces the approval's digest, review, times and staleness and forgets its decision;
        a C{decision} is kept beside them.  C{verify} is called with the run (and its approval, if it has one) as
        read in the transaction.

        :return: the run as it now stands.
        :raises StateConflict: the run was not in C{start}; it carries the present run.  Nothing was written.
        :raises LimitExceeded: one of its C{charges} is full; nothing was written.
        :raises NotFound: there is no such run.
        """

    async def progress(progress: Progress) -> None:
        """Keep what happened inside an C{executing} run.

        :raises StateConflict: the run is not C{executing}.
        """

    async def get(run_id: str) -> Run | None:
        """The run, or L{None}."""

    async def approval(run_id: str) -> Approval | None:
        """The approval of a gated run, or L{None}."""

    async def list(query: RunQuery) -> Page[Run]:
        """Runs.

        :raises InvalidRequest: a cursor that this list did not give.
        """

    async def approvals(query: RunQuery) -> Page[Approval]:
        """Approvals, oldest first; C{query.gated} is ignored."""

    async def denials(since: datetime) -> tuple[Approval, ...]:
        """The newest thousand that were denied after C{since}, oldest first."""

    async def unshown() -> tuple[str, ...]:
        """The ids of runs that wait for a decision and have a preview that is not C{shown}, oldest first."""

    async def unfinished() -> tuple[Run, ...]:
        """Every run that is not settled, oldest first: what a starting daemon takes up."""

    async def steps(run_id: str) -> tuple[StepRow, ...]:
        """Steps that ended, in order."""

    async def attempts(run_id: str) -> tuple[AttemptRow, ...]:
        """Attempts, in order."""

    async def room(charges: Sequence[Charge]) -> None:
        """Pass only where a transition with these C{charges} could be applied now; nothing is counted.

        :raises LimitExceeded: one of them is full.
        """

    async def most_used(limit: int) -> tuple[str, ...]:
        """The actions that were completed most often among the newest two thousand such runs, by how often and name."""

    async def count(query: RunQuery) -> int:
        """How many runs match; C{limit} and C{cursor} are ignored."""
