"""What must hold after whatever happened, and in the end."""

from __future__ import annotations

from collections import Counter

from hypothesis.stateful import invariant
from twisted.trial.unittest import SynchronousTestCase

from aileron.model.errors import StoreUnavailable
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.reviews import ReviewedRequest
from aileron.model.runs import Decision, Run, RunState
from aileron.model.trust import TrustKind
from aileron.model.vault import VaultState
from aileron.runner.runs import TRANSITIONS
from aileron.testing import check_chain
from tests.runner.kit import OPERATOR

from .home import FILES, SESSIONS
from .judging import Judging
from .record import Told

_DECISIVE = {
    "approval.approved",
    "approval.denied",
    "approval.stale",
    "tamper.detected",
    "run.cancelled",
    "execution.started",
}
_NOTHING_SENT = {RunState.PENDING, RunState.APPROVED, RunState.DENIED, RunState.CANCELLED, RunState.EXPIRED}
_LONGEST_SECONDS = 7200.0  # that anything was put off


def _reachable() -> frozenset[tuple[RunState, RunState]]:
    """Which states may ever follow which."""
    steps = {(start, end) for start, _, end, _ in TRANSITIONS}
    while True:
        further = {(first, last) for first, middle in steps for start, last in steps if middle is start} - steps
        if not further:
            return frozenset(steps)
        steps |= further


REACHABLE = _reachable()


_WAIT_FOR_THE_VAULT = (RunState.AWAITING_VAULT, RunState.APPROVED)
"""The second, where everything is paused as well: without the vault nobody resumes it."""


class Machine(Judging):
    """The promises, held against all that was done.

    :param told: counts what is on record in the end, by the types of the events.
    """

    def __init__(self, case: SynchronousTestCase, told: Counter[str]) -> None:
        super().__init__(case)
        self.told = told

    @invariant()
    def holds(self) -> None:
        """Everything that is promised of every moment."""
        self.check_logged()
        standing = {run.id: run for run in self.home.sync(self.home.runner.submission.runs(RunQuery(limit=1000))).items}
        self.runs = sorted(standing)
        self.gated = {run_id: run.gated for run_id, run in standing.items()} | self.gated
        self.pending = [run_id for run_id in self.runs if standing[run_id].state is RunState.PENDING]
        for run_id, run in standing.items():
            self.check_step(self.last.get(run_id), run)
        self.last, story = standing, self.home.story()
        begun = self.begun(story)
        self.check_trusted(begun)
        self.check_effects(begun)
        self.judge(story)
        for run_id, waiting in self.home.waiters:
            if run_id not in self.forged:
                assert waiting.called == standing[run_id].state.settled, "a lost wake-up, or a false one"

    def check_trusted(self, begun: Counter[str]) -> None:
        """What began just now is an action that the operator trusts as it was read."""
        for run_id in begun - self.began:
            run = self.last[run_id]
            word = self.home.trust.find(TrustKind.ACTION, run.action)
            used = self.read.get(run_id, run.manifest_digest)
            assert word is not None, "begun by nobody's word"
            assert word.digest == used, "begun with a file that nobody trusts"
        self.began = begun

    def begun(self, story: list[Told]) -> Counter[str]:
        """How often each run began: each time with a decision of its own, taken since, if it was called gated."""
        again = {run_id for run_id, run in self.last.items() if run.parent_id is not None}
        decided = {run_id for run_id, gated in self.gated.items() if not gated} - again
        begun: Counter[str] = Counter()
        for told in story:
            if told.type not in _DECISIVE:
                continue
            if told.type == "execution.started":
                assert told.run_id in decided, "begun without a fresh decision"
                begun[told.run_id] += 1
            decided.discard(told.run_id)
            if told.type == "approval.approved":
                decided.add(told.run_id)
        return begun

    def check_logged(self) -> None:
        """Nothing failed but by the database."""
        for failure in self.case.flushLoggedErrors():
            failure.trap(StoreUnavailable)

    def check_step(self, before: Run | None, now: Run) -> None:
        """A run goes only where the table leads; what is settled stays, but for what a person settles."""
        if before is None or before == now:
            return
        assert not before.state.settled or before.state is RunState.UNKNOWN, (before, now)
        if before.state is not now.state:
            assert (before.state, now.state) in REACHABLE, (before.state, now.state)

    def check_effects(self, begun: Counter[str]) -> None:
        """Nothing non-idempotent is sent again unless it never left; nothing gated unless exactly that was approved."""
        sent: Counter[tuple[str, str]] = Counter()
        for arrival in self.home.world.arrivals:
            assert arrival.by is not None, "sent without having begun"
            run, request = self.last[arrival.by.run_id], arrival.sending.request
            if run.id not in self.forged:
                assert run.state not in _NOTHING_SENT, run
            if self.gated[run.id] and arrival.by.grant_id is None:
                assert (run.id, ReviewedRequest.of(request)) in self.meant, "sent without an approval of exactly this"
            if not request.idempotent and arrival.kind != "unreached":
                sent[run.id, arrival.sending.effect_key] += 1
        assert all(times <= begun[run_id] for (run_id, _), times in sent.items()), sent
        assert all(begun[run_id] == 1 for run_id, _ in sent if run_id not in self.forged), begun

    def teardown(self) -> None:
        """In the end every run is settled, or waits for a decision that can be taken; and the record is sound."""
        home = self.home
        self.rest()
        home.kill(VaultState.UNLOCKED)
        self.resume_all()
        for name, texts in FILES.items():
            home.put(name, texts[0])
        home.rewrite_connector(1, trusted=True)
        home.clock.advance(_LONGEST_SECONDS)  # what has expired meanwhile expires, what was put off begins
        for run_id in self.runs:
            self.finish(run_id)
        states = {run_id: home.sync(home.runner.submission.run(run_id)).state for run_id in self.runs}
        assert all(state.settled for state in states.values()), states
        self.holds()
        records = home.sync(home.store.audit.list(AuditQuery(limit=10_000))).items
        assert check_chain(tuple(reversed(records))) is None
        self.told.update(record.event.type for record in records)
        home.sync(home.store.close())

    def resume_all(self) -> None:
        """The operator resumes whatever is paused."""
        for name in (*SESSIONS, None):
            self.resume(name, ("goes well", 0))

    def rest(self) -> None:
        """Once the disk has room and every service has answered, nothing is under way, in this very life."""
        self.home.relent()
        self.resume_all()
        for _ in range(3):
            self.home.clock.pump([1.0] * 10)
            self.answer_all()
        self.holds()
        locked = self.home.vault.state() is not VaultState.UNLOCKED
        for run in self.last.values():
            if run.id in self.forged:
                continue
            later = run.start_after is not None and run.start_after.timestamp() > self.now
            waits = run.state is RunState.PENDING or (run.state is RunState.APPROVED and later)
            waits = waits or (locked and run.state in _WAIT_FOR_THE_VAULT)
            assert run.state.settled or waits, f"left behind: {run}"

    def answer_all(self) -> None:
        """Let every service say that it has done it."""
        while waiting := self.home.world.waiting():
            self.home.world.answer(waiting[-1], "done")

    def finish(self, run_id: str) -> None:
        """Answer what waits for an answer, and deny what waits for a decision."""
        home = self.home
        self.answer_all()
        if home.sync(home.runner.submission.run(run_id)).state is not RunState.PENDING:
            return
        shown = self.shown(run_id)
        if shown is None:  # somebody called it so, and nobody was ever asked
            home.sync(home.runner.submission.withdraw(run_id, OPERATOR, None))
        else:
            home.sync(home.runner.decisions.decide(run_id, Decision(False, shown.digest, OPERATOR.id)))
