"""What must hold after whatever happened, and in the end."""

from __future__ import annotations

from collections import Counter

from hypothesis.stateful import invariant

from aileron.audit import check_chain
from aileron.errors import StoreUnavailable
from aileron.runner._lifecycle import LEGAL
from aileron.values import AuditQuery, Decision, Run, RunQuery, RunState, TrustKind, VaultState, canonical
from tests.runner.kit import OPERATOR

from .acting import Acting
from .home import ANSWERS, FILES


def _reachable() -> frozenset[tuple[RunState, RunState]]:
    """Which states may ever follow which."""
    steps = set(LEGAL)
    while True:
        further = {(first, last) for first, middle in steps for start, last in steps if middle is start} - steps
        if not further:
            return frozenset(steps)
        steps |= further


REACHABLE = _reachable()


_WAIT_FOR_THE_VAULT = (RunState.AWAITING_VAULT, RunState.APPROVED)
"""The second, where everything is paused as well: without the vault nobody resumes it."""


class Machine(Acting):
    """The promises, held against all that was done."""

    @invariant()
    def holds(self) -> None:
        """Everything that is promised of every moment."""
        self.note_sendings()
        self.check_logged()
        standing = {run.id: run for run in self.home.sync(self.home.runner.runs(RunQuery(limit=1000))).items}
        self.runs = sorted(standing)
        self.gated = {run_id: run.gated for run_id, run in standing.items()} | self.gated
        self.pending = [run_id for run_id in self.runs if standing[run_id].state is RunState.PENDING]
        for run_id, run in standing.items():
            self.check_step(self.last.get(run_id), run)
        self.last = standing
        begun = self.begun()
        self.check_trusted(begun)
        self.check_effects({run.effect_key: run for run in standing.values()}, begun)
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

    def begun(self) -> Counter[str]:
        """How often each run began: each time with a decision of its own, taken since, if it was called gated."""
        decided = {run_id for run_id, gated in self.gated.items() if not gated}
        begun: Counter[str] = Counter()
        for run_id, type_ in self.home.story():
            if type_ == "execution.started":
                assert run_id in decided, "begun without a fresh decision"
                begun[run_id] += 1
            decided.discard(run_id)
            if type_ == "approval.approved":
                decided.add(run_id)
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

    def check_effects(self, by_key: dict[str, Run], begun: Counter[str]) -> None:
        """Nothing non-idempotent is sent again unless it never left; nothing gated unless exactly that was approved."""
        sent: Counter[tuple[str, str]] = Counter()
        for position, sending in enumerate(self.home.connector.sendings):
            run = by_key[sending.effect_key.partition(".")[0]]
            assert begun[run.id], "sent without having begun"
            if run.id not in self.forged:
                assert run.state not in {RunState.PENDING, RunState.APPROVED, RunState.DENIED, RunState.CANCELLED}, run
            if self.gated[run.id]:
                asked = canonical(sending.request.as_json())
                assert (run.id, asked) in self.meant, "sent without an approval of exactly this"
            if not sending.request.idempotent and self.answers.get(position) != "unreached":
                sent[run.id, sending.effect_key] += 1
        assert all(times <= begun[run_id] for (run_id, _), times in sent.items()), sent
        assert all(begun[run_id] == 1 for run_id, _ in sent if run_id not in self.forged), begun

    def teardown(self) -> None:
        """In the end every run is settled, or waits for a decision that can be taken; and the record is sound."""
        home = self.home
        self.rest()
        home.kill(VaultState.UNLOCKED)
        self.attempt(home.runner.resume(None, OPERATOR))
        for name, texts in FILES.items():
            home.put(name, texts[0])
        home.clock.advance(1.0)  # what has expired meanwhile expires
        for run_id in self.runs:
            self.finish(run_id)
        states = {run_id: home.sync(home.runner.run(run_id)).state for run_id in self.runs}
        assert all(state.settled for state in states.values()), states
        self.holds()
        records = home.sync(home.store.audit.list(AuditQuery(limit=10_000))).items
        assert check_chain(tuple(reversed(records))) is None
        home.sync(home.store.close())

    def rest(self) -> None:
        """Once the disk has room and every service has answered, nothing is under way, in this very life."""
        self.home.relent()
        self.attempt(self.home.runner.resume(None, OPERATOR))
        for _ in range(3):
            self.home.clock.pump([1.0] * 10)
            self.answer_all()
        self.holds()
        locked = self.home.vault.state() is not VaultState.UNLOCKED
        for run in self.last.values():
            if run.id in self.forged:
                continue
            waits = run.state is RunState.PENDING or (locked and run.state in _WAIT_FOR_THE_VAULT)
            assert run.state.settled or waits, f"left behind: {run}"

    def answer_all(self) -> None:
        """Let every service say that it has done it."""
        self.note_sendings()
        while self.home.unanswered:
            position, waiting = self.home.unanswered.pop()
            if not waiting.called:
                self.answers[position] = "done"
                waiting.callback(ANSWERS["done"])
                self.note_sendings()

    def finish(self, run_id: str) -> None:
        """Answer what waits for an answer, and deny what waits for a decision."""
        home = self.home
        self.answer_all()
        if home.sync(home.runner.run(run_id)).state is not RunState.PENDING:
            return
        shown = self.attempt(home.runner.approval(run_id))
        if shown is None:  # somebody called it so, and nobody was ever asked
            home.sync(home.runner.withdraw(run_id, OPERATOR, None))
        else:
            home.sync(home.runner.decide(run_id, Decision(False, shown.digest, OPERATOR.id)))
