"""The bases of shared tests. They run only when a test case mixes them in; the type checker sees them as test cases."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, TypeVar

from twisted.internet.defer import Deferred

from aileron.model.authority import PendingLimits
from aileron.model.interfaces.store import IAudit, IRuns
from aileron.model.queries import AuditQuery
from aileron.model.runs import Approval, Run, RunState

from ._examples import example_ask, example_run, example_transition

if TYPE_CHECKING:
    from twisted.trial.unittest import SynchronousTestCase

    MixedIn = SynchronousTestCase
else:
    MixedIn = object

T = TypeVar("T")
LIMITS = PendingLimits(per_session=2, per_home=3)


class StoreCase(MixedIn):
    """The base of tests of coroutines that finish without waiting."""

    def do(self, coroutine: Coroutine[Any, Any, T]) -> T:
        """Return the result of C{coroutine}, which must finish without waiting."""
        return self.successResultOf(Deferred.fromCoroutine(coroutine))

    def refused(self, coroutine: Coroutine[Any, Any, object], error: type[BaseException]) -> Any:
        """Return the error of type C{error} that C{coroutine} raises."""
        return self.failureResultOf(Deferred.fromCoroutine(coroutine), error).value


class VaultCase(MixedIn):
    """The base of tests with one vault, which may be locked or fail to write."""

    def lock(self) -> None:
        """Lock the vault that the test created first."""
        raise NotImplementedError

    def break_disk(self) -> None:
        """Make all further writes fail."""
        raise NotImplementedError


class RunsCase(StoreCase):
    """The base of tests of L{IRuns}."""

    runs: IRuns
    audit: IAudit

    def make_runs(self) -> tuple[IRuns, IAudit]:
        """Return an empty L{IRuns}, with its clock at the example's time, and the audit log that it writes to.

        All calls finish at once.
        """
        raise NotImplementedError

    def setUp(self) -> None:
        """Create the runs and the audit log."""
        super().setUp()
        self.runs, self.audit = self.make_runs()

    def recorded(self) -> list[str]:
        """Return the types of all recorded events, oldest first."""
        return [record.event.type for record in reversed(self.do(self.audit.list(AuditQuery())).items)]

    def received(self, run: Run | None = None) -> Run:
        """Return a run stored as C{received}, without an event."""
        return self.do(self.runs.receive(run or example_run(), (), LIMITS))[0]

    def pending(self, run_id: str = "run-1", **changes: Any) -> Run:
        """Return a run with a pending approval."""
        run = example_run(run_id, **changes)
        asked = example_transition(run, RunState.PENDING, "approval.requested", ask=example_ask())
        return self.do(self.runs.receive(run, (asked,), LIMITS))[0]

    def executing(self) -> Run:
        """Return an executing run."""
        run = self.received(example_run(gated=False))
        return self.do(self.runs.apply(example_transition(run, RunState.EXECUTING)))

    def approval(self, run_id: str = "run-1") -> Approval:
        """Return the approval of a gated run."""
        approval = self.do(self.runs.approval(run_id))
        if approval is None:
            self.fail("no approval")
        return approval
