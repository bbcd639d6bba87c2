"""An action that needs no approval."""

from __future__ import annotations

from aileron.errors import Conflict, InvalidRequest, NotFound
from aileron.values import AuditQuery, Fault, Outcome, RunState

from .kit import AGENT, RunnerCase, manifest, step


class UngatedTests(RunnerCase):
    """From the call to the effect and its record."""

    def test_completes(self) -> None:
        """The effect happens once, with the arguments that were given, and the answer and the record have it."""
        run = self.now(self.submit("open", {"text": "hello", "times": 3}))
        self.assertIs(run.state, RunState.COMPLETED)
        self.assertEqual(run.result, {"output": {"done": True}, "steps": {"only": {"done": True}}})
        self.assertEqual([each.request.body for each in self.connector.sendings], [b'{"text":"hello","times":3}'])
        self.assertEqual(self.events(run), ["execution.started", "execution.succeeded"])

    def test_who_called(self) -> None:
        """The record says who called the action, and with which arguments, before anything else of the run."""
        run = self.now(self.submit("open", {"text": "hello"}))
        first = self.sync(self.store.audit.list(AuditQuery(run_id=run.id))).items[-1].event
        self.assertEqual((first.type, first.actor), ("execution.started", AGENT))
        self.assertEqual(first.payload["arguments"], {"text": "hello"})

    def test_audit_id(self) -> None:
        """The audit id of an answer is that of the event that ended the run."""
        run = self.now(self.submit("open"))
        assert run.audit_id is not None
        record = self.sync(self.store.audit.get(run.audit_id))
        assert record is not None
        self.assertEqual((record.event.type, record.event.run_id), ("execution.succeeded", run.id))
        self.assertEqual(record.event.connector, "local://test/scripted")

    def test_omitted_optional(self) -> None:
        """An optional argument that was not given does not reach the connector."""
        self.submit("open", {"text": "hello"})
        self.assertEqual(self.connector.sendings[0].request.body, b'{"text":"hello"}')

    def test_bad_arguments(self) -> None:
        """Every fault of the arguments is told at once, and nothing is kept."""
        error = self.fails(self.runner.submission.submit(self.call("open", {"times": "x", "more": 1})), InvalidRequest)
        self.assertEqual(len(error.details["problems"]), 3)
        self.assertEqual(self.sync(self.store.audit.list(AuditQuery(type="execution.started"))).items, ())

    def test_unknown_action(self) -> None:
        """An action that is not there is not found."""
        self.fails(self.runner.submission.submit(self.call("nothing")), NotFound)

    def test_committed_before_sent(self) -> None:
        """The row says executing, and an attempt is begun, before the connector is called."""
        answer = self.unanswered()
        run = self.submit("open")
        self.assertIs(self.state(run), RunState.EXECUTING)
        _, attempts = self.sync(self.runner.submission.history(run.id))
        self.assertEqual([attempt.state for attempt in attempts], ["started"])
        answer.callback(Outcome({"done": True}))
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_nothing_sent_before_the_commit(self) -> None:
        """While the commit of executing is under way, the connector has not been called."""
        self.pool.hold()
        submitted = self.later(self.runner.submission.submit(self.call("open", session=None)))
        self.assertNoResult(submitted)
        self.assertEqual(self.connector.sendings, [])
        self.pool.release()
        self.assertIs(self.successResultOf(submitted).state, RunState.EXECUTING)
        self.assertEqual(len(self.connector.sendings), 1)

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

    def test_refused(self) -> None:
        """What the service refuses as declared has failed, with its reason."""
        self.connector.script.append(Outcome(fault=Fault("external_api_error", "no such channel", "external")))
        run = self.now(self.submit("open"))
        self.assertIs(run.state, RunState.FAILED)
        assert run.fault is not None
        self.assertEqual((run.fault.kind, run.fault.details["retried"]), ("external_api_error", 0))
        self.assertEqual(self.events(run)[-1], "execution.failed")

    def test_wall_clock(self) -> None:
        """Attempts get what is left of the action's time."""
        self.write("open", manifest("open", step("post"), gated=False, top="timeout_seconds = 10"))
        lost = Outcome(fault=Fault("network_error", "refused", "external", True), sent=False)
        self.connector.script.append(lost)
        self.runner.look()
        self.submit("open")
        self.clock.advance(1.0)
        self.assertEqual([each.seconds for each in self.connector.sendings], [10.0, 9.0])

    def test_settled_by_a_person(self) -> None:
        """Somebody who looked says what became of a run in doubt, once."""
        for happened, end in ((True, RunState.COMPLETED), (False, RunState.FAILED)):
            self.connector.script.append(Outcome(fault=Fault("external_api_error", "?", "external"), classified=False))
            run = self.submit("open")
            self.assertIs(self.sync(self.runner.reconciliation.settle(run.id, happened, "I looked", AGENT)).state, end)
            self.fails(self.runner.reconciliation.settle(run.id, happened, "again", AGENT), Conflict)
            self.assertEqual(self.events(run)[-1], "run.settled")


class StepsTests(RunnerCase):
    """An action of several steps."""

    def setUp(self) -> None:
        """One that looks something up and posts what it found."""
        super().setUp()
        found = 'text = "${steps.find.name}", times = "${steps.find.count}"'
        self.offer("both", step("look", "find"), step("post", "tell", found), gated=False)

    def test_results_travel(self) -> None:
        """A later step gets an earlier one's answer, with its type, and its own effect key."""
        self.connector.script.append(Outcome({"name": "x", "count": 7}))
        run = self.now(self.submit("both"))
        self.assertEqual(self.connector.sendings[1].request.body, b'{"text":"x","times":7}')
        self.assertEqual(
            run.result, {"output": {"done": True}, "steps": {"find": {"name": "x", "count": 7}, "tell": {"done": True}}}
        )
        self.assertEqual(len({each.effect_key for each in self.connector.sendings}), 2)

    def test_unusable_result(self) -> None:
        """An answer that makes no request fails the run before the next byte, and says which steps are done."""
        self.connector.script.append(Outcome({"name": "x"}))
        run = self.now(self.submit("both"))
        assert run.fault is not None
        self.assertEqual((run.state, run.fault.details["steps_done"]), (RunState.FAILED, ["find"]))
        self.assertEqual(len(self.connector.sendings), 1)

    def test_attempts(self) -> None:
        """Each step's attempts are on record."""
        self.connector.script.append(Outcome({"name": "x", "count": 7}))
        run = self.submit("both")
        steps, attempts = self.sync(self.runner.submission.history(run.id))
        self.assertEqual([each.step_id for each in steps], ["find", "tell"])
        self.assertEqual(
            [(each.step_id, each.state) for each in attempts], [("find", "succeeded"), ("tell", "succeeded")]
        )
