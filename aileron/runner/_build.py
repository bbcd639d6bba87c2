"""Builds a runner of what the daemon gives it."""

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
    IGrants,
    IPasskeys,
    IRuns,
    ITrust,
    IVault,
    IWatermarks,
)
from aileron.runner._decisions import ApprovalEditor, DecisionService
from aileron.runner._executor import Executor
from aileron.runner._limits import LimitService
from aileron.runner._reconciliation import ReconciliationService
from aileron.runner._rollback import RollbackDetector
from aileron.runner._runner import Recovery, Runner
from aileron.runner._scheduler import RunScheduler
from aileron.runner._submission import Proposals, Submission
from aileron.runner._trust import TrustService
from aileron.runner.decisions import Decisions, UndoWindow
from aileron.runner.denials import Denials, LoopBreaker
from aileron.runner.gate import ApprovalGate
from aileron.runner.grant_check import GrantCheck
from aileron.runner.grants import GrantMatcher, GrantService
from aileron.runner.limits import Caps, Limits
from aileron.runner.offerings import Offerings
from aileron.runner.outcomes import LateAnswers, OutcomeRecorder, RetryPolicy
from aileron.runner.pauses import EffectGate, Pauses
from aileron.runner.plan import Planner
from aileron.runner.previews import PreviewFetcher, Previews
from aileron.runner.reconciler import Reconciler, UncertainEffects
from aileron.runner.requests import ApprovalRequests, Expiry
from aileron.runner.runs import EventFactory, RunRepository
from aileron.runner.scheduling import KeyedLocks, ResultWaiters, Tasks, Timers
from aileron.values import LoopLimits, PendingLimits


def _no_probe(point: str) -> None:
    """In production nothing happens at the points where a crash is tried."""


@frozen(kw_only=True)
class Collaborators:
    """Holds what a runner is built of.

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
    """Build a runner over its collaborators; call its C{start} before anybody is served."""
    return _Assembly(with_).compose(with_)


class _Assembly:
    """Makes each part of a runner, in the order in which they need each other."""

    def __init__(self, given: Collaborators) -> None:
        self.events = EventFactory(clock=given.clock, ids=given.ids)
        self.runs = RunRepository(
            table=given.runs,
            audit=given.audit,
            events=self.events,
            clock=given.clock,
            pending_limits=given.limits,
        )
        self.tasks, self.locks = Tasks(clock=given.clock), KeyedLocks()
        self.monotonic = given.monotonic or given.clock.seconds
        self.offerings = Offerings.over(
            given.catalogue, given.connectors, given.trust, given.vault, given.config, given.clock
        )
        self.planner = Planner(offerings=self.offerings, connectors=given.connectors, bindings=given.bindings)
        self.pauses = Pauses(
            brakes=given.brakes,
            watermarks=given.watermarks,
            audit=given.audit,
            events=self.events,
            clock=given.clock,
        )
        self.effects = EffectGate(vault=given.vault, pauses=self.pauses)
        self.caps = Caps(runs=given.runs, brakes=given.brakes, audit=given.audit, events=self.events, usual=given.loops)
        self.decisions = Decisions(control=given.control, audit=given.audit, events=self.events)
        self.timers = Timers(clock=given.clock)
        self.expiry = Expiry(timers=self.timers, runs=self.runs)
        self.requests = ApprovalRequests(
            runs=self.runs, planner=self.planner, decisions=self.decisions, expiry=self.expiry
        )
        self.grant_check = GrantCheck(grants=given.grants, events=self.events)
        self.recorder = OutcomeRecorder(runs=self.runs)
        self.late_answers = LateAnswers(recorder=self.recorder, tasks=self.tasks, events=self.events)

    def _build_gate(self, given: Collaborators) -> None:
        breaker = LoopBreaker(audit=given.audit, events=self.events, tasks=self.tasks, rules=given.loops)
        denials = Denials(runs=given.runs, audit=given.audit, events=self.events, breaker=breaker)
        self.limits = Limits(effects=self.effects, caps=self.caps, denials=denials)
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
        fetcher = PreviewFetcher(
            requests=self.requests,
            read=self.executor.preview,
            clock=given.clock,
            events=self.events,
            effects=self.effects,
        )
        self.previews = Previews(
            runs=self.runs,
            requests=self.requests,
            fetcher=fetcher,
            tasks=self.tasks,
            waiters=ResultWaiters(clock=given.clock),
        )
        self.gate = ApprovalGate(
            runs=self.runs,
            requests=self.requests,
            decisions=self.decisions,
            previews=self.previews,
            undo=UndoWindow(timers=self.timers, events=self.events, monotonic=self.monotonic),
            effects=self.effects,
            grants=self.grant_check,
            passkeys=given.passkeys,
        )

    def _build_effects(self, given: Collaborators) -> None:
        self.rollbacks = RollbackDetector(
            control=given.control,
            trust=given.trust,
            grants=given.grants,
            watermarks=given.watermarks,
            runs=self.runs,
            requests=self.requests,
        )
        self.scheduler = RunScheduler(
            runs=self.runs,
            requests=self.requests,
            gate=self.gate,
            executor=self.executor,
            tasks=self.tasks,
            effects=self.effects,
            locks=self.locks,
            probe=given.probe,
        )
        uncertain = UncertainEffects(runs=self.runs, requests=self.requests, decisions=self.decisions)
        self.reconciler = Reconciler(
            runs=self.runs,
            uncertain=uncertain,
            look_up=self.executor.look,
            recorder=self.recorder,
            late_answers=self.late_answers,
            effects=self.effects,
            tasks=self.tasks,
            monotonic=self.monotonic,
        )
        self.runs.follow(self.reconciler.follow)

    def _build_grants(self, given: Collaborators) -> None:
        self.matcher = GrantMatcher(
            grants=given.grants,
            runs=self.runs,
            requests=self.requests,
            gate=self.gate,
            effects=self.effects,
            locks=self.locks,
            remember=self.rollbacks.remember,
        )
        self.grants = GrantService(
            grants=given.grants,
            vault=given.vault,
            runs=self.runs,
            gate=self.gate,
            matcher=self.matcher,
            requests=self.requests,
            note=self.rollbacks.note,
            tasks=self.tasks,
        )
        self.proposals = Proposals(
            runs=self.runs,
            requests=self.requests,
            matcher=self.matcher,
            scheduler=self.scheduler,
            expiry=self.expiry,
            previews=self.previews,
            decisions=self.decisions,
            locks=self.locks,
        )

    def _build_services(self, given: Collaborators) -> None:
        self.trust = TrustService(
            trust=given.trust,
            contents=given.contents,
            vault=given.vault,
            offerings=self.offerings,
            runs=self.runs,
            note=self.rollbacks.note,
            tasks=self.tasks,
        )
        editor = ApprovalEditor(
            runs=self.runs, requests=self.requests, gate=self.gate, previews=self.previews, locks=self.locks
        )
        self.decision_service = DecisionService(
            runs=self.runs,
            gate=self.gate,
            editor=editor,
            grants=self.grants,
            denials=self.limits.denials,
            scheduler=self.scheduler,
            tasks=self.tasks,
            locks=self.locks,
        )
        self.limit_service = LimitService(
            runs=self.runs,
            limits=self.limits,
            requests=self.requests,
            scheduler=self.scheduler,
            reconciler=self.reconciler,
            tasks=self.tasks,
            locks=self.locks,
        )
        self.reconciliation = ReconciliationService(
            runs=self.runs,
            planner=self.planner,
            put_up=self.proposals.put_up,
            decisions=self.decisions,
            recorder=self.recorder,
            reconciler=self.reconciler,
            tasks=self.tasks,
            locks=self.locks,
        )

    def compose(self, given: Collaborators) -> Runner:
        """Make the rest, and the runner of it."""
        self._build_gate(given)
        self._build_effects(given)
        self._build_grants(given)
        self._build_services(given)
        submission = Submission(
            runs=self.runs,
            planner=self.planner,
            proposals=self.proposals,
            executor=self.executor,
            tasks=self.tasks,
            limits=self.limits,
        )
        recovery = Recovery(
            runs=self.runs,
            scheduler=self.scheduler,
            expiry=self.expiry,
            decisions=self.decisions,
            limits=self.limits,
            reconciler=self.reconciler,
            previews=self.previews,
            rollbacks=self.rollbacks,
        )
        return Runner(
            submission=submission,
            decisions=self.decision_service,
            trust=self.trust,
            grants=self.grants,
            limits=self.limit_service,
            reconciliation=self.reconciliation,
            recovery=recovery,
            tasks=self.tasks,
        )
