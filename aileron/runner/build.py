"""Builds the runner from the objects that the daemon provides."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence

from attrs import field, frozen
from twisted.internet.interfaces import IReactorTime

from aileron.model.authority import LoopLimits, PendingLimits
from aileron.model.interfaces.authority import IControl, IGrants, IOperatorLimits, ITrust
from aileron.model.interfaces.connectors import ICatalogue, IConfigFile, IConnectors
from aileron.model.interfaces.store import IAudit, IRuns, IWatermarks
from aileron.model.interfaces.vault import IBindings, IVault
from aileron.model.people import Owner
from aileron.model.runs import Run
from aileron.model.traces import TraceSource

from .approval_requests import ApprovalRequests, Previews
from .approvals import ApprovalGate, SignatureCheck
from .call_digests import ArgumentNormalizer
from .caps import Caps
from .decision_service import DecisionService
from .decisions import Decisions, GrantCheck, UndoWindow
from .denials import FORGIVEN, Denials
from .effect_gate import EffectGate
from .executor import Executor
from .grants import GrantMatcher, GrantService
from .limits import Limits, LimitService
from .loops import LoopBreaker, SharedCallCounts
from .offerings import Offerings, TrustedTexts, TrustService
from .outcomes import LateAnswers, RetryPolicy
from .pauses import PAUSED_ROW, Pauses
from .plan import Planner
from .previews import PreviewReader
from .rate_limits import RateLimits, SharedRateLimits
from .reconciler import Reconciler, ReconciliationService
from .recovery import Recovery, RollbackDetector
from .runs import EventFactory, RunRepository
from .scheduler import RunScheduler
from .session_filters import SessionFilters
from .shared_pauses import SharedPauses
from .submission import Proposals, Submission
from .tasks import KeyedLocks, ResultWaiters, Tasks, Timers
from .tool_reads import ToolReads
from .votes import LoadRules, Votes, find_no_rules


@frozen(eq=False)
class Runner:
    """The runner: its services for agents and the operator, and its start and stop. Built by L{build}.

    :ivar submission: accepts the calls of agents.
    :ivar decisions: shows approvals and records decisions.
    :ivar trust: records which files the operator trusts.
    :ivar grants: shows and revokes standing grants.
    :ivar limits: pauses and resumes runs, stores caps and lifts denials.
    :ivar reconciliation: settles uncertain runs.
    :ivar tool_reads: sends reads of agents' own tools.
    :ivar traces: the trace context of requests.
    """

    submission: Submission
    decisions: DecisionService
    trust: TrustService
    grants: GrantService
    limits: LimitService
    reconciliation: ReconciliationService
    tool_reads: ToolReads
    traces: TraceSource
    _recovery: Recovery
    _offerings: Offerings
    _recorded: RecordedElsewhere

    async def start(self) -> None:
        """Recover the runs left by the previous process. Call before the sites start listening.

        :raises StoreUnavailable: if the database cannot be read.
        """
        self._offerings.refresh()
        await self._recovery.start()

    def check_changes(self) -> None:
        """Read changed files, resume waiting runs, and retry failed writes. The daemon's timer calls this.

        Runs are resumed if the vault was unlocked or a binding changed.
        """
        self._offerings.refresh()
        self._recovery.resume_and_retry()

    async def take_over(self, runs: Sequence[Run]) -> None:
        """Recover unfinished runs of daemons that are gone. Effects that had begun become C{unknown}.

        :raises StoreUnavailable: if the database fails. Call again with the runs that are still unfinished.
        """
        await self._recovery.take_over(runs)

    async def load_recorded(self, types: Collection[str] | None, runs: Collection[str] | None) -> None:
        """Load what another daemon recorded: pauses, denials and ends of runs.

        :param types: the types of the recorded events, or None for any.
        :param runs: the runs that the events are about, or None for any.
        :raises StoreUnavailable: if the database cannot be read.
        """
        await self._recorded.load(types, runs)

    def known_pauses(self) -> tuple[str, str | None]:
        """Return the name of the row that stores the pauses, and its text as last read. Safe in any thread."""
        return self._recorded.known_pauses()

    async def stop(self, seconds: float) -> None:
        """Start no more runs and wait up to C{seconds} for running ones. Effects that take longer become uncertain."""
        await self._recovery.stop(seconds)

    async def drain(self, seconds: float, hand_over: Callable[[Collection[str]], Awaitable[None]]) -> None:
        """Stop as one of several daemons, which take the runs that have not begun: see L{Recovery.drain}.

        Until the sites are closed, callers get outcomes and can read and decide.
        """
        await self._recovery.drain(seconds, hand_over)


@frozen(eq=False)
class RecordedElsewhere:
    """Loads what other daemons recorded. Without other daemons, its methods are never called."""

    _runs: RunRepository
    _pauses: Pauses
    _denials: Denials

    async def load(self, types: Collection[str] | None, runs: Collection[str] | None) -> None:
        """Load what the events are about: see L{Runner.load_recorded}."""
        if isinstance(self._pauses, SharedPauses) and _concerns(types, "pause.begun", "pause.ended"):
            await self._pauses.catch_up()
        if _concerns(types, "approval.denied", FORGIVEN):
            await self._denials.catch_up()
        await self._runs.catch_up(runs)

    def known_pauses(self) -> tuple[str, str | None]:
        """Return the name and the last known text of the row that stores the pauses."""
        return PAUSED_ROW, self._pauses.row if isinstance(self._pauses, SharedPauses) else None


def _concerns(types: Collection[str] | None, *wanted: str) -> bool:
    return types is None or any(each in types for each in wanted)


def _no_probe(point: str) -> None:
    """Do nothing. Tests pass another function, which simulates a crash at the named point."""


@frozen(kw_only=True)
class OtherDaemons:
    """The objects by which a runner shares a database with other daemons.

    :ivar refresh_vault: reads what other daemons changed in the vault.
    :ivar rate_limits: stores rate limits for all of them.
    :ivar call_counts: counts the equal calls at all of them.
    """

    refresh_vault: Callable[[], object]
    rate_limits: SharedRateLimits
    call_counts: SharedCallCounts


@frozen(kw_only=True)
class Collaborators:
    """The objects that a runner needs from the daemon.

    :param settings: configuration files that the operator must trust as well.
    :param ids: returns a new ULID.
    :param chance: returns a random number, uniform in [0, 1), for the jitter of retries.
    :param monotonic: returns the seconds of a monotonic clock. If it is None, C{clock} is used.
    :param may_send: returns False if another daemon may have taken the runs that this one is executing.
    :param others: the objects for sharing a database with other daemons. None if no others use it.
    :param accounts: returns the digest of each account in force, by the account's ID.
    :param approver_rules: returns the operator's rules about who approves.
    :param probe: called with the name of each point at which tests simulate a crash.
    :param is_removed: returns whether an owner's account was removed. By default there are no accounts.
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
    approvers: SignatureCheck
    clock: IReactorTime
    ids: Callable[[], str]
    chance: Callable[[], float]
    settings: tuple[IConfigFile, ...] = ()
    limits: PendingLimits = field(factory=PendingLimits)
    loops: LoopLimits = field(factory=LoopLimits)
    monotonic: Callable[[], float] | None = None
    probe: Callable[[str], None] = _no_probe
    others: OtherDaemons | None = None
    may_send: Callable[[], bool] = lambda: True
    is_removed: Callable[[Owner], bool] = lambda _: True
    accounts: Callable[[], Mapping[str, str]] = dict
    approver_rules: LoadRules = find_no_rules


def build(with_: Collaborators) -> Runner:
    """Return a new runner. Call its C{start} before the sites start listening."""
    return _Assembly(with_).compose()


class _Assembly:
    """Builds the parts of one runner in the order of their dependencies."""

    def __init__(self, given: Collaborators) -> None:
        self.given, others = given, given.others
        self.monotonic = given.monotonic or given.clock.seconds
        self.filters = SessionFilters()
        self.tasks, self.locks, self.timers = Tasks(given.clock), KeyedLocks(), Timers(given.clock)
        self.runs = RunRepository(
            table=given.runs,
            audit=given.audit,
            events=EventFactory(clock=given.clock, ids=given.ids),
            clock=given.clock,
            pending_limits=given.limits,
            shared=others is not None,
        )
        self.pauses = (Pauses if others is None else SharedPauses)(
            operator_limits=given.operator_limits, watermarks=given.watermarks, runs=self.runs, clock=given.clock
        )
        self.rates = RateLimits(
            clock=given.clock, tasks=self.tasks, shared=None if others is None else others.rate_limits
        )
        self.effects = EffectGate(given.vault, given.bindings, self.pauses, self.rates, given.may_send)
        self._build_refusals()
        self.offerings = Offerings(
            catalogue=given.catalogue,
            connectors=given.connectors,
            trust=given.trust,
            vault=given.vault,
            settings=given.settings,
            clock=given.clock,
        )
        self.planner = Planner(self.offerings, given.connectors, given.bindings, given.is_removed)
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

    def _build_refusals(self) -> None:
        given, others = self.given, self.given.others
        normalizer = ArgumentNormalizer(catalogue=given.catalogue, connectors=given.connectors)
        counts = None if others is None else others.call_counts
        breaker = LoopBreaker(runs=self.runs, tasks=self.tasks, limits=given.loops, shared=counts)
        self.caps = Caps(
            runs=self.runs, operator_limits=given.operator_limits, normalizer=normalizer, usual=given.loops
        )
        self.denials = Denials(runs=self.runs, breaker=breaker, normalizer=normalizer)
        self.limits = Limits(
            pauses=self.pauses,
            effects=self.effects,
            caps=self.caps,
            denials=self.denials,
            breaker=breaker,
            is_shared=others is not None,
        )

    def _build_approvals(self) -> None:
        given = self.given
        self.undo = UndoWindow(timers=self.timers, events=self.runs.events, monotonic=self.monotonic)
        self.decisions = Decisions(
            control=given.control,
            audit=given.audit,
            events=self.runs.events,
            undo=self.undo,
            grants=GrantCheck(grants=given.grants, events=self.runs.events),
        )
        self.votes = Votes(
            self.decisions, self.offerings, given.accounts, given.approver_rules, given.approvers.find_objection
        )
        self.requests = ApprovalRequests(
            runs=self.runs, planner=self.planner, decisions=self.decisions, votes=self.votes, timers=self.timers
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
            approvers=given.approvers,
            votes=self.votes,
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
            filters=self.filters,
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
            votes=self.votes,
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

    def _build_tool_reads(self) -> ToolReads:
        return ToolReads(
            runs=self.runs,
            offerings=self.offerings,
            planner=self.planner,
            effects=self.effects,
            send=self.executor.open_read,
            filters=self.filters,
        )

    def _build_rollbacks(self) -> RollbackDetector:
        given = self.given
        return RollbackDetector(
            control=given.control,
            trust=given.trust,
            grants=given.grants,
            watermarks=given.watermarks,
            runs=self.runs,
            requests=self.requests,
            refresh=(lambda: None) if given.others is None else given.others.refresh_vault,
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
        """Build the remaining services and return the runner."""
        given = self.given
        rollbacks = self._build_rollbacks()
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
            tool_reads=self._build_tool_reads(),
            traces=self.executor.traces,
            recovery=self._build_recovery(rollbacks, reconciler),
            offerings=self.offerings,
            recorded=RecordedElsewhere(self.runs, self.pauses, self.denials),
        )
