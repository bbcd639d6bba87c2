"""How runs end that two have a hand in: taken back at the last moment, answered late, done again."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from twisted.internet.defer import Deferred

from aileron.model.connectors import Finding, Outcome
from aileron.model.queries import RunQuery
from aileron.model.runs import Run
from tests.promises.case import NO_ANSWER, OPERATOR
from tests.runner.kit import manifest, step

from .orders import Act, Home, Race
from .pairs import Pairs

_WINDOW_SECONDS, _TIME_SECONDS = 60.0, 30.0


class _LastMoment(Pairs):
    """Around the end of an undo window."""

    def window(self, home: Home) -> tuple[Act, Act]:
        home.write("gated", manifest("gated", step("post"), expires=f"undo_seconds = {_WINDOW_SECONDS:g}"))
        home.runner.check_changes()
        self.run = home.submit()
        home.approve(self.run)
        home.clock.advance(_WINDOW_SECONDS - 1.0)

        async def end() -> None:
            home.clock.advance(1.0)

        return self.withdraw(home), end

    def taken_back_or_done(self, home: Home, told: list[Any]) -> str | None:
        """What was taken back is not done."""
        after = (home.state(self.run), home.sent)
        right = ("completed", 1) if told[0] is None else ("cancelled", 0)
        return None if after == right else f"{told}: {after}: {home.events(self.run)}"


class _Late(Pairs):
    """Around an answer whose time was up."""

    def answer(self, home: Home) -> tuple[Act, Act]:
        home.runner.check_changes()
        answer: Deferred[Outcome] = home.unanswered()
        self.run = home.submit("open")
        home.clock.advance(_TIME_SECONDS)

        async def answered() -> None:
            answer.callback(Outcome({"done": True}))

        return self.settle(home, False), answered

    def one_word(self, home: Home, told: list[Any]) -> str | None:
        """A person's word stays; an answer that came before there was one is believed."""
        state, right = home.state(self.run), "completed" if told[0] is None else "failed"
        on_record = "execution.late_answer" in home.events(self.run)
        return None if (state, on_record) == (right, True) else f"{told}: {state}: {home.events(self.run)}"

    def found(self, home: Home) -> tuple[Act, Act]:
        home.write("open", manifest("open", step("send"), gated=False))
        _, answered = self.answer(home)
        home.connector.findings.append(Finding(True, {"by": "look"}))
        return lambda: home.runner.reconciliation.find_out(self.run.id, OPERATOR), answered

    def both_told(self, home: Home, told: list[Any]) -> str | None:
        """The first that is written stands; of the other, if it came at all, the record alone tells."""
        run, events = home.now(self.run), home.events(self.run)
        ways = {"execution.reconciled": {"by": "look"}, "execution.late_answer": {"done": True}}
        outputs = [ways[event] for event in events if event in ways]
        result: Any = run.result
        right = run.state == "completed" and result["output"] == outputs[0] and "execution.late_answer" in events
        return None if right and home.sent == 1 else f"{told}: {run}: {events}"


class _Again(Pairs):
    """Around a run that nobody can say whether it happened, and that is to be done again."""

    def prepare(self, home: Home) -> Act:
        home.connector.script.append(NO_ANSWER)
        self.run = home.submit("open")
        return lambda: home.runner.reconciliation.run_again(self.run.id, "", OPERATOR)

    def children(self, home: Home) -> tuple[Run, ...]:
        """The runs that do it again."""
        return home.sync(home.runner.submission.runs(RunQuery(parent_id=self.run.id))).items

    def twice(self, home: Home) -> tuple[Act, Act]:
        again = self.prepare(home)
        return again, again

    def one_child(self, home: Home, told: list[Any]) -> str | None:
        """There is one, and it waits for a word."""
        children = self.children(home)
        right = len(children) == 1 == told.count(None) and home.state(children[0]) == "pending_approval"
        return None if right and home.sent == 1 else f"{told}: {children}, sent {home.sent} times"

    def against_settlement(self, home: Home) -> tuple[Act, Act]:
        again = self.prepare(home)
        return again, self.settle(home, True)

    def not_twice(self, home: Home, told: list[Any]) -> str | None:
        """What turned out to have happened is not done again, even where somebody says yes to that."""
        for child in self.children(home):
            with suppress(home.failureException):  # it is refused
                home.approve(child)
        state = home.state(self.run)
        right = "completed" if told[1] is not None else "unknown"
        return None if (state, home.sent) == (right, 1) else f"{told}: {state}, sent {home.sent} times"


def ending() -> tuple[Race, ...]:
    """All of them."""
    moment, late, again = _LastMoment(), _Late(), _Again()
    back = "what was taken back is never done"
    return (
        Race("withdraw, end of undo window", back, moment.window, moment.taken_back_or_done),
        Race("settle, late answer", "one word stands", late.answer, late.one_word),
        Race("look-up, late answer", "the first stands", late.found, late.both_told),
        Race("run again, run again", "one does it again", again.twice, again.one_child),
        Race("run again, settle", "what happened is not repeated", again.against_settlement, again.not_twice),
    )
