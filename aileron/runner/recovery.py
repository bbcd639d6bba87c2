"""Recovers runs of the previous process, after checking that neither the vault nor the audit log is an older copy."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress

from attrs import define, evolve, field, frozen
from twisted.logger import Logger

from aileron.model.errors import ApprovalStale, StateConflict, StoreUnavailable
from aileron.model.faults import Fault
from aileron.model.interfaces.authority import IControl, IGrants, ITrust
from aileron.model.interfaces.store import IWatermarks
from aileron.model.queries import RunQuery
from aileron.model.runs import AWAITING, NOT_BEGUN, Run, RunState

from .approval_requests import ApprovalRequests, Previews
from .decisions import UNUSABLE, Decisions
from .effect_gate import EffectGate
from .limits import Limits
from .pauses import Pauses
from .reconciler import Reconciler
from .runs import RunRepository, transition
from .scheduler import RunScheduler
from .tasks import Tasks

_log = Logger()
_CURRENT = "vault"  # the name of the watermark that holds the vault's id
_OLDER = "older"
_PENDING = RunQuery(states=(RunState.PENDING,), limit=1000)
_WAITING = RunQuery(states=AWAITING, limit=1000, oldest_first=True)
_CRASHED = Fault(
    "outcome_unknown",
    "The daemon stopped during this request, so it may have happened. Check the service, then settle the run.",
)
_NOT_ASKED = "The run says that it needed no approval, but there is one."


@frozen
class _Reached:
    """The progress of a vault: its revision, and the newest audit record that it stores.

    :ivar vault: the vault's id.
    :ivar sequence: the sequence of that record, or 0 if there is none.
    """

    vault: str
    revision: int
    sequence: int

    @property
    def name(self) -> str:
        """The name under which the database stores how far this vault had progressed."""
        return f"{_CURRENT} {self.vault}"

    def written(self) -> str:
        """Return the progress as text, to be stored in the database."""
        return f"{self.revision} {self.sequence}"

    def behind(self, watermark: str | None) -> bool:
        """Return whether this progress is behind the stored one, which shows that the vault is an older copy.

        :param watermark: the stored progress as text. If it is not valid, return True. None if none is stored.
        """
        if watermark is None:
            return False
        try:
            revision, sequence = map(int, watermark.split(" "))
        except ValueError:
            return True
        return self.revision < revision or self.sequence < sequence


def _reached_by(control: IControl) -> _Reached | None:
    try:
        sequence, _ = control.sealed() or (0, "")
        return _Reached(*control.revision(), sequence)
    except UNUSABLE:
        return None


async def remember_older(control: IControl, watermarks: IWatermarks, refresh: Callable[[], object]) -> None:
    """Store that the vault is older than its watermark, so that L{RollbackDetector.check} finds it after later writes.

    Call before anything is written to the vault, which makes its file newer again.

    :param refresh: reads what other daemons changed in the vault.
    :raises StoreUnavailable: if the watermarks cannot be read or written.
    """
    remembered = await watermarks.all()
    refresh()
    reached = _reached_by(control)
    if reached is not None and reached.behind(remembered.get(reached.name)):
        await watermarks.put(reached.name, _OLDER)  # no number, so that L{_Reached.behind} is true


@define(eq=False)
class RollbackDetector:
    """Detects a vault or an audit log that was replaced by an older one, and voids the approvals in it.

    :param refresh: reads what other daemons changed in the vault.
    :ivar compared: whether L{check} has completed since the daemon started.
    """

    _control: IControl
    _trust: ITrust
    _grants: IGrants
    _watermarks: IWatermarks
    _runs: RunRepository
    _requests: ApprovalRequests
    _refresh: Callable[[], object] = lambda: None
    compared: bool = field(default=False, init=False)
    _noted: _Reached | None = field(default=None, init=False)

    async def check(self) -> None:
        """Compare the vault with the audit log. If one of them is older, record that and request approvals again.

        If the vault cannot be used now, do nothing. If the vault took the place of another one, record that.

        :raises StoreUnavailable: if the audit log or the vault cannot be read or written.
        """
        remembered = await self._watermarks.all()
        # guard of several daemons: a vault that another daemon has just changed is not taken for an older one
        #    -> runner.test_several.StartTests.test_changed_meanwhile
        self._refresh()
        reached = _reached_by(self._control)
        if reached is None:
            return
        current = remembered.get(_CURRENT, reached.vault)
        returned = current != reached.vault and reached.name in remembered
        # guard against attack: the database detects an older vault -> test_rollback.VaultTests.test_no_trust,
        #    instead old_vault = False
        old_vault = returned or reached.behind(remembered.get(reached.name))
        old_record = not await self._in_record()
        if old_vault or old_record:
            await self._distrust(reached, old_vault, old_record)
        elif current != reached.vault:
            await self._runs.record(self._runs.event_of_home("vault.replaced", before=current, now=reached.vault))
        self.compared = True
        await self.note()

    async def note(self) -> None:
        """Store the vault's progress if it has changed. A failed write is logged, and the next call retries.

        Before L{check} has completed, do nothing.
        """
        if not self.compared or not self.moved:
            return
        try:
            await self.remember()
        except StoreUnavailable:
            _log.warn("the vault's progress cannot be written yet")

    async def remember(self) -> None:
        """Store the vault's progress.

        :raises StoreUnavailable: if the progress cannot be read or written, or L{check} has not completed.
        """
        reached = _reached_by(self._control)
        if reached is None or not self.compared:
            raise StoreUnavailable("The vault's revision cannot be read.")
        if reached == self._noted:
            return
        await self._watermarks.put(_CURRENT, reached.vault)
        await self._watermarks.put(reached.name, reached.written())
        self._noted = reached

    @property
    def comparable(self) -> bool:
        """True if the vault is unlocked and its file is unaltered, so that it can be compared with the database."""
        return _reached_by(self._control) is not None

    @property
    def moved(self) -> bool:
        """Return True if the vault has progressed since the last write, so that L{note} must store its progress."""
        return _reached_by(self._control) not in (None, self._noted)

    async def _in_record(self) -> bool:
        """Return whether the audit log still has the newest record whose hash the vault stores.

        :raises VaultLocked, BindingFailed: if the vault cannot be used.
        """
        sealed = self._control.sealed()
        # guard of promise 6: the log reaches the sealed end -> PutBackTests.test_found, instead return True
        # guard against attack: the log reaches the sealed end -> test_rollback.DatabaseTests.test_a_copy,
        #    instead return True
        return sealed is None or await self._runs.record_digest(sealed[0]) == sealed[1]

    async def _distrust(self, reached: _Reached, old_vault: bool, old_record: bool) -> None:
        """Record tampering, request approvals of runs that have not begun again, and seal the audit log into the vault.

        :param old_vault: whether the vault is older: then all trust and grants in it are voided.
        :param old_record: whether the audit log is older.
        :raises VaultLocked, BindingFailed, StoreUnavailable: if the vault or the audit log cannot be written.
        """
        found = ["The vault is older than what was done with it."] if old_vault else []
        found += ["The record is not the one that the vault sealed."] if old_record else []
        event = self._runs.event_of_home("tamper.detected", found=found, sealed_sequence=reached.sequence)
        await self._runs.record(event)
        _log.error("an older vault or audit log was restored: {found}", found=found)
        if old_vault:
            self._trust.void()
            self._grants.void()
        why = ApprovalStale(" ".join(found))
        for run in await self._runs.list_unfinished():
            # guard of promise 6: approvals in an old audit log are requested again -> PutBackTests.test_waiting
            if run.gated and run.state in NOT_BEGUN:
                with suppress(StateConflict):  # the run changed meanwhile
                    await self._requests.ask_anew(run, why)
        head = await self._runs.audit_head()
        if head is not None:
            self._control.seal(*head)


@frozen(eq=False)
class Recovery:
    """Recovers runs left by the previous process, and resumes runs that wait for the vault or a credential."""

    _runs: RunRepository
    _scheduler: RunScheduler
    _requests: ApprovalRequests
    _decisions: Decisions
    _limits: Limits
    _pauses: Pauses
    _effects: EffectGate
    _reconciler: Reconciler
    _previews: Previews
    _rollbacks: RollbackDetector
    _tasks: Tasks

    async def start(self) -> None:
        """Recover the runs left by the previous process, and schedule their timers, look-ups and previews.

        :raises StoreUnavailable: if the database cannot be read.
        """
        await self._limits.learn()
        await self._rollbacks.check()
        await self._reconciler.schedule_recent()
        await self._recover()
        if self._rollbacks.compared:
            self._effects.note_recovered()
        self._fetch_missing()

    def resume_and_retry(self) -> None:
        """Resume runs if the vault was unlocked or a binding changed, and retry writes that failed.

        The daemon's timer calls this.
        """
        can_act = self._effects.may_act() and self._rollbacks.comparable
        resumable = self._effects.should_resume(can_act)
        if can_act:
            self._pauses.settle_up()
        if self._pauses.is_owing:
            self._tasks.start("saving pauses", self._pauses.save())
        if resumable:
            if not self._tasks.start("resuming runs that wait for the vault or a credential", self.resume()):
                self._effects.note_waiting()
        elif self._is_owing:
            self._tasks.start("storing the vault's progress", self._settle_up())

    async def stop(self, seconds: float) -> None:
        """Start no more tasks and wait up to C{seconds} for running ones. Effects that take longer become uncertain."""
        self._requests.stop()
        self._reconciler.stop()
        await self._tasks.drain(seconds)
        await self._rollbacks.note()

    async def drain(self, seconds: float, hand_over: Callable[[Collection[str]], Awaitable[None]]) -> None:
        """Stop as one of several daemons: leave to the others what has not begun here, and end the waits for it.

        :param seconds: how long running tasks may take.
        :param hand_over: lets other daemons take all runs that have not begun, except for those with these ids.
        """
        self._tasks.close()
        self._runs.end_waits(self._tasks.running)
        await hand_over(self._tasks.list_names())
        await self.stop(seconds)

    async def resume(self) -> None:
        """Resume runs that wait for the vault or a credential. If this fails, L{resume_and_retry} retries."""
        if not await self._resume():
            self._effects.note_waiting()

    async def _resume(self) -> bool:
        try:
            await self._rollbacks.check()
            await self._decisions.settle_up()
            async for run in self._runs.all(_WAITING):
                self._scheduler.start(run)
            self._fetch_missing()
        except (StoreUnavailable, *UNUSABLE):
            _log.warn("runs that wait for the vault cannot be resumed yet")
            return False
        return True

    def _fetch_missing(self) -> None:
        self._tasks.start("fetching missing previews", self._previews.fetch_all_missing())

    @property
    def _is_owing(self) -> bool:
        return self._rollbacks.moved or self._decisions.owing

    async def _settle_up(self) -> None:
        """Retry withdrawals of decisions that the vault refused earlier, and store the vault's progress."""
        await self._decisions.settle_up()
        await self._rollbacks.note()

    async def take_over(self, runs: Sequence[Run]) -> None:
        """Recover unfinished runs of daemons that are gone, in the same way as a start recovers its own.

        :raises StoreUnavailable: if the database fails. The daemon calls this again.
        """
        for run in runs:
            asked = frozenset[str]()
            if run.state is RunState.PENDING and (approval := await self._runs.find_approval(run.id)) is not None:
                self._requests.watch(run.id, approval.expires_at)
                asked = frozenset({run.id})
            if not self._tasks.running(run.id):
                await self._recover_one(run, asked)

    async def _recover(self) -> None:
        """Bring every unfinished run to a safe state, oldest first. No run that may have had its effect is started.

        If other daemons change runs as well, leave them to L{take_over}.
        """
        asked = await self._watch_all()
        # guard of several daemons: a start does not touch what others are doing
        #    -> runner.test_several.StartTests.test_others
        if self._runs.shared:
            return
        for run in await self._runs.list_unfinished():
            await self._recover_one(run, asked)

    async def _recover_one(self, run: Run, asked: frozenset[str]) -> None:
        try:
            await self._recover_run(run, asked)
        except StateConflict:
            _log.warn("run {run} changed while it was being recovered", run=run.id)

    async def _watch_all(self) -> frozenset[str]:
        """Set the expiry timers of all pending runs.

        :return: the ids of the pending runs that have an approval row.
        """
        asked: set[str] = set()
        query = _PENDING
        while True:
            page = await self._runs.list_approvals(query)
            for approval in page.items:
                self._requests.watch(approval.run.id, approval.expires_at)
                asked.add(approval.run.id)
            if page.cursor is None:
                return frozenset(asked)
            query = evolve(query, cursor=page.cursor)

    async def _recover_run(self, run: Run, asked: frozenset[str]) -> None:
        # guard of promise 2: a restart does not start an uncertain run -> WrittenRowsTests.test_begun
        if run.state is RunState.EXECUTING:
            await self._store_uncertain(run)
        elif run.state is RunState.PENDING:
            if run.id not in asked:  # a damaged row must not stop the recovery of the others
                _log.error("run {run} is pending without an approval; it stays as it is", run=run.id)
        elif (
            # guard of promise 2: an ungated run is cancelled at a start -> WrittenRowsTests.test_gate
            run.gated and run.state is not RunState.RECEIVED
        ):
            # guard of promise 4: a restart resumes approved runs -> KeptTests.test_decided
            self._scheduler.start(run)  # approved, or waiting for the vault or a credential
        else:
            await self._cancel_unstarted(run)

    async def _store_uncertain(self, run: Run) -> None:
        """Store a run that was executing as C{unknown}, for a person to settle.

        Its decision is withdrawn before, even if the run's row does not say that the decision was used.
        """
        # guard of promise 5: the decision on an uncertain run is withdrawn -> DoubtTests.test_settled_and_put_back
        await self._decisions.give_up(run)
        done = [step.step_id for step in await self._runs.list_steps(run.id)]
        fault, now = _CRASHED.with_details(steps_done=done), self._runs.now()
        begun = [attempt for attempt in await self._runs.list_attempts(run.id) if attempt.state == "started"]
        attempts = tuple(evolve(attempt, state="unknown", ended_at=now, fault=fault) for attempt in begun)
        event = self._runs.event_of_run("execution.unknown", run, fault=fault)
        change = transition(
            run,
            # guard of promise 5: a run that crashed is uncertain, not failed
            #    -> DoubtTests.test_killed, instead RunState.FAILED
            RunState.UNKNOWN,
            now,
            event,
            fault=fault,
            attempts=attempts,
        )
        await self._runs.apply(change)

    async def _cancel_unstarted(self, run: Run) -> None:
        """Cancel a run that had not begun: an ungated one, or one that was not completely received.

        Nothing was sent, and the agent may request the run again. If an approval is stored for the run, the run's row
        was altered, because such a run never has one. Then record C{tamper.detected} as well.
        """
        await self._decisions.give_up(run)
        asked = await self._runs.find_approval(run.id) is not None
        if run.state is RunState.RECEIVED:
            event = self._runs.event_of_run("run.approved", run)
            run = await self._runs.apply(transition(run, RunState.APPROVED, self._runs.now(), event))
        reason = "The daemon ended before it began; nothing was sent."
        found = (self._runs.event_of_run("tamper.detected", run, row="runs", found=_NOT_ASKED),) if asked else ()
        event = self._runs.event_of_run("run.cancelled", run, reason=reason)
        await self._runs.apply(transition(run, RunState.CANCELLED, self._runs.now(), *found, event, reason=reason))
