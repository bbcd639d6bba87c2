"""An action that needs no approval."""

from __future__ import annotations

from typing import Any, cast

from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from twisted.trial.unittest import SynchronousTestCase

from aileron.base.json import JSON, compact
from aileron.model.connectors import Outcome
from aileron.model.errors import CapabilityDenied, InvalidRequest, NotFound
from aileron.model.faults import Fault
from aileron.model.queries import AuditQuery
from aileron.model.runs import RunState
from aileron.runner.outcomes import MAX_RETRIES, RetryPolicy
from tests.extent import examples

from .kit import AGENT, RunnerCase, manifest, step


class UngatedTests(RunnerCase):
    """From the call to the effect and its record."""

    def test_answer_kept(self) -> None:
        """What the service answered to a failed attempt is kept for the operator, and neither recorded nor returned."""
        fault = Fault("external_api_error", "It said no.", "external")
        notes: dict[str, JSON] = {"answer": {"text": "<p>no-such-thing", "type": "text/html"}}
        self.connector.script.append(Outcome(fault=fault, status=422, notes=notes))
        run = self.submit("open")
        _, (attempt,) = self.sync(self.runner.submission.history(run.id))
        self.assertEqual((attempt.answer, attempt.answer_type), ("<p>no-such-thing", "text/html"))
        kept = self.sql("SELECT payload FROM audit_payloads")
        self.assertNotIn("no-such-thing", f"{kept} {run}")

    def test_completes(self) -> None:
        """The effect happens once, with what was given; the answer and the record have it, and who called."""
        calls: tuple[dict[str, JSON], ...] = ({"text": "hello", "times": 3}, {"text": "hello"})
        for sent, arguments in enumerate(calls):
            run = self.now(self.submit("open", arguments))
            self.assertIs(run.state, RunState.COMPLETED)
            self.assertEqual(run.result, {"output": {"done": True}, "steps": {"only": {"done": True}}})
            self.assertEqual(self.connector.sendings[sent].request.body, compact(arguments).encode())
            first = self.sync(self.store.audit.list(AuditQuery(run_id=run.id))).items[-1].event
            self.assertEqual((first.actor, first.payload["arguments"]), (AGENT, arguments))
            self.assertEqual(self.events(run), ["execution.started", "execution.succeeded"])
        self.assertEqual(len(self.connector.sendings), 2)

    def test_bad_call(self) -> None:
        """Every fault of the arguments is told at once, an absent action is not found, and nothing is kept."""
        for action in ("open", "gated"):
            call = self.call(action, {"times": "x", "more": 1})
            error = self.fails(self.runner.submission.submit(call), InvalidRequest)
            self.assertEqual(len(error.details["problems"]), 3)
        self.fails(self.runner.submission.submit(self.call("nothing")), NotFound)
        self.assertEqual(self.sql("SELECT count(*) FROM runs"), [(0,)])

    def test_needs_approval(self) -> None:
        """An operation that needs an approval is done where one comes before it, and nowhere else, not even to look."""
        needing = {
            name: evolve(each, needs_approval="it is dangerous")
            for name, each in self.connector.description.operations.items()
        }
        self.connector.description = evolve(self.connector.description, operations=needing)
        error = self.fails(self.runner.submission.submit(self.call("open")), CapabilityDenied)
        self.assertIn("needs an approval before it runs: it is dangerous", error.message)
        self.assertEqual(self.connector.sendings, [])
        self.approve(run := self.submit("gated"))
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_committed_before_sent(self) -> None:
        """The connector is called once it is committed that the row says executing, and that an attempt is begun."""
        answer, call = self.unanswered(), self.call("open")
        self.pool.hold()
        submitted = self.later(self.runner.submission.submit(call))
        self.assertNoResult(submitted)
        self.assertEqual(self.connector.sendings, [])
        self.pool.release()
        run = self.successResultOf(submitted)
        self.assertEqual((self.state(run), len(self.connector.sendings)), (RunState.EXECUTING, 1))
        _, attempts = self.sync(self.runner.submission.history(run.id))
        self.assertEqual([attempt.state for attempt in attempts], ["started"])
        answer.callback(Outcome({"done": True}))
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_wait(self) -> None:
        """Who waits is told at the end, each of them; who does not wait that long sees how it stands."""
        answer = self.unanswered()
        run = self.submit("open")
        waiting = [self.later(self.runner.submission.wait(run.id, 30.0)) for _ in range(2)]
        short = self.later(self.runner.submission.wait(run.id, 5.0))
        self.assertNoResult(waiting[0])
        self.clock.advance(5.0)
        self.assertIs(self.successResultOf(short).state, RunState.EXECUTING)
        answer.callback(Outcome({"done": True}))
        for waiter in waiting:
            self.assertIs(self.successResultOf(waiter).state, RunState.COMPLETED)

    def test_wall_clock(self) -> None:
        """Attempts get what is left of the action's time."""
        self.write("open", manifest("open", step("post"), gated=False, top="timeout_seconds = 10"))
        lost = Outcome(fault=Fault("network_error", "refused", "external", True), sent=False)
        self.connector.script.append(lost)
        self.runner.check_changes()
        self.submit("open")
        self.clock.advance(1.0)
        self.assertEqual([each.seconds for each in self.connector.sendings], [10.0, 9.0])


class StepsTests(RunnerCase):
    """An action of several steps."""

    def setUp(self) -> None:
        """One that looks something up and posts what it found."""
        super().setUp()
        found = 'text = "${steps.find.name}", times = "${steps.find.count}"'
        self.offer("both", step("look", "find"), step("post", "tell", found), gated=False)

    def test_results_travel(self) -> None:
        """A later step gets an earlier one's answer, with its type, and its own effect key; each attempt is kept.

        A request that was made of an earlier answer is on record as it was sent.
        """
        self.connector.script.append(Outcome({"name": "x", "count": 7}))
        run = self.now(self.submit("both"))
        sent = '{"text":"x","times":7}'
        self.assertEqual(self.connector.sendings[1].request.body, sent.encode())
        self.assertEqual(
            run.result, {"output": {"done": True}, "steps": {"find": {"name": "x", "count": 7}, "tell": {"done": True}}}
        )
        self.assertEqual(len({each.effect_key for each in self.connector.sendings}), 2)
        steps, attempts = self.sync(self.runner.submission.history(run.id))
        self.assertEqual([each.step_id for each in steps], ["find", "tell"])
        kept = [(each.step_id, each.state) for each in attempts]
        self.assertEqual(kept, [("find", "succeeded"), ("tell", "succeeded")])
        (event,) = self.recorded("execution.succeeded", run)
        find, tell = cast(Any, event.payload["attempts"])
        self.assertNotIn("request", find)
        self.assertEqual(tell["request"]["body"], sent)

    def test_unusable_result(self) -> None:
        """An answer that makes no request fails the run before the next byte, and says which steps are done."""
        self.connector.script.append(Outcome({"name": "x"}))
        run = self.now(self.submit("both"))
        assert run.fault is not None
        self.assertEqual((run.state, run.fault.details["steps_done"]), (RunState.FAILED, ["find"]))
        self.assertEqual(len(self.connector.sendings), 1)


_PASSING = Fault("external_api_error", "busy", "external", retriable=True)
_LASTING = Fault("external_api_error", "no", "external", retriable=False)
_LOST = Fault("network_error", "Nobody there.", "external", retriable=True)
_KINDS = {
    "done": Outcome({"done": True}),
    "busy": Outcome(fault=_PASSING),  # 429
    "refused": Outcome(fault=_LASTING),
    "broken": Outcome(fault=_PASSING, classified=False),  # reset, 502
    "garbled": Outcome(fault=_LASTING, classified=False),
    "unreached": Outcome(fault=_LOST, sent=False, classified=False),
}
_PASSES = frozenset(("busy", "broken", "unreached"))


class RetryTests(SynchronousTestCase):
    """Which failures are tried again, how often, and how soon."""

    def test_table(self) -> None:
        """It waits 1, 2 and 4 seconds, or as asked, and only where a second request may help and does no harm.

        Chance stretches a delay by up to a fifth.
        """
        passing, asked = Outcome(fault=_PASSING), Outcome(fault=_PASSING, retry_after_seconds=7.0)
        own = Outcome(fault=Fault("resource_limit_exceeded", "slow", "sandbox", retriable=True))
        for name, outcome, idempotent, attempts, delay in (
            ("the first", passing, True, 1, 1.0),
            ("the second", passing, True, 2, 2.0),
            ("the third", passing, True, 3, 4.0),
            ("no fourth", passing, True, 4, None),
            ("what the service asks for", asked, True, 1, 7.0),
            ("after the action's time", evolve(asked, retry_after_seconds=61.0), True, 1, None),
            ("could do harm", passing, False, 1, None),
            ("no byte left", evolve(passing, sent=False), False, 1, 1.0),
            ("will not pass", Outcome(fault=_LASTING), True, 1, None),
            ("neither network nor service", own, True, 1, None),
        ):
            self.assertEqual(RetryPolicy(lambda: 0.0).delay(outcome, idempotent, attempts, 60.0), delay, name)
        self.assertEqual(RetryPolicy(lambda: 0.5).delay(passing, True, 1, 60.0), 1.1)


class SequenceTests(SynchronousTestCase):
    """Whole sequences of answers, against a model of what must come of them."""

    @settings(deadline=None, max_examples=examples(60))
    @given(st.sampled_from(("post", "put", "look")), st.lists(st.sampled_from(sorted(_KINDS)), max_size=5))
    def test_sequences(self, operation: str, kinds: list[str]) -> None:
        """What is sent how often, under which key, and what the run comes to, is what the rules say."""
        home = _Home()
        home.setUp()
        home.write("open", manifest("open", step(operation), gated=False))
        home.runner.check_changes()
        home.connector.script.extend(_KINDS[kind] for kind in kinds)
        run = home.submit("open")
        home.clock.pump([0.5] * 16)
        used, state = _model(operation, kinds)
        found = home.now(run)
        self.assertEqual((found.state.value, len(home.connector.sendings)), (state, used))
        self.assertEqual(len({sending.effect_key for sending in home.connector.sendings}), 1)
        _, attempts = home.sync(home.runner.submission.history(run.id))
        self.assertEqual([row.number for row in attempts], list(range(1, used + 1)))
        self.assertTrue(all(row.state != "started" and row.ended_at is not None for row in attempts))
        self.assertEqual(home.events(run).count("execution.attempt"), used - 1)
        self.assertEqual(found.fault and found.fault.details["retried"], None if state == "completed" else used - 1)


class _Home(RunnerCase):
    """A home to run sequences in."""

    def runTest(self) -> None:
        """Not a test by itself."""


def _model(operation: str, kinds: list[str]) -> tuple[int, str]:
    """How many attempts are made, and the state that the run ends in."""
    in_doubt = False
    for number, kind in enumerate([*kinds, "done"], start=1):
        sent, classified, passes = kind != "unreached", kind in {"busy", "refused"}, kind in _PASSES
        if kind == "done":
            return number, "completed"
        in_doubt = in_doubt or (operation != "look" and sent and not classified)
        again = passes and number <= MAX_RETRIES and (operation != "post" or not sent)
        if not again:
            return number, "unknown" if in_doubt else "failed"
    raise AssertionError("the last one is done")
