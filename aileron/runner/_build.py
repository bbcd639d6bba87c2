"""Puts the room together."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property

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
    IGrants,
    IPasskeys,
    IRuns,
    ITrust,
    IVault,
    IWatermarks,
)
from aileron.runner.approval.deadlines import Expiry, UndoWindow
from aileron.runner.approval.decisions import Decisions
from aileron.runner.approval.editing import ApprovalEditor
from aileron.runner.approval.gate import ApprovalGate
from aileron.runner.approval.precedents import Recall
from aileron.runner.approval.previews import PreviewFetcher, Previews
from aileron.runner.approval.requests import ApprovalRequests
from aileron.runner.grants.check import GrantCheck
from aileron.runner.grants.matcher import GrantMatcher
from aileron.runner.grants.service import GrantService
from aileron.runner.limits.admission import EffectGate, Limits
from aileron.runner.limits.caps import Caps
from aileron.runner.limits.denials import Denials
from aileron.runner.limits.loop_breaker import LoopBreaker
from aileron.runner.limits.pauses import Pauses
from aileron.runner.reconciliation.late_answers import LateAnswers
from aileron.runner.reconciliation.reconciler import Reconciler, UncertainEffects
from aileron.runner.reconciliation.recorder import OutcomeRecorder
from aileron.runner.reconciliation.rerun import Rerun
from aileron.runner.runs.offerings import Offerings
from aileron.runner.runs.outcomes import RetryPolicy
from aileron.runner.runs.plan import Planner
from aileron.runner.runs.repository import RunRepository
from aileron.runner.runs.transitions import EventFactory
from aileron.runner.scheduling.tasks import Tasks, Timers
from aileron.runner.scheduling.waiters import KeyedLocks, ResultWaiters
from aileron.values import LoopLimits, PendingLimits

from ._executor import Executor
from ._pausing import PauseService
from ._recovery import Recovery, RollbackDetector
from ._runner import Runner
from ._scheduler import RunScheduler
from ._submission import Submission
from ._termination import RunTermination
from ._trust import TrustService


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
    grants: IGrants
    passkeys: IPasskeys
    clock: IReactorTime
    ids: Callable[[], str]
    chance: Callable[[], float]
    config: IConfigFile | None = None
    limits: PendingLimits = field(factory=PendingLimits)
    loops: LoopLimits = field(factory=LoopLimits)
    monotonic: Callable[[], float] | None = None
    probe: Callable[[str], None] = _no_probe


def build(with_: Collaborators) -> Runner:
    """A runner over its collaborators; call its C{start} before anybody is served."""
    room = _Room(with_)
    return Runner(
        with_.runs,
        room.ledger,
        room.offerings,
        room.asking,
        room.gate,
        room.decisions,
        room.freshness,
        room.desk,
        room.intake,
        room.endings,
        room.approved,
        room.recovery,
        room.expiry,
        room.permit,
        room.turns,
        room.tasks,
        room.brakes,
        room.switch,
        room.previewing,
        room.grants,
        room.reconciling,
        room.again,
        room.editing,
        Recall(with_.runs),
    )


class _Room:
    """The parts of the room, each made once: when the first that needs it is made."""

    def __init__(self, with_: Collaborators) -> None:
        self._with = with_
        self.pen = EventFactory(with_.clock, with_.ids)
        self.tasks = Tasks(with_.clock)
        self.ledger = RunRepository.over(with_.runs, with_.clock)
        self.offerings = Offerings.over(
            with_.catalogue, with_.connectors, with_.trust, with_.vault, with_.config, with_.clock
        )
        self.planner = Planner(with_.connectors, with_.bindings)
        self.decisions = Decisions(with_.control, with_.audit, self.pen)
        self.alarms = Timers(with_.clock)
        self.undo = UndoWindow(self.alarms, self.pen, with_.monotonic or with_.clock.seconds)
        self.looks = ResultWaiters[str, None](with_.clock)
        self.permit = EffectGate(with_.vault)
        self.turns = KeyedLocks()
        self.pauses = Pauses(with_.brakes, with_.watermarks, with_.audit, self.pen, with_.clock)
        self.caps = Caps(with_.runs, with_.brakes, with_.audit, self.pen, with_.loops)
        denials = Denials(
            with_.runs, with_.audit, self.pen, LoopBreaker(with_.audit, self.pen, self.tasks, with_.loops)
        )
        self.brakes = Limits(self.pauses, self.caps, denials)
        self.findings = OutcomeRecorder(self.ledger, with_.audit, self.pen)
        self.listening = LateAnswers(self.findings, self.tasks, self.pen)
        self.grant_check = GrantCheck(with_.grants, self.pen)

    @cached_property
    def asking(self) -> ApprovalRequests:
        return ApprovalRequests(self.ledger, self.offerings, self.planner, self.decisions, self.pen)

    @cached_property
    def gate(self) -> ApprovalGate:
        return ApprovalGate(
            self.ledger,
            self.offerings,
            self.asking,
            self.decisions,
            self.previewing,
            self.pen,
            self.undo,
            self.pauses,
            self.grant_check,
            self._with.passkeys,
        )

    @cached_property
    def freshness(self) -> RollbackDetector:
        given = self._with
        return RollbackDetector(
            given.control,
            given.trust,
            given.grants,
            given.audit,
            given.watermarks,
            given.runs,
            self.asking,
            self.pen,
        )

    @cached_property
    def desk(self) -> TrustService:
        given = self._with
        return TrustService(
            given.trust,
            given.contents,
            given.audit,
            given.vault,
            given.catalogue,
            given.connectors,
            given.config,
            self.offerings,
            self.pen,
            self.freshness.note,
        )

    @cached_property
    def executor(self) -> Executor:
        given = self._with
        retry = RetryPolicy(given.chance)
        return Executor(
            self.ledger,
            given.audit,
            given.bindings,
            self.pen,
            given.clock,
            retry,
            self.pauses,
            self.caps,
            self.listening,
            given.probe,
        )

    @cached_property
    def doubts(self) -> UncertainEffects:
        given = self._with
        return UncertainEffects(given.runs, given.audit, self.offerings, self.asking, self.decisions)

    @cached_property
    def reconciling(self) -> Reconciler:
        given = self._with
        found = Reconciler(
            given.runs,
            self.ledger,
            self.doubts,
            self.executor,
            self.findings,
            self.listening,
            Timers(given.clock),
            self.permit,
            self.pauses,
            self.tasks,
            self.pen,
            given.monotonic or given.clock.seconds,
        )
        self.ledger.follow(found.follow)
        return found

    @cached_property
    def again(self) -> Rerun:
        runs = self._with.runs
        return Rerun(runs, self.ledger, self.offerings, self.planner, self.intake, self.findings, self.pen)

    @cached_property
    def fetching(self) -> PreviewFetcher:
        clock = self._with.clock
        return PreviewFetcher(self.offerings, self.asking, self.executor, clock, self.pen, self.permit, self.pauses)

    @cached_property
    def previewing(self) -> Previews:
        given = self._with
        return Previews(given.runs, given.audit, self.ledger, self.asking, self.fetching, self.tasks, self.looks)

    @cached_property
    def expiry(self) -> Expiry:
        return Expiry(self.alarms, self.gate.expire)

    @cached_property
    def approved(self) -> RunScheduler:
        return RunScheduler(
            self.ledger,
            self.asking,
            self.gate,
            self.decisions,
            self.executor,
            self.tasks,
            self.pen,
            self.permit,
            self.expiry,
            self.undo,
            self.pauses,
            self.turns,
            self.grant_check,
            self._with.probe,
        )

    @cached_property
    def granting(self) -> GrantMatcher:
        given = self._with
        return GrantMatcher(
            given.grants,
            given.runs,
            given.audit,
            self.ledger,
            self.asking,
            self.gate,
            self.permit,
            self.turns,
            self.pen,
            self.freshness.remember,
        )

    @cached_property
    def grants(self) -> GrantService:
        given = self._with
        return GrantService(
            given.grants,
            given.vault,
            given.audit,
            self.gate,
            self.granting,
            self.asking,
            self.offerings,
            self.planner,
            self.pen,
            self.freshness.note,
        )

    @cached_property
    def intake(self) -> Submission:
        return Submission(
            self._with.runs,
            self._with.vault,
            self.ledger,
            self.offerings,
            self.planner,
            self.asking,
            self.executor,
            self.tasks,
            self.pen,
            self.expiry,
            self._with.limits,
            self.permit,
            self.brakes,
            self.previewing,
            self.granting,
            self.approved,
        )

    @cached_property
    def editing(self) -> ApprovalEditor:
        return ApprovalEditor(
            self.ledger, self.offerings, self.asking, self.gate, self.previewing, self.turns, self.pen
        )

    @cached_property
    def endings(self) -> RunTermination:
        return RunTermination(self._with.runs, self.ledger, self.decisions, self.expiry, self.pen)

    @cached_property
    def recovery(self) -> Recovery:
        return Recovery(self._with.runs, self.ledger, self.pen, self.approved, self.expiry, self.decisions)

    @cached_property
    def switch(self) -> PauseService:
        return PauseService(
            self._with.runs,
            self.asking,
            self.approved,
            self.pauses,
            self.permit,
            self.expiry,
            self.ledger,
            self.turns,
            self.pen,
        )
