"""What agents call, what the operator says to it, and what the service answers."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from aileron.model.runs import Approval, Decision, Run
from tests.runner.kit import OPERATOR

from .acting import FATE, NUMBER, UNCLEAR, Acting, Begin, Fate
from .home import FILES, SESSIONS
from .world import ANSWERS

ACTION = st.sampled_from(sorted(FILES))
SESSION = st.sampled_from(SESSIONS)
PICKS = st.lists(st.integers(0, 3), max_size=12)
_LATER = st.sampled_from((0.0, 0.0, 0.0, 100.0, 7200.0))


class Calling(Acting):
    """Calls, decisions, answers."""

    @rule(
        action=ACTION, key=st.sampled_from((None, None, "k1", "k2")), text=st.sampled_from("ab"), who=SESSION, fate=FATE
    )
    def submit(self, action: str, key: str | None, text: str, who: str, fate: Fate) -> None:
        """An agent calls."""
        self.call(action, text, who, fate, key)

    def call(self, action: str, text: str, who: str, fate: Fate, key: str | None = None) -> Run | None:
        """An agent calls; what was denied lately is not taken.

        :return: the run, if somebody was told of it.
        """
        sticks = self.model.sticks(action, text, self.unforged(), self.now)
        call = self.home.call(action, {"text": text}, key, who)
        told = self.meets(fate, lambda: self.home.runner.submission.submit(call))
        new = isinstance(told, Run) and told.id not in self.runs
        assert not (sticks and new), f"asked again though it was denied: {told}"
        return told if isinstance(told, Run) else None

    @rule(action=ACTION, texts=st.lists(st.sampled_from("ab"), min_size=2, max_size=4), who=SESSION, picks=PICKS)
    def crowd(self, action: str, texts: list[str], who: str, picks: list[int]) -> None:
        """Agents call at the same moment."""
        calls = [self.home.call(action, {"text": text}, None, who) for text in texts]
        self.at_once([lambda each=each: self.home.runner.submission.submit(each) for each in calls], picks)  # type: ignore[misc]

    @precondition(lambda self: self.pending)
    @rule(which=NUMBER, approved=st.sampled_from((True, True, True, False)), later=_LATER, fate=FATE)
    def decide(self, which: int, approved: bool, later: float, fate: Fate) -> None:
        """The operator looks and decides; the files may have changed between the two."""
        shown = self.shown(self.pending[which % len(self.pending)])
        if shown is not None:
            begin = self.deciding(shown, approved, later)
            self.decided(shown, approved, self.meets(fate, begin))

    @precondition(lambda self: len(self.pending) > 1)
    @rule(picks=PICKS)
    def approve_all(self, picks: list[int]) -> None:
        """The operator approves whatever waits, in the same moment."""
        shown = [each for each in map(self.shown, self.pending) if each is not None]
        told = self.at_once([self.deciding(each, True, 0.0) for each in shown], picks)
        for each, answer in zip(shown, told, strict=True):
            self.decided(each, True, answer)

    @precondition(lambda self: self.runs)
    @rule(which=NUMBER, settles=st.booleans(), happened=st.booleans(), fate=FATE)
    def end(self, which: int, settles: bool, happened: bool, fate: Fate) -> None:
        """Somebody takes a run back, or says what became of it."""
        run_id, runner = self.runs[which % len(self.runs)], self.home.runner
        if settles:
            self.settle(run_id, happened, fate)
        elif isinstance(self.meets(fate, lambda: runner.submission.withdraw(run_id, OPERATOR, None)), Run):
            self.model.unsaid(run_id)

    def settle(self, run_id: str, happened: bool, fate: Fate) -> None:
        """The operator says what became of a run."""
        self.model.settled.add(run_id)
        self.meets(fate, lambda: self.home.runner.reconciliation.settle(run_id, happened, "", OPERATOR))

    @precondition(lambda self: self.runs)
    @rule(which=NUMBER)
    def wait(self, which: int) -> None:
        """An agent waits for a run."""
        run_id = self.runs[which % len(self.runs)]
        self.home.waiters.append((run_id, self.home.later(self.home.runner.submission.wait(run_id, 1e9))))

    @precondition(lambda self: self.home.world.waiting())
    @rule(which=NUMBER, kind=st.sampled_from(sorted(ANSWERS)), fate=FATE)
    def answer(self, which: int, kind: str, fate: Fate) -> None:
        """A service answers, or the connection breaks."""
        waiting = self.home.world.waiting()
        arrival = waiting[which % len(waiting)]

        async def answered() -> None:
            self.home.world.answer(arrival, kind)

        self.meets(fate, answered)

    @precondition(lambda self: self.pending)
    @rule(which=NUMBER, fate=FATE)
    def change(self, which: int, fate: Fate) -> None:
        """The operator edits what waits for a decision."""
        run_id, runner = self.pending[which % len(self.pending)], self.home.runner
        self.meets(fate, lambda: runner.decisions.edit(run_id, {"text": "edited"}, None, OPERATOR))

    # how it is done -----------------------------------------------------------------------------------------

    def unforged(self) -> dict[str, Run]:
        """The runs into whose rows nobody wrote."""
        return {run_id: run for run_id, run in self.last.items() if run_id not in self.forged}

    def shown(self, run_id: str) -> Approval | None:
        """What the operator is shown."""
        shown = self.attempt(self.home.runner.decisions.approval(run_id))
        assert shown is None or isinstance(shown, Approval)
        return shown

    def deciding(self, shown: Approval, approved: bool, later: float) -> Begin:
        """Decide for what is shown."""
        not_before = shown.run.received_at.fromtimestamp(self.now + later, shown.run.received_at.tzinfo)
        decision = Decision(approved, shown.digest, OPERATOR.id, not_before=not_before if later else None)
        if approved:
            self.mean(shown, later)
        return lambda: self.home.runner.decisions.decide(shown.run.id, decision)

    def mean(self, shown: Approval, later: float = 0.0) -> None:
        """The operator has read what is shown, and is about to say yes to it."""
        self.meant |= {(shown.run.id, step.request) for step in shown.review.steps}
        self.read[shown.run.id] = shown.review.manifest_digest
        self.model.approving(shown.run.id, shown.run.action, self.now, self.now + later)

    def decided(self, shown: Approval, approved: bool, told: object) -> None:
        """What was said to a decision."""
        if told is UNCLEAR or told is None:
            return
        if approved:
            self.model.approved(shown.run.id)
        else:
            self.model.unsaid(shown.run.id)
