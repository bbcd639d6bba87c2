"""Whatever agents, operators, files, intruders, clocks, disks and crashes do, in any order: the promises hold."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule, run_state_machine_as_test
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.audit import check_chain
from aileron.errors import AileronError, ExternalApiError, NetworkError, StoreUnavailable
from aileron.runner._lifecycle import LEGAL
from aileron.values import AuditQuery, Decision, Outcome, Run, RunQuery, RunState, TrustKind, VaultState, canonical

from .kit import OPERATOR, RunnerCase, manifest, step

_EXPIRES = 'expires_after = "1h"'
_FILES: dict[str, tuple[str | None, ...]] = {
    "gated": (manifest("gated", step("post")), manifest("gated", step("post"), body="Other."), None),
    "timed": (manifest("timed", step("post"), expires=_EXPIRES), manifest("timed", step("put"), expires=_EXPIRES)),
    "open": (manifest("open", step("post"), gated=False), manifest("open", step("put"), gated=False)),
    "steps": (manifest("steps", step("put", "one"), step("post", "two")),),
}
_ANSWERS = {
    "done": Outcome({"done": True}),
    "refused": Outcome(fault=ExternalApiError("No.").fault(), sent=True, classified=True),
    "silent": Outcome(fault=ExternalApiError("Reset.").fault(), sent=True, classified=False),
    "unreached": Outcome(fault=NetworkError("Nobody there.").fault(), sent=False, classified=False),
}
_FORGED = {
    "approved": "UPDATE runs SET state = 'approved' WHERE id = :run",
    "waiting": "UPDATE runs SET state = 'awaiting_vault' WHERE id = :run",
    "pending": "UPDATE runs SET state = 'pending_approval' WHERE id = :run",
    "gated": "UPDATE runs SET gated = 1 - gated WHERE id = :run",
    "arguments": """UPDATE runs SET arguments = '{"text":"forged"}' WHERE id = :run""",
    "digest": "UPDATE approvals SET digest = 'sha256:00' WHERE run_id = :run",
    "yes": "UPDATE approvals SET approved = 1, decided_at = requested_at, decided_by = 'me' WHERE run_id = :run",
    "mark": """UPDATE approvals SET (approved, decided_at, decided_by, not_after, decision_mark) = (
        SELECT approved, decided_at, decided_by, not_after, decision_mark FROM approvals AS other
        WHERE other.run_id = :other) WHERE run_id = :run AND EXISTS (SELECT 1 FROM approvals WHERE run_id = :other)""",
}
_STORY = """
    SELECT run_id, type FROM audit_events WHERE run_id IS NOT NULL AND type IN (
        'approval.approved', 'approval.denied', 'approval.stale', 'tamper.detected', 'run.cancelled',
        'execution.started')
    ORDER BY seq
"""
_NUMBER = st.integers(0, 5)
_PIECES = st.integers(0, 3)
_ACTION = st.sampled_from(sorted(_FILES))
_FATE = st.one_of(
    st.just(("goes well", 0)),
    st.just(("goes well", 0)),
    st.tuples(st.sampled_from(("caller leaves", "caller leaves", "daemon is killed")), _PIECES),
)
_MOST_AT_ONCE = 40
_Fate = tuple[str, int]


def _reachable() -> frozenset[tuple[RunState, RunState]]:
    """Which states may ever follow which."""
    steps = set(LEGAL)
    while True:
        further = {(first, last) for first, middle in steps for start, last in steps if middle is start} - steps
        if not further:
            return frozenset(steps)
        steps |= further


_REACHABLE = _reachable()


class _Home(RunnerCase):
    """A home that can be killed at any piece of work of its database."""

    def setUp(self) -> None:
        """Every action, as it first is."""
        super().setUp()
        for name, texts in _FILES.items():
            self.put(name, texts[0])
        self.runner.look()
        self.other: sqlite3.Connection | None = None
        self.prepared: list[Deferred[Outcome]] = []  # what the script holds, in the order in which sendings take it
        self.unanswered: list[tuple[int, Deferred[Outcome]]] = []
        self.waiters: list[tuple[str, Deferred[Run]]] = []
        self.session("session-1")

    def put(self, name: str, text: str | None, *, trusted: bool = True) -> None:
        """Write an action file, or remove it."""
        if text is None:
            (self.directory / f"{name}.md").unlink(missing_ok=True)
        else:
            self.write(name, text, trusted=trusted)

    def forge(self, how: str, run_id: str, other: str) -> None:
        """Write into the database as another program would."""
        with sqlite3.connect(self.database) as database:
            database.execute(_FORGED[how], {"run": run_id, "other": other})
        database.close()

    def story(self) -> list[tuple[str, str]]:
        """What is on record of decisions and of what began, in order: the run and the event's type."""
        database = sqlite3.connect(self.database)
        try:
            return database.execute(_STORY).fetchall()
        finally:
            database.close()

    def refuse(self) -> None:
        """Let no commit pass."""
        if self.other is None:
            self.other = sqlite3.connect(self.database, isolation_level=None)
            self.other.execute("BEGIN IMMEDIATE")

    def relent(self) -> None:
        """Let them pass again."""
        self.control.full = False
        if self.other is not None:
            self.other.execute("ROLLBACK")
            self.other.close()
            self.other = None

    def kill(self, state: VaultState) -> None:
        """End this life with nothing of it going on, and begin another, whose vault is in C{state}."""
        for call in list(self.clock.getDelayedCalls()):  # it is the clock's own list
            call.cancel()
        self.pool.todo.clear()
        self.pool.release()
        self.relent()
        self.unanswered, self.waiters, self.prepared, self.connector.script[:] = [], [], [], []
        self.refill()
        self.unlock_anew(state)
        self.store = self.open_store()
        self.restart()

    def refill(self) -> None:
        """Have every sending wait for its answer."""
        while len(self.prepared) < _MOST_AT_ONCE:
            self.prepared.append(Deferred())
            self.connector.script.append(self.prepared[-1])

    def runTest(self) -> None:
        """Not a test by itself."""


class _Machine(RuleBasedStateMachine):
    """What may happen, and what must hold."""

    def __init__(self, case: SynchronousTestCase) -> None:
        super().__init__()
        self.case = case  # hears of what is logged
        self.home = _Home()
        self.home.setUp()
        self.home.refill()
        self.runs: list[str] = []
        self.pending: list[str] = []
        self.meant: set[tuple[str, bytes]] = set()  # a run's request that the operator has seen and approved
        self.last: dict[str, Run] = {}
        self.read: dict[str, str] = {}  # the file that the operator saw when a run was approved
        self.began: Counter[str] = Counter()
        self.gated: dict[str, bool] = {}  # as each was called
        self.forged: set[str] = set()  # runs into whose rows somebody wrote
        self.answers: dict[int, str] = {}  # by the position of the sending
        self.watched = 0

    # what may happen ----------------------------------------------------------------------------------------

    @rule(action=_ACTION, key=st.sampled_from((None, None, "k1", "k2")), text=st.sampled_from("ab"), fate=_FATE)
    def submit(self, action: str, key: str | None, text: str, fate: _Fate) -> None:
        """An agent calls."""
        call = self.home.call(action, {"text": text}, key)
        self.meets(fate, lambda: self.home.runner.submit(call))

    @precondition(lambda self: self.pending)
    @rule(which=_NUMBER, approved=st.sampled_from((True, True, True, False)), fate=_FATE)
    def decide(self, which: int, approved: bool, fate: _Fate) -> None:
        """The operator looks and decides; the files may have changed between the two."""
        run_id = self.pending[which % len(self.pending)]
        shown = self.attempt(self.home.runner.approval(run_id))
        if shown is None:
            return
        if approved:
            steps = shown.review["steps"]
            self.meant |= {(run_id, canonical(each["request"])) for each in steps}
            self.read[run_id] = str(shown.review["manifest_digest"])
        decision = Decision(approved, shown.digest, OPERATOR.id)
        self.meets(fate, lambda: self.home.runner.decide(run_id, decision))

    @precondition(lambda self: self.runs)
    @rule(which=_NUMBER, settles=st.booleans(), happened=st.booleans(), fate=_FATE)
    def end(self, which: int, settles: bool, happened: bool, fate: _Fate) -> None:
        """Somebody takes a run back, or says what became of it."""
        run_id, runner = self.runs[which % len(self.runs)], self.home.runner
        if settles:
            self.meets(fate, lambda: runner.settle(run_id, happened, "", OPERATOR))
        else:
            self.meets(fate, lambda: runner.withdraw(run_id, OPERATOR, None))

    @precondition(lambda self: self.runs)
    @rule(which=_NUMBER)
    def wait(self, which: int) -> None:
        """An agent waits for a run."""
        run_id = self.runs[which % len(self.runs)]
        self.home.waiters.append((run_id, self.home.later(self.home.runner.wait(run_id, 1e9))))

    @precondition(lambda self: self.home.unanswered)
    @rule(which=_NUMBER, kind=st.sampled_from(sorted(_ANSWERS)), fate=_FATE)
    def answer(self, which: int, kind: str, fate: _Fate) -> None:
        """A service answers, or the connection breaks."""
        position, waiting = self.home.unanswered.pop(which % len(self.home.unanswered))
        if waiting.called:  # too late
            return
        self.answers[position] = kind

        async def answered() -> None:
            waiting.callback(_ANSWERS[kind])

        self.meets(fate, answered)

    @rule(name=_ACTION, which=_NUMBER, read=st.sampled_from((True, True, False)))
    def edit(self, name: str, which: int, read: bool) -> None:
        """A file changes, and the operator reads and trusts it, or does not."""
        texts = _FILES[name]
        text = texts[which % len(texts)] if which > 2 else texts[0]
        self.home.put(name, text if read or text is None else f"{text}{which}", trusted=read)

    @rule(what=st.sampled_from(("look", "refuse", "relent", "relent", "fill", "kill")), locked=st.integers(0, 5))
    def disturb(self, what: str, locked: int) -> None:
        """The daemon looks at the files, a disk is full, or has room, the daemon dies."""
        if what == "look":
            self.home.runner.look()
        elif what == "refuse":
            self.home.refuse()
        elif what == "relent":
            self.home.relent()
        elif what == "fill":
            self.home.control.full = True
        else:
            self.home.kill(VaultState.LOCKED if locked == 0 else VaultState.UNLOCKED)

    @rule(which=st.integers(0, 12))
    def secure(self, which: int) -> None:
        """The passphrase is changed, or the vault locked, which it then is for the rest of this life."""
        if which == 0:
            self.home.later(self.home.runner.hold())
            self.home.vault.lock()
        elif which < 4:
            self.home.control.change_key(bytes([which]) * 32)

    @precondition(lambda self: self.runs and self.home.other is None)
    @rule(how=st.sampled_from(sorted(_FORGED)), which=_NUMBER, other=_NUMBER, settled=st.booleans())
    def forge(self, how: str, which: int, other: int, settled: bool) -> None:
        """Another program writes into the database: best into what was settled."""
        known = [run_id for run_id in self.runs if self.last[run_id].state.settled is settled] or self.runs
        run_id = known[which % len(known)]
        self.home.forge(how, run_id, self.runs[other % len(self.runs)])
        self.forged.add(run_id)
        self.last.pop(run_id, None)

    @rule(seconds=st.sampled_from((1.0, 5.0, 70.0, 3600.0, 90_000.0)))
    def pass_time(self, seconds: float) -> None:
        """Time passes."""
        self.home.clock.pump([1.0] * int(min(seconds, 5.0)))
        self.home.clock.advance(seconds - min(seconds, 5.0))

    # how it happens -----------------------------------------------------------------------------------------

    def meets(self, fate: _Fate, begin: Callable[[], Coroutine[Deferred[Any], Any, object]]) -> None:
        """Have it done; or go, or end, after some pieces of the database's work."""
        end, pieces = fate
        if end == "goes well":
            self.attempt(begin())
            return
        self.home.pool.hold()
        waiting = self.home.later(begin())
        for _ in range(pieces):
            if self.home.pool.todo:
                self.home.pool.step()
        self.note_sendings()
        if end == "caller leaves":
            waiting.cancel()
            self.home.pool.release()
        else:
            self.home.kill(VaultState.UNLOCKED)
        waiting.addErrback(lambda failure: None)

    def attempt(self, work: Coroutine[Deferred[Any], Any, Any]) -> Any:
        """What C{work} comes to, or L{None} if it was refused in a proper way."""
        told: list[Any] = []
        self.home.later(work).addBoth(told.append)
        assert told, "the call got no answer"
        if isinstance(told[0], Failure):
            told[0].trap(AileronError)
            return None
        return told[0]

    def note_sendings(self) -> None:
        """Know which sendings wait for an answer, before anything else happens to them."""
        sendings = self.home.connector.sendings
        for position in range(self.watched, len(sendings)):
            self.home.unanswered.append((position, self.home.prepared.pop(0)))
        self.watched = len(sendings)
        self.home.refill()

    # what must hold -----------------------------------------------------------------------------------------

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
            assert (before.state, now.state) in _REACHABLE, (before.state, now.state)

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
        for name, texts in _FILES.items():
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
        for _ in range(3):
            self.home.clock.pump([1.0] * 10)
            self.answer_all()
        self.holds()
        locked = self.home.vault.state() is not VaultState.UNLOCKED
        for run in self.last.values():
            if run.id in self.forged:
                continue
            waits = run.state is RunState.PENDING or (locked and run.state is RunState.AWAITING_VAULT)
            assert run.state.settled or waits, f"left behind: {run}"

    def answer_all(self) -> None:
        """Let every service say that it has done it."""
        self.note_sendings()
        while self.home.unanswered:
            position, waiting = self.home.unanswered.pop()
            if not waiting.called:
                self.answers[position] = "done"
                waiting.callback(_ANSWERS["done"])
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


class MachineTests(SynchronousTestCase):
    """The machine, run."""

    def test_promises_hold(self) -> None:
        """In any order of events nothing is lost, nothing happens twice, and nothing happens unasked."""
        run_state_machine_as_test(
            lambda: _Machine(self),  # type: ignore[arg-type]
            settings=settings(
                max_examples=40,
                stateful_step_count=30,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.explicit, Phase.reuse, Phase.generate),  # to shrink such a machine takes minutes
            ),
        )
