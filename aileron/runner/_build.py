"""Puts the room together."""

from __future__ import annotations

from collections.abc import Callable

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.interfaces import (
    IAudit,
    IBindings,
    IBrakes,
    ICatalogue,
    IConfigFile,
    IConnectors,
    IContents,
    IControl,
    IRuns,
    ITrust,
    IVault,
    IWatermarks,
)
from aileron.values import PendingLimits

from ._advance import Advance
from ._alarms import Alarms
from ._asking import Asking
from ._capping import Caps
from ._decisions import Decisions
from ._desk import Desk
from ._endings import Endings
from ._executor import Executor
from ._expiry import Expiry
from ._fetching import Fetching
from ._freshness import Freshness
from ._gate import Gate
from ._intake import Intake
from ._ledger import Ledger
from ._offering import Offerings
from ._pausing import Pauses
from ._pen import Pen
from ._permit import Permit
from ._plan import Planner
from ._previewing import Previewing
from ._recovery import Recovery
from ._retry import RetryPolicy
from ._runner import Runner
from ._switch import Switch
from ._tasks import Tasks
from ._turns import Turns
from ._undo import Undo
from ._waiters import Waiters


def _no_probe(point: str) -> None:
    """In production nothing happens at the points where a crash is tried."""


@frozen(kw_only=True)
class Collaborators:
    """All that a runner works with.

    :param config: the file that the operator is asked to trust as well, if there may be one.
    :param ids: a fresh ULID at each call.
    :param chance: uniform in [0, 1) at each call, for the jitter of retries.
    :param monotonic: seconds by a clock that nobody sets; L{None}: C{clock} is none that anybody does.
    :param probe: told of each point that a crash may hit.
    """

    runs: IRuns
    audit: IAudit
    contents: IContents
    watermarks: IWatermarks
    catalogue: ICatalogue
    connectors: IConnectors
    vault: IVault
    bindings: IBindings
    trust: ITrust
    control: IControl
    brakes: IBrakes
    clock: IReactorTime
    ids: Callable[[], str]
    chance: Callable[[], float]
    config: IConfigFile | None = None
    limits: PendingLimits = field(factory=PendingLimits)
    monotonic: Callable[[], float] | None = None
    probe: Callable[[str], None] = _no_probe


def build(with_: Collaborators) -> Runner:
    """A runner over its collaborators; call its C{start} before anybody is served."""
    pen, tasks = Pen(with_.clock, with_.ids), Tasks(with_.clock)
    ledger = Ledger.over(with_.runs, with_.clock)
    offerings = Offerings.over(with_.catalogue, with_.connectors, with_.trust, with_.vault, with_.config, with_.clock)
    planner = Planner(with_.connectors, with_.bindings)
    decisions = Decisions(with_.control, with_.audit, pen)
    asking = Asking(ledger, offerings, planner, decisions, pen)
    alarms = Alarms(with_.clock)
    undo = Undo(alarms, pen, with_.monotonic or with_.clock.seconds)
    pauses = Pauses(with_.brakes, with_.watermarks, with_.audit, pen, with_.clock)
    permit, retry, looks = Permit(with_.vault), RetryPolicy(with_.chance), Waiters[str, None](with_.clock)
    caps = Caps(with_.runs, with_.brakes, with_.audit, pen)
    executor = Executor(ledger, with_.audit, with_.bindings, pen, with_.clock, retry, pauses, caps, with_.probe)
    fetching = Fetching(offerings, asking, executor, with_.clock, pen, permit, pauses)
    previewing = Previewing(with_.runs, with_.audit, ledger, asking, fetching, tasks, looks)
    gate = Gate(ledger, offerings, asking, decisions, previewing, pen, undo, pauses)
    freshness = Freshness(with_.control, with_.trust, with_.audit, with_.watermarks, with_.runs, asking, pen)
    desk = _desk(with_, offerings, pen, freshness)
    expiry, turns = Expiry(alarms, gate.expire), Turns()
    approved = Advance(
        ledger, asking, gate, decisions, executor, tasks, pen, permit, expiry, undo, pauses, turns, with_.probe
    )
    runs, limits = with_.runs, with_.limits
    taken_with = (runs, with_.vault, ledger, offerings, planner, asking)
    return Runner(
        runs,
        ledger,
        offerings,
        asking,
        gate,
        decisions,
        freshness,
        desk,
        Intake(*taken_with, executor, tasks, pen, expiry, limits, permit, pauses, caps, previewing),
        Endings(runs, ledger, decisions, expiry, pen),
        approved,
        Recovery(runs, ledger, pen, approved, expiry, decisions),
        expiry,
        permit,
        turns,
        tasks,
        pauses,
        caps,
        Switch(runs, asking, approved, pauses, permit, expiry, ledger, turns, pen),
        previewing,
    )


def _desk(with_: Collaborators, offerings: Offerings, pen: Pen, freshness: Freshness) -> Desk:
    return Desk(
        with_.trust,
        with_.contents,
        with_.audit,
        with_.vault,
        with_.catalogue,
        with_.connectors,
        with_.config,
        offerings,
        pen,
        freshness.note,
    )
