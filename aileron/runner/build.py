"""Builds the runner of what the daemon gives it, and starts, follows and stops it."""

from __future__ import annotations

from collections.abc import Callable

from attrs import define, field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.model.authority import LoopLimits, PendingLimits
from aileron.model.interfaces.authority import IControl, IGrants, IOperatorLimits, ITrust
from aileron.model.interfaces.connectors import ICatalogue, IConfigFile, IConnectors
from aileron.model.interfaces.store import IAudit, IRuns, IWatermarks
from aileron.model.interfaces.vault import IBindings, IVault

from .approvals import (
    ApprovalGate,
    ApprovalRequests,
    Decisions,
    DecisionService,
    GrantCheck,
    PasskeyCheck,
    Previews,
    UndoWindow,
)
from .executor import Executor
from .grants import GrantMatcher, GrantService
from .limits import ArgumentNormalizer, Caps, Denials, EffectGate, Limits, LimitService, LoopBreaker, Pauses, RateLimits
from .offerings import Offerings, TrustedTexts, TrustService
from .outcomes import LateAnswers, RetryPolicy
from .plan import Planner
from .previews import PreviewReader
from .reconciler import Reconciler, ReconciliationService
from .recovery import Recovery, RollbackDetector
from .runs import EventFactory, RunRepository
from .scheduler import RunScheduler
from .submission import Proposals, Submission
from .tasks import KeyedLocks, ResultWaiters, Tasks, Timers


@define(eq=False)
class Runner:
    """The runner's services for calls, decisions and the operator's other orders.

    Built by L{build}.

    :ivar submission: what agents reach of it.
    :ivar decisions: where what waits is decided.
    :ivar trust: where the operator says what may be run.
    :ivar grants: where standing grants are seen and taken back.
    :ivar limits: where runs are paused, capped and forgiven.
    :ivar reconciliation: where what is in doubt is settled.
    """

    submission: Submission
    decisions: DecisionService
    trust: TrustService
    grants: GrantService
    limits: LimitService
    reconciliation: ReconciliationService
    _recovery: Recovery
    _offerings: Offerings

    async def start(self) -> None:
        """Recover runs left by the previous process.  Call before the sites start listening."""
        self._offerings.refresh()
        await self._recovery.start()

    def look(self) -> None:
        """Notice changed files and a changed vault; the daemon's timer calls it."""
        self._offerings.refresh()
        self._recovery.look()

    async def stop(self, seconds: float) -> None:
        """Start nothing more; let effects under way finish within C{seconds}, else record them as uncertain."""
        await self._recovery.stop(seconds)


def _no_probe(point: str) -> None:
    """Do nothing: only tests simulate crashes at the probed points."""


@frozen(kw_only=True)
class Collaborators:
    """The collaborators of a runner.

    :param settings: files that the operator is asked to trust as well.
    :param ids: a fresh ULID at each call.
    :param chance: uniform in [0, 1) at each call, for the jitter of retries.
    :param monotonic: seconds by a clock that nobody sets; L{None}: C{clock} is none that anybody does.
    :param probe: told of each point that a crash may hit.
    """

    runs: IRuns
    audit: IAudit
    contents: TrustedTexts
    watermarks: IWatermarks
    catalogue: ICatalogue
    connectors: IConnectors
    vault: IVault
    bindings: IBindings
    trust: ITrust
    control: IControl
    operator_limits: IOperatorLimits
    grants: IGrants
    passkeys: PasskeyCheck
    clock: IReactorTime
    ids: Callable[[], str]
    chance: Callable[[], float]
    settings: tuple[IConfigFile, ...] = ()
    limits: PendingLimits = field(factory=PendingLimits)
    loops: LoopLimits = field(factory=LoopLimits)
    monotonic: Callable[[], float] | None = None
    probe: Callable[[str], None] = _no_probe


def build(with_: Collaborators) -> Runner:
    """Build a runner.  Call its C{start} before the sites start listening."""
    return _Assembly(with_).compose()


class _Assembly:
    """Builds the parts of a runner in the order in which they need each other."""

    def __init__(self, given: Collaborators) -> None:
        self.given = given
        self.monotonic = given.monotonic or given.clock.seconds
        self.tasks, self.locks, self.timers = Tasks(given.clock), KeyedLocks(), Timers(given.clock)
        self.runs = RunRepository(
            table=given.runs,
            audit=given.audit,
            events=EventFactory(clock=given.clock, ids=given.ids),
            clock=given.clock,
            pending_limits=given.limits,
        )
        self.pauses = Pauses(
            operator_limits=given.operator_limits, watermarks=given.watermarks, runs=self.runs, clock=given.clock
        )
        self.rates = RateLimits(clock=given.clock)
        self.effects = EffectGate(vault=given.vault, bindings=given.bindings, pauses=self.pauses, rates=self.rates)
        normalizer = ArgumentNormalizer(catalogue=given.catalogue, connectors=given.connectors)
        breaker = LoopBreaker(runs=self.runs, tasks=self.tasks, limits=given.loops)
        self.caps = Caps(
            runs=self.runs, operator_limits=given.operator_limits, normalizer=normalizer, usual=given.loops
        )
        self.denials = Denials(runs=self.runs, breaker=breaker, normalizer=normalizer)
        self.limits = Limits(pauses=self.pauses, effects=self.effects, caps=self.caps, denials=self.denials)
        self.offerings = Offerings(
            catalogue=given.catalogue,
            connectors=given.connectors,
            trust=given.trust,
            vault=given.vault,
            settings=given.settings,
            clock=given.clock,
        )
        self.planner = Planner(offerings=self.offerings, connectors=given.connectors, bindings=given.bindings)
        self._build_approvals()
        self.scheduler = RunScheduler(
            runs=self.runs,
            gate=self.gate,
            requests=self.requests,
            executor=self.executor,
            tasks=self.tasks,
            effects=self.effects,
            rates=self.rates,
            undo=self.undo,
            locks=self.locks,
            probe=given.probe,
        )

    def _build_approvals(self) -> None:
        given = self.given
        self.undo = UndoWindow(timers=self.timers, events=self.runs.events, monotonic=self.monotonic)
        self.decisions = Decisions(control=given.control, audit=given.audit, events=self.runs.events, undo=self.undo)
        self.requests = ApprovalRequests(
            runs=self.runs, planner=self.planner, decisions=self.decisions, timers=self.timers
        )
        self.late_answers = LateAnswers(runs=self.runs, tasks=self.tasks)
        self.executor = Executor(
            runs=self.runs,
            bindings=given.bindings,
            clock=given.clock,
            retry=RetryPolicy(chance=given.chance),
            effects=self.effects,
            caps=self.caps,
            late_answers=self.late_answers,
            probe=given.probe,
        )
        self.reader = PreviewReader(
            runs=self.runs, planner=self.planner, read=self.executor.preview, effects=self.effects, clock=given.clock
        )
        self.previews = Previews(
            runs=self.runs,
            requests=self.requests,
            reader=self.reader,
            effects=self.effects,
            tasks=self.tasks,
            waiters=ResultWaiters(given.clock),
        )
        self.gate = ApprovalGate(
            runs=self.runs,
            planner=self.planner,
            requests=self.requests,
            decisions=self.decisions,
            reader=self.reader,
            pauses=self.pauses,
            grants=GrantCheck(grants=given.grants, events=self.runs.events),
            passkeys=given.passkeys,
        )

    def _build_reconciler(self) -> Reconciler:
        reconciler = Reconciler(
            runs=self.runs,
            planner=self.planner,
            decisions=self.decisions,
            look_up=self.executor.look,
            late_answers=self.late_answers,
            effects=self.effects,
            tasks=self.tasks,
            monotonic=self.monotonic,
        )
        self.runs.follow(reconciler.follow)
        return reconciler

    def _build_submission(self, proposals: Proposals) -> Submission:
        return Submission(
            runs=self.runs,
            offerings=self.offerings,
            planner=self.planner,
            proposals=proposals,
            executor=self.executor,
            tasks=self.tasks,
            limits=self.limits,
        )

    def _build_decisions(self, grants: GrantService) -> DecisionService:
        return DecisionService(
            runs=self.runs,
            gate=self.gate,
            requests=self.requests,
            previews=self.previews,
            reader=self.reader,
            issue=grants.approve,
            begin=self.scheduler.start,
            denials=self.denials,
            tasks=self.tasks,
            locks=self.locks,
            contents=self.given.contents,
        )

    def _build_trust(self, rollbacks: RollbackDetector) -> TrustService:
        return TrustService(
            trust=self.given.trust,
            contents=self.given.contents,
            vault=self.given.vault,
            offerings=self.offerings,
            runs=self.runs,
            note=rollbacks.note,
            tasks=self.tasks,
        )

    def _build_limits(self, reconciler: Reconciler) -> LimitService:
        return LimitService(
            runs=self.runs,
            pauses=self.pauses,
            effects=self.effects,
            caps=self.caps,
            denials=self.denials,
            ask_again=self.requests.ask_anew,
            begin=self.scheduler.start,
            stop_looking=reconciler.stop,
            tasks=self.tasks,
            locks=self.locks,
        )

    def _build_reconciliation(self, proposals: Proposals, reconciler: Reconciler) -> ReconciliationService:
        return ReconciliationService(
            runs=self.runs,
            offerings=self.offerings,
            planner=self.planner,
            requests=self.requests,
            keep=proposals.keep,
            decisions=self.decisions,
            reconciler=reconciler,
            tasks=self.tasks,
            locks=self.locks,
        )

    def _build_recovery(self, rollbacks: RollbackDetector, reconciler: Reconciler) -> Recovery:
        return Recovery(
            runs=self.runs,
            scheduler=self.scheduler,
            requests=self.requests,
            decisions=self.decisions,
            limits=self.limits,
            pauses=self.pauses,
            effects=self.effects,
            reconciler=reconciler,
            previews=self.previews,
            rollbacks=rollbacks,
            tasks=self.tasks,
        )

    def compose(self) -> Runner:
        """Build the services and return the runner."""
        given = self.given
        rollbacks = RollbackDetector(
            control=given.control,
            trust=given.trust,
            grants=given.grants,
            watermarks=given.watermarks,
            runs=self.runs,
            requests=self.requests,
        )
        matcher = GrantMatcher(
            grants=given.grants,
            runs=self.runs,
            gate=self.gate,
            planner=self.planner,
            effects=self.effects,
            locks=self.locks,
            remember=rollbacks.remember,
        )
        grants = GrantService(
            grants=given.grants,
            vault=given.vault,
            runs=self.runs,
            gate=self.gate,
            planner=self.planner,
            matcher=matcher,
            note=rollbacks.note,
            tasks=self.tasks,
        )
        proposals = Proposals(
            runs=self.runs,
            requests=self.requests,
            previews=self.previews,
            matcher=matcher,
            scheduler=self.scheduler,
            decisions=self.decisions,
            locks=self.locks,
        )
        reconciler = self._build_reconciler()
        return Runner(
            submission=self._build_submission(proposals),
            decisions=self._build_decisions(grants),
            trust=self._build_trust(rollbacks),
            grants=grants,
            limits=self._build_limits(reconciler),
            reconciliation=self._build_reconciliation(proposals, reconciler),
            recovery=self._build_recovery(rollbacks, reconciler),
            offerings=self.offerings,
        )
