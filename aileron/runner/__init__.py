"""The chokepoint: lifecycle, approvals, executor, retry, digest, policy.

Enter by L{build}; nothing else of this room is for others.
"""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.interfaces import IBindings, ICatalogue, IConnectors, IOverlay, IRuns, IVault
from aileron.values import PendingLimits

from ._executor import Executor
from ._gate import Gate
from ._ledger import Ledger
from ._offering import Offerings
from ._pen import Pen
from ._plan import Planner
from ._retry import RetryPolicy
from ._runner import Runner
from ._tasks import Tasks

__all__ = ["Collaborators", "Runner", "build"]


def _no_probe(point: str) -> None:
    """In production nothing happens at the points where a crash is tried."""


@frozen(kw_only=True)
class Collaborators:
    """All that a runner works with.

    :param ids: a fresh ULID at each call.
    :param chance: uniform in [0, 1) at each call, for the jitter of retries.
    :param probe: told of each point that a crash may hit.
    """

    runs: IRuns
    overlay: IOverlay
    catalogue: ICatalogue
    connectors: IConnectors
    vault: IVault
    bindings: IBindings
    clock: IReactorTime
    ids: Callable[[], str]
    chance: Callable[[], float]
    limits: PendingLimits = field(factory=PendingLimits)
    probe: Callable[[str], None] = _no_probe


def build(with_: Collaborators) -> Runner:
    """A runner over its collaborators; call its C{start} before anybody is served."""
    pen = Pen(with_.clock, with_.ids)
    ledger = Ledger.over(with_.runs, with_.clock)
    offerings = Offerings.over(with_.catalogue, with_.connectors, with_.overlay, with_.vault, pen, with_.clock)
    planner = Planner(with_.connectors, with_.bindings)
    gate = Gate(ledger, offerings, planner, pen)
    executor = Executor(ledger, with_.bindings, pen, with_.clock, RetryPolicy(with_.chance), with_.probe)
    tasks = Tasks(with_.clock)
    return Runner(with_.runs, with_.vault, ledger, offerings, planner, gate, executor, tasks, pen, with_.limits)
