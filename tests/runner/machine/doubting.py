"""What is done about runs that nobody can say whether they happened."""

from __future__ import annotations

from hypothesis import strategies as st
from hypothesis.stateful import precondition, rule

from tests.runner.kit import OPERATOR

from .acting import FATE, NUMBER, Fate
from .calling import Calling
from .world import ANSWERS


class Doubting(Calling):
    """Looks, late answers, doing it again."""

    @precondition(lambda self: self.of(0, "unknown"))
    @rule(which=NUMBER, fate=FATE)
    def find_out(self, which: int, fate: Fate) -> None:
        """The operator has it looked for."""
        run = self.of(which, "unknown")
        assert run is not None
        self.meets(fate, lambda: self.home.runner.reconciliation.find_out(run.id, OPERATOR))

    @precondition(lambda self: self.of(0, "unknown"))
    @rule(which=NUMBER, fate=FATE)
    def again(self, which: int, fate: Fate) -> None:
        """The operator has it done again."""
        run = self.of(which, "unknown")
        assert run is not None
        self.meets(fate, lambda: self.home.runner.reconciliation.run_again(run.id, "", OPERATOR))

    @precondition(lambda self: self.of(0, "executing"))
    @rule(which=NUMBER, kind=st.sampled_from(sorted(ANSWERS)), settled=st.sampled_from((None, None, True, False)))
    def answer_late(self, which: int, kind: str, settled: bool | None) -> None:
        """A run's time is up, somebody says what became of it or nobody does, and then the answer comes."""
        run = self.of(which, "executing")
        assert run is not None
        self.home.clock.advance(31.0)
        if settled is not None:
            self.settle(run.id, settled, ("goes well", 0))
        for arrival in self.home.world.waiting():
            if arrival.by is not None and arrival.by.run_id == run.id:
                self.home.world.answer(arrival, kind)
