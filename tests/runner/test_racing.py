"""All who may know what became of a run say so at once: the first that is written counts, all are on record."""

from __future__ import annotations

from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st
from twisted.internet.defer import Deferred
from twisted.trial.unittest import SynchronousTestCase

from aileron.errors import AileronError
from aileron.values import Fault, Finding, Outcome, Run, RunState

from .kit import OPERATOR
from .test_listening import LateCase

_REFUSED = Outcome(fault=Fault("external_api_error", "no", "external"))
_BROKEN = Outcome(fault=Fault("external_api_error", "502", "external"), classified=False, status=502)
_TOLD = ("execution.late_answer", "execution.reconciled", "run.settled")
_WHO = {
    "answer done": ("answer", Outcome({"by": "answer"}), True),
    "answer refused": ("answer", _REFUSED, False),
    "answer broken": ("answer", _BROKEN, None),
    "look found": ("look", Finding(True, {"by": "look"}), True),
    "look gone": ("look", Finding(False), False),
    "look nothing": ("look", Finding(None), None),
    "settle yes": ("settle", True, True),
    "settle no": ("settle", False, False),
    "again": ("again", None, None),
}


class _Race(LateCase):
    """One run in doubt."""

    def runTest(self) -> None:
        """Not a test by itself."""

    def say(self, run: Run, what: str, told: Any) -> Deferred[Any] | None:
        """Have one of them say so; of an answer there is only one."""
        if what == "answer":
            if not self.answer.called:
                self.answer.callback(told)
            return None
        if what == "look":
            self.connector.findings.append(told)
            return self.later(self.runner.reconciliation.find_out(run.id, OPERATOR))
        if what == "settle":
            return self.later(self.runner.reconciliation.settle(run.id, told, "I looked.", OPERATOR))
        return self.later(self.runner.reconciliation.run_again(run.id, "", OPERATOR))

    def race(self, run: Run, who: list[tuple[str, int]]) -> None:
        """All at once, with some pieces of the database's work done between."""
        self.pool.hold()
        waiting = []
        for name, pieces in who:
            what, told, _ = _WHO[name]
            waiting.append(self.say(run, what, told))
            for _ in range(pieces):
                if self.pool.todo:
                    self.pool.step()
        self.pool.release()
        for each in filter(None, waiting):
            told_all: list[object] = []
            each.addErrback(lambda failure: failure.trap(AileronError)).addBoth(told_all.append)
            self.assertTrue(told_all)


class RaceTests(SynchronousTestCase):
    """The promises hold in any order."""

    @settings(deadline=None, max_examples=60)
    @given(
        st.sampled_from(("sent", "first", "second")),
        st.lists(st.tuples(st.sampled_from(sorted(_WHO)), st.integers(0, 4)), min_size=1, max_size=6),
    )
    @example("sent", [("settle no", 9), ("answer done", 0)])
    @example("sent", [("look found", 9), ("answer refused", 0)])
    @example("sent", [("answer refused", 9), ("look found", 0), ("settle yes", 0)])
    def test_first_counts(self, action: str, who: list[tuple[str, int]]) -> None:
        """What the run comes to is what its last event says; nobody else has changed it; nothing is sent again."""
        home = _Race()
        home.setUp()
        before = [Outcome({"a": 1})] if action == "second" else []
        run = home.overdue(action, *before)
        sent = len(home.connector.sendings)
        home.race(run, who)
        found = home.now(run)
        self.assertEqual(len(home.connector.sendings), sent)
        self.assertIn(found.state, (RunState.UNKNOWN, RunState.COMPLETED, RunState.FAILED))
        self.check_end(home, run, found, action == "first")
        self.check_record(home, run, [name for name, _ in who])
        self.assertEqual(self.flushLoggedErrors(), [])

    def check_end(self, home: _Race, run: Run, found: Run, open_rest: bool) -> None:
        """The run stands as the event says that ended it; one of several steps is ended by a person alone."""
        if found.state is RunState.UNKNOWN:
            self.assertEqual(found.audit_id, run.audit_id)
            return
        ending = next(e for type_ in _TOLD for e in home.record(run, type_) if e.id == found.audit_id)
        self.assertEqual(ending.payload["happened"], found.state is RunState.COMPLETED)
        if open_rest:
            self.assertEqual(ending.type, "run.settled")
        if found.state is RunState.COMPLETED and ending.type != "run.settled":
            by = "answer" if ending.type == "execution.late_answer" else "look"
            assert isinstance(found.result, dict)
            self.assertEqual(found.result["output"], {"by": by})

    def check_record(self, home: _Race, run: Run, who: list[str]) -> None:
        """One person at most has settled it, one new run at most is open, and the answer is on record once."""
        self.assertLessEqual(len(home.record(run, "run.settled")), 1)
        self.assertLessEqual(len(home.record(run, "run.run_again")), 1)
        answered = any(_WHO[name][0] == "answer" for name in who)
        self.assertEqual(len(home.record(run, "execution.late_answer")), int(answered))
