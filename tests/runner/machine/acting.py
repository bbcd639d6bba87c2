"""What may happen: what agents, operators, services, files, intruders and time do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Coroutine
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, precondition, rule
from twisted.internet.defer import Deferred
from twisted.python.failure import Failure
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import AileronError
from aileron.values import Decision, Run, VaultState, canonical
from tests.runner.kit import OPERATOR

from .home import ANSWERS, FILES, FORGED, Home

_NUMBER = st.integers(0, 5)
_PIECES = st.integers(0, 3)
_ACTION = st.sampled_from(sorted(FILES))
_FATE = st.one_of(
    st.just(("goes well", 0)),
    st.just(("goes well", 0)),
    st.tuples(st.sampled_from(("caller leaves", "caller leaves", "daemon is killed")), _PIECES),
)
_Fate = tuple[str, int]


class Acting(RuleBasedStateMachine):
    """Everybody who acts, and what is known of what they did."""

    def __init__(self, case: SynchronousTestCase) -> None:
        super().__init__()
        self.case = case  # hears of what is logged
        self.home = Home()
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
    @rule(which=_NUMBER, kind=st.sampled_from(sorted(ANSWERS)), fate=_FATE)
    def answer(self, which: int, kind: str, fate: _Fate) -> None:
        """A service answers, or the connection breaks."""
        position, waiting = self.home.unanswered.pop(which % len(self.home.unanswered))
        if waiting.called:  # too late
            return
        self.answers[position] = kind

        async def answered() -> None:
            waiting.callback(ANSWERS[kind])

        self.meets(fate, answered)

    @rule(name=_ACTION, which=_NUMBER, read=st.sampled_from((True, True, False)))
    def edit(self, name: str, which: int, read: bool) -> None:
        """A file changes, and the operator reads and trusts it, or does not."""
        texts = FILES[name]
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

    @rule(pauses=st.sampled_from((True, False, False)), fate=_FATE)
    def switch(self, pauses: bool, fate: _Fate) -> None:
        """The operator pauses everything, or resumes it."""
        runner = self.home.runner
        self.meets(fate, lambda: runner.pause(None, None, OPERATOR) if pauses else runner.resume(None, OPERATOR))

    @precondition(lambda self: self.pending)
    @rule(which=_NUMBER, fate=_FATE)
    def change(self, which: int, fate: _Fate) -> None:
        """The operator edits what waits for a decision."""
        run_id, runner = self.pending[which % len(self.pending)], self.home.runner
        self.meets(fate, lambda: runner.edit(run_id, {"text": "edited"}, None, OPERATOR))

    @rule(which=st.integers(0, 12))
    def secure(self, which: int) -> None:
        """The passphrase is changed, or the vault locked, which it then is for the rest of this life."""
        if which == 0:
            self.home.later(self.home.runner.hold())
            self.home.vault.lock()
        elif which < 4:
            self.home.control.change_key(bytes([which]) * 32)

    @precondition(lambda self: self.runs and self.home.other is None)
    @rule(how=st.sampled_from(sorted(FORGED)), which=_NUMBER, other=_NUMBER, settled=st.booleans())
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
