"""What is found out of runs whose outcome is unknown, by looking for the effect."""

from __future__ import annotations

from collections.abc import Callable

from attrs import evolve
from twisted.internet.defer import Deferred

from aileron.base.json import utc
from aileron.model.audit import DAEMON, Event
from aileron.model.connectors import Finding, Outcome
from aileron.model.errors import BindingFailed, CapabilityDenied, Conflict, NotFound, VaultLocked
from aileron.model.faults import Fault
from aileron.model.runs import Run, RunState
from aileron.model.trust import TrustKind
from aileron.model.vault import VaultState
from aileron.runner.reconciler import LOOKS_AFTER_SECONDS
from aileron.testing import ScriptedConnector

from .kit import OPERATOR, RunnerCase, manifest, step

_SILENT = Outcome(fault=Fault("external_api_error", "Reset.", "external"), classified=False)
_HERE = Finding(True, {"ts": "1.2"})
_GONE = Finding(False)
_NOBODY_KNOWS = Finding(None)


class DoubtCase(RunnerCase):
    """Actions whose effect can be looked for, and one that is not answered."""

    def setUp(self) -> None:
        """One gated, one ungated, one of two steps either way."""
        super().setUp()
        self.write("sent", manifest("sent", step("send"), gated=False))
        self.write("asked", manifest("asked", step("send")))
        self.write("first", manifest("first", step("send", "one"), step("post", "two"), gated=False))
        self.offer("second", step("post", "one"), step("send", "two"), gated=False)

    def doubtful(self, action: str = "sent", *before: Outcome) -> Run:
        """A run that nobody can say of what became of it."""
        self.connector.script.extend([*before, _SILENT])
        run = self.submit(action)
        if run.state is RunState.PENDING:
            self.approve(run)
        found = self.now(run)
        self.assertIs(found.state, RunState.UNKNOWN)
        return found

    def record(self, run: Run, type_: str = "execution.reconciled") -> list[Event]:
        """The events of that type, oldest first."""
        return self.recorded(type_, run)


class ScheduleTests(DoubtCase):
    """When it is looked, and what follows."""

    def test_when(self) -> None:
        """It is looked 2, 10, 60, 300 and 660 seconds after it became unknown, each look on record, and no more."""
        run, begun = self.doubtful(), self.clock.seconds()
        seen: list[float] = []
        for _ in range(1000):
            if len(self.connector.looks) > len(seen):
                seen.append(self.clock.seconds() - begun)
            self.clock.advance(1.0)
        self.assertEqual([2.0, 10.0, 60.0, 300.0, 660.0], seen)
        self.assertEqual(LOOKS_AFTER_SECONDS, tuple(seen))
        self.assertEqual([None] * 5, [event.payload["happened"] for event in self.record(run)])
        self.assertIs(self.state(run), RunState.UNKNOWN)

    def test_found(self) -> None:
        """What is found completes the run, with what was found, by the daemon; nothing is sent again or looked for.

        It is looked for by the key and the inputs that the request was made of.  That more than one was found, or that
        the answer held the credential, is on record.
        """
        run = self.doubtful()
        self.connector.findings.extend([_NOBODY_KNOWS, evolve(_HERE, notes={"matches": 2, "echoed": ["plain"]})])
        self.clock.pump([1.0] * 400)
        found = self.now(run)
        self.assertIs(found.state, RunState.COMPLETED)
        self.assertEqual(found.result, {"output": {"ts": "1.2"}, "steps": {"only": {"ts": "1.2"}}})
        last = self.record(run)[-1]
        self.assertEqual((last.id, last.actor, last.payload["happened"]), (found.audit_id, DAEMON, True))
        self.assertEqual((last.payload["matches"], len(self.record(run, "secret.echoed"))), (2, 1))
        self.assertEqual((len(self.connector.sendings), len(self.connector.looks)), (1, 2))
        sought = self.connector.looks[0]
        self.assertEqual(sought.effect_key, self.connector.sendings[0].effect_key)
        self.assertEqual((sought.operation, sought.inputs), ("send", {"text": "hello"}))
        self.assertEqual((sought.first_at, sought.last_at), (run.received_at, run.changed_at))
        steps, attempts = self.sync(self.runner.submission.history(run.id))
        self.assertEqual([(row.step_id, row.output) for row in steps], [("only", {"ts": "1.2"})])
        self.assertEqual([row.state for row in attempts], ["unknown"])

    def test_absent(self) -> None:
        """What certainly did not happen has failed, and says so in place of what was feared."""
        run = self.doubtful()
        self.connector.findings.append(_GONE)
        self.clock.advance(2.0)
        self.assertEqual((self.state(run), self.fault(run).message), (RunState.FAILED, "It did not happen. Reset."))

    def test_failing_looks(self) -> None:
        """A look that fails, or breaks its contract, says nothing, and the next one comes."""
        fault = Fault("network_error", "Nobody there.", "external")
        errors: list[Finding | Deferred[Finding] | Exception] = [
            Finding(None, fault=fault),
            BindingFailed("It does not open."),
            ZeroDivisionError(),
            _HERE,
        ]
        run = self.doubtful()
        self.connector.findings.extend(errors)
        self.clock.pump([1.0] * 300)
        self.assertIs(self.state(run), RunState.COMPLETED)
        self.assertEqual(len(self.flushLoggedErrors(ZeroDivisionError)), 1)
        kinds = [event.failure_class for event in self.record(run)]
        self.assertEqual(kinds, ["network_error", "binding_failed", "connector_runtime_error", None])

    def test_not_now(self) -> None:
        """While it is paused, or the vault is not open, nothing is looked for of itself; a missed look stays missed.

        The operator may look while it is paused.
        """
        run = self.doubtful()
        self.sync(self.runner.limits.pause(None, None, OPERATOR))
        self.clock.pump([1.0] * 5)
        self.sync(self.runner.reconciliation.find_out(run.id, OPERATOR))
        self.sync(self.runner.limits.resume(None, OPERATOR))
        self.vault._state = VaultState.LOST
        self.clock.pump([1.0] * 15)
        self.assertEqual(len(self.connector.looks), 1)
        self.vault._state = VaultState.UNLOCKED
        self.connector.findings.append(_HERE)
        self.clock.pump([1.0] * 45)
        self.assertEqual((self.state(run), len(self.connector.looks)), (RunState.COMPLETED, 2))

    def test_held(self) -> None:
        """Before the vault is locked, and when the daemon stops, nothing is looked for any more, nor waited for."""
        for end in ("hold", "stop"):
            run = self.doubtful()
            self.sync(self.runner.limits.hold() if end == "hold" else self.runner.stop(20.0))
            self.clock.pump([1.0] * 400)
            self.assertEqual((self.state(run), self.connector.looks), (RunState.UNKNOWN, []))
            self.restart()
            self.next_life()

    def test_stop_during_a_look(self) -> None:
        """A look that is under way when the daemon stops is dropped at the end of its patience."""
        run, looking = self.doubtful(), Deferred[Finding]()
        self.connector.findings.append(looking)
        self.clock.advance(2.0)
        self.stop_late(3.0)
        self.assertEqual((self.state(run), self.record(run)), (RunState.UNKNOWN, []))

    def test_settled_meanwhile(self) -> None:
        """A person who settles it during a look wins; what was found is on record alone."""
        run, looking = self.doubtful(), Deferred[Finding]()
        self.connector.findings.append(looking)
        self.clock.advance(2.0)
        self.sync(self.runner.reconciliation.settle(run.id, False, "I looked.", OPERATOR))
        looking.callback(_HERE)
        self.assertEqual((self.state(run), self.now(run).reason), (RunState.FAILED, "I looked."))
        self.assertEqual([event.payload["happened"] for event in self.record(run)], [True])
        self.clock.pump([1.0] * 400)
        self.assertEqual(len(self.connector.looks), 1)

    def test_many(self) -> None:
        """However many are in doubt, eight are looked for at once, and all in the end."""
        for number in range(20):
            self.connector.script.append(_SILENT)
            self.submit("sent", {"text": str(number)})
        waiting = [Deferred[Finding]() for _ in range(20)]
        self.connector.findings.extend(waiting)
        self.clock.advance(2.0)
        self.assertEqual(len(self.connector.looks), 8)
        for each in waiting:
            each.callback(_HERE)
        self.assertEqual(len(self.connector.looks), 20)


class ClockTests(DoubtCase):
    """Somebody sets the clock."""

    passed = 0.0

    def monotonic(self) -> float:
        """Seconds by a clock that nobody sets."""
        return self.clock.seconds() + self.passed

    def test_forward(self) -> None:
        """An attempt is as long ago as has passed by a clock that nobody sets, however the other one is."""
        run = self.doubtful()
        self.passed -= 3600.0
        self.clock.advance(3600.0)
        self.sync(self.runner.reconciliation.find_out(run.id, OPERATOR))
        self.assertEqual(self.connector.looks[-1].last_at, utc(self.clock.seconds()))
        self.assertEqual(self.connector.looks[-1].first_at, run.received_at)


class StepsTests(DoubtCase):
    """Runs of several steps."""

    def test_not_the_last(self) -> None:
        """Where an earlier step is found, that is noted on the step and told; the rest is not begun by itself.

        Where the last is found, or a person settles the rest, the run is complete, with what the others came to.
        """
        for finding, steps in ((_HERE, ["one"]), (_GONE, [])):
            self.connector.looks.clear()
            run = self.doubtful("first")
            before = run.audit_id
            self.connector.findings.append(finding)
            self.clock.pump([1.0] * 400)
            found = self.now(run)
            self.assertEqual((found.state, found.audit_id), (RunState.UNKNOWN, before))
            self.assertEqual(self.fault(run).details["found"], {"step": "one", "happened": finding.happened})
            self.assertEqual([row.step_id for row in self.sync(self.runner.submission.history(run.id))[0]], steps)
            self.assertEqual((len(self.connector.looks), self.connector.script), (1, []))
            settled = self.sync(self.runner.reconciliation.settle(run.id, True, "Did the rest by hand.", OPERATOR))
            done = {"one": {"ts": "1.2"}} if steps else {}
            self.assertEqual(settled.result, {"output": None, "steps": done})
        run = self.doubtful("second", Outcome({"a": 1}))
        self.connector.findings.append(_HERE)
        self.clock.advance(2.0)
        expected = {"output": {"ts": "1.2"}, "steps": {"one": {"a": 1}, "two": {"ts": "1.2"}}}
        self.assertEqual((self.state(run), self.now(run).result), (RunState.COMPLETED, expected))


class LaterLifeTests(DoubtCase):
    """What another life of the daemon finds out."""

    def crash(self, action: str = "sent") -> Run:
        """A run that was under way when the daemon died."""
        self.connector.script.append(Deferred())
        run = self.submit(action)
        if run.state is RunState.PENDING:
            self.approve(run)
        for call in list(self.clock.getDelayedCalls()):
            call.cancel()
        return run

    def test_under_way(self) -> None:
        """A run that was under way is unknown first, and then found: it happened once, or certainly did not."""
        for action in ("sent", "asked"):
            for finding, state in ((_HERE, RunState.COMPLETED), (_GONE, RunState.FAILED)):
                run = self.crash(action)
                self.restart()
                self.assertIs(self.state(run), RunState.UNKNOWN)
                self.connector.findings.append(finding)
                self.clock.advance(2.0)
                self.assertIs(self.state(run), state)
            self.assertEqual(self.fault(run).kind, "internal_error")
        self.assertEqual(set(self.connector.effects().values()), {1})

    def test_begins_anew(self) -> None:
        """What was not found before a restart is looked for from the beginning, for a day."""
        run = self.doubtful()
        self.clock.pump([1.0] * 30)
        for call in list(self.clock.getDelayedCalls()):
            call.cancel()
        self.restart()
        self.connector.looks.clear()
        self.clock.pump([1.0] * 12)
        self.assertEqual(len(self.connector.looks), 2)
        for call in list(self.clock.getDelayedCalls()):
            call.cancel()
        self.clock.advance(24 * 3600.0)
        self.restart()
        self.clock.pump([1.0] * 12)
        self.assertEqual((len(self.connector.looks), self.state(run)), (2, RunState.UNKNOWN))

    def test_changed(self) -> None:
        """Where the action or its connector is another by now, nothing is asked of it: a person settles it."""
        other = manifest("sent", step("send"), gated=False, body="Other.")
        changes: list[Callable[[], object]] = [
            lambda: self.write("sent", other),
            lambda: self.write("sent", other, trusted=False),
            lambda: self.connectors.add(self.successor()),
            lambda: self.connectors.remove("local://test/scripted"),
        ]
        for change in changes:
            run = self.crash()
            change()
            self.restart()
            self.clock.pump([1.0] * 400)
            self.assertEqual((self.state(run), self.connector.looks), (RunState.UNKNOWN, []))
            self.fails(self.runner.reconciliation.find_out(run.id, OPERATOR), Conflict)
            self.write("sent", manifest("sent", step("send"), gated=False))
            self.connectors.add(self.connector)
            self.believe_connectors()
            self.restart()

    def successor(self) -> ScriptedConnector:
        """The same connector with other content, trusted."""
        description = evolve(self.connector.description, content_hash="sha256:other")
        self.believe(TrustKind.CONNECTOR, description.name, description.content_hash)
        return evolve(self.connector, description=description)

    def test_altered_rows(self) -> None:
        """What somebody wrote into the rows is asked of no service."""
        statements = (
            """UPDATE runs SET arguments = '{"text":"forged"}' WHERE id = ?1""",
            "UPDATE runs SET effect_key = 'another' WHERE id = ?1",
            "UPDATE approvals SET decision_mark = NULL WHERE run_id = ?1",
            "UPDATE approvals SET approved = 0 WHERE run_id = ?1",
            "DELETE FROM approvals WHERE run_id = ?1",
            "INSERT INTO run_steps VALUES (?1, 'other', 0, 'completed', NULL)",
        )
        for statement in statements:
            run = self.crash("asked")
            self.sql(statement, run.id)
            self.restart()
            self.clock.pump([1.0] * 20)
            self.assertEqual((self.state(run), self.connector.looks), (RunState.UNKNOWN, []), statement)
            self.clock.advance(600)  # what reads as denied has cooled down


class AskedTests(DoubtCase):
    """The operator has it looked for."""

    def test_now(self) -> None:
        """It is looked at once, by the operator, as often as they ask, and what is found settles it."""
        run = self.doubtful()
        for _ in range(3):
            found, finding = self.sync(self.runner.reconciliation.find_out(run.id, OPERATOR))
            self.assertEqual((found.state, finding.happened), (RunState.UNKNOWN, None))
        self.connector.findings.append(_HERE)
        found, finding = self.sync(self.runner.reconciliation.find_out(run.id, OPERATOR))
        self.assertEqual((found.state, finding), (RunState.COMPLETED, _HERE))
        self.assertEqual(self.record(run)[-1].actor, OPERATOR)

    def test_refused(self) -> None:
        """It is refused where nothing can be looked for."""
        self.fails(self.runner.reconciliation.find_out("nothing", OPERATOR), NotFound)
        self.fails(self.runner.reconciliation.find_out(self.doubtful("open").id, OPERATOR), CapabilityDenied)
        self.fails(self.runner.reconciliation.find_out(self.submit().id, OPERATOR), Conflict)
        run = self.doubtful()
        self.vault.lock()
        self.fails(self.runner.reconciliation.find_out(run.id, OPERATOR), VaultLocked)

    def test_reconcilable(self) -> None:
        """Whether a look is possible is told without one: not where nothing can be looked for, or where it changed."""
        found, other, settled = self.doubtful(), self.doubtful("open"), self.submit()
        told = [self.sync(self.runner.reconciliation.is_reconcilable(run.id)) for run in (found, other, settled)]
        self.assertEqual((told, self.connector.looks), ([True, False, False], []))
        self.fails(self.runner.reconciliation.is_reconcilable("nothing"), NotFound)
        self.write("sent", manifest("sent", step("send"), gated=False, body="Other."))
        self.assertFalse(self.sync(self.runner.reconciliation.is_reconcilable(found.id)))
        self.write("sent", manifest("sent", step("send"), gated=False))
        self.vault.lock()
        self.assertTrue(self.sync(self.runner.reconciliation.is_reconcilable(found.id)))

    def test_caller_leaves(self) -> None:
        """A caller that leaves leaves the look, and what it finds is kept."""
        run, looking = self.doubtful(), Deferred[Finding]()
        self.connector.findings.append(looking)
        asked = self.later(self.runner.reconciliation.find_out(run.id, OPERATOR))
        asked.cancel()
        self.failureResultOf(asked)
        looking.callback(_HERE)
        self.assertIs(self.state(run), RunState.COMPLETED)
