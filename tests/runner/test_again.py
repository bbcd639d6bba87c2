"""Doing again what nobody can say whether it happened."""

from __future__ import annotations

import json
from collections.abc import Sequence

from attrs import evolve

from aileron.base.json import utc
from aileron.model.audit import Event
from aileron.model.authority import NewGrant, PendingLimits
from aileron.model.connectors import Finding, Outcome
from aileron.model.errors import ApprovalStale, Conflict, LimitExceeded, NotFound, StoreUnavailable
from aileron.model.faults import Fault
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.runs import Decision, Run, RunState, Transition
from aileron.testing import RunsProxy

from .kit import OPERATOR, manifest, step
from .test_reconciling import DoubtCase


class _Killed(RunsProxy):
    """Runs whose process is killed once a change is committed: the caller learns nothing of it, nor writes more."""

    is_over = False

    async def apply(self, *transitions: Transition) -> Run:
        """See L{IRuns}."""
        if not self.is_over:
            await self.original.apply(*transitions)
        self.is_over = True
        raise StoreUnavailable("The process was killed.")

    async def receive(self, run: Run, transitions: Sequence[Transition], limits: PendingLimits) -> tuple[Run, bool]:
        """See L{IRuns}."""
        if not self.is_over:
            await self.original.receive(run, transitions, limits)
        self.is_over = True
        raise StoreUnavailable("The process was killed.")


class AgainTests(DoubtCase):
    """A new run, linked to the old."""

    def again(self, run: Run, note: str = "Once more.") -> Run:
        """Have it done again."""
        return self.sync(self.runner.reconciliation.run_again(run.id, note, OPERATOR))

    def test_asked(self) -> None:
        """What needs no approval is asked about all the same, as a run of the same session that names the old one.

        It is the action as it is now.  The old one stays unknown, and says as which it is done again, why and by whom.
        """
        parent = self.doubtful("open")
        self.write("open", manifest("open", step("post"), gated=False, body="Other."))
        child, now = self.again(parent), self.now(parent)
        self.assertEqual((child.state, child.gated, child.parent_id), (RunState.PENDING, True, parent.id))
        self.assertEqual((child.arguments, child.session_id), (parent.arguments, parent.session_id))
        self.assertNotEqual(child.manifest_digest, parent.manifest_digest)
        self.assertEqual((now.reason, now.audit_id), ("Once more.", parent.audit_id))
        self.assertEqual(self.fault(parent).details["run_again"], child.id)
        (event,) = self.record(parent, "run.run_again")
        self.assertEqual((event.actor, event.payload["by"], event.payload["note"]), (OPERATOR, child.id, "Once more."))
        self.assertEqual(len(self.connector.sendings), 1)
        self.assertEqual((now.repeated_by, now.superseded_by), (child.id, None))
        self.approve(child)
        self.assertEqual((self.state(child), self.state(parent)), (RunState.COMPLETED, RunState.UNKNOWN))
        self.assertEqual(self.now(parent).superseded_by, child.id)
        (event,) = self.record(parent, "run.superseded")
        self.assertEqual((event.actor.id, event.payload["by"]), (OPERATOR.id, child.id))
        self.assertEqual(len(self.connector.sendings), 2)

    def test_not_superseded(self) -> None:
        """A repetition that is denied leaves the question of the old run open."""
        parent = self.doubtful("open")
        child = self.again(parent)
        self.approve(child, approved=False)
        self.assertEqual((self.now(parent).superseded_by, self.record(parent, "run.superseded")), (None, []))

    def test_killed_after_the_decision(self) -> None:
        """The old run is marked in the same transaction that approves its repetition, so no kill comes between."""
        parent = self.doubtful("open")
        child = self.again(parent)
        decision = self.yes(child)
        self.runner = self.build(runs=_Killed(self.store.runs))
        self.sync(self.runner.start())
        self.fails(self.runner.decisions.decide(child.id, decision), StoreUnavailable)
        self.assertIs(self.state(child), RunState.APPROVED)
        self.assertEqual(self.now(parent).superseded_by, child.id)
        self.assertEqual([each.payload["by"] for each in self.record(parent, "run.superseded")], [child.id])

    def test_killed_after_the_request(self) -> None:
        """The old run names its repetition in the same transaction that puts that up."""
        parent = self.doubtful("open")
        self.runner = self.build(runs=_Killed(self.store.runs))
        self.sync(self.runner.start())
        self.fails(self.runner.reconciliation.run_again(parent.id, "Once more.", OPERATOR), StoreUnavailable)
        (child,) = self.sync(self.store.runs.list(RunQuery(parent_id=parent.id))).items
        now = self.now(parent)
        self.assertEqual((now.repeated_by, now.reason), (child.id, "Once more."))
        self.assertEqual([each.payload["by"] for each in self.record(parent, "run.run_again")], [child.id])

    def test_effect_key(self) -> None:
        """It has the old key only where every write is declared idempotent."""
        self.write("open", manifest("open", step("look", "a"), step("put", "b"), gated=False))
        self.offer("mixed", step("put", "a"), step("post", "b"), gated=False)
        for action, before, same in (("open", Outcome(), True), ("mixed", Outcome(), False)):
            parent = self.doubtful(action, before)
            child = self.again(parent)
            self.assertIs(child.effect_key == parent.effect_key, same)
            self.approve(child)
            keys = {sending.effect_key.partition(".")[0] for sending in self.connector.sendings}
            self.assertEqual(len(keys), 1 if same else 2)
            self.connector.sendings.clear()

    def test_unseen(self) -> None:
        """An action in which a write uses another step's answer is not done again, since nobody could see that write.

        A read may use one: it begins anew, like every step.
        """
        wanted = 'text = "${steps.a.said}"'
        read = step("look", "b", wanted)
        self.offer("unseen", step("look", "a"), step("post", "b", wanted), gated=False)
        self.offer("seen", step("look", "a"), read, step("post", "c"), gated=False)
        answer = Outcome({"said": "hello"})
        parent = self.doubtful("unseen", answer)
        refused = self.fails(self.runner.reconciliation.run_again(parent.id, "", OPERATOR), Conflict)
        self.assertIn("cannot be shown", refused.message)
        self.assertEqual((self.state(parent), self.record(parent, "run.run_again")), (RunState.UNKNOWN, []))
        child = self.again(self.doubtful("seen", answer, answer))
        self.connector.sendings.clear()
        self.connector.script.extend([Outcome({"said": "other"}), answer, answer])
        self.approve(child)
        self.assertEqual([json.loads(each.request.body or b"")["text"] for each in self.connector.sendings][1], "other")

    def test_once(self) -> None:
        """While one that does it again is open, or unknown itself, there is no second; after that there may be."""
        parent = self.doubtful("open")
        first = self.again(parent)
        refused = self.fails(self.runner.reconciliation.run_again(parent.id, "", OPERATOR), Conflict)
        self.assertEqual((refused.details["run_id"], refused.details["state"]), (first.id, "pending_approval"))
        self.approve(first, approved=False)
        second = self.again(parent)
        self.connector.script.append(evolve(Outcome(), classified=False, fault=parent.fault))
        self.approve(second)
        self.assertIs(self.state(second), RunState.UNKNOWN)
        self.fails(self.runner.reconciliation.run_again(parent.id, "", OPERATOR), Conflict)
        third = self.again(second)
        self.assertEqual(third.parent_id, second.id)

    def test_found_at_the_same_time(self) -> None:
        """What is found out while it is put up again is kept beside that, whichever is written first."""
        parent = self.doubtful("first")
        for _ in range(12):
            self.connector.findings.append(Finding(True))
        self.pool.hold()
        again = self.later(self.runner.reconciliation.run_again(parent.id, "", OPERATOR))
        looks = []
        for _ in range(12):
            looks.append(self.later(self.runner.reconciliation.find_out(parent.id, OPERATOR)))
            self.pool.step()
        self.pool.release()
        fault = self.fault(parent)
        self.assertEqual(fault.details["run_again"], self.successResultOf(again).id)
        self.assertEqual(fault.details["found"], {"step": "one", "happened": True})
        for each in looks:
            each.addErrback(lambda failure: failure.trap(Conflict))

    def test_refused(self) -> None:
        """What is not unknown, not there, or not offered any more is not done again."""
        self.fails(self.runner.reconciliation.run_again("nothing", "", OPERATOR), NotFound)
        self.fails(self.runner.reconciliation.run_again(self.submit("open").id, "", OPERATOR), Conflict)
        parent = self.doubtful("open")
        (self.directory / "open.md").unlink()
        self.runner.check_changes()
        self.fails(self.runner.reconciliation.run_again(parent.id, "", OPERATOR), NotFound)
        self.assertEqual(self.sync(self.store.audit.list(AuditQuery(type="run.run_again"))).items, ())

    def test_limits(self) -> None:
        """It counts among those that may wait."""
        self.limits = PendingLimits(per_session=0)
        self.runner = self.build()
        self.sync(self.runner.start())
        parent = self.doubtful("open")
        self.fails(self.runner.reconciliation.run_again(parent.id, "", OPERATOR), LimitExceeded)
        self.assertEqual(self.now(parent).fault, parent.fault)

    def test_caller_leaves(self) -> None:
        """A caller that leaves leaves no half of it."""
        parent = self.doubtful("open")
        self.pool.hold()
        asked = self.later(self.runner.reconciliation.run_again(parent.id, "", OPERATOR))
        asked.cancel()
        self.failureResultOf(asked)
        self.pool.release()
        fault = self.fault(parent)
        self.assertIs(
            self.now(self.sync(self.runner.submission.run(str(fault.details["run_again"])))).state, RunState.PENDING
        )

    def test_found_out_meanwhile(self) -> None:
        """Once the old one is known to have happened, the new one is neither approved nor begun, whenever it was."""
        parent = self.doubtful("open")
        child = self.again(parent)
        shown = self.shown(child)
        self.sync(self.runner.reconciliation.settle(parent.id, True, "I looked.", OPERATOR))
        yes = Decision(True, shown.digest, OPERATOR.id)
        self.fails(self.runner.decisions.decide(child.id, yes), ApprovalStale)
        self.assertIs(self.approve(child, approved=False).run.state, RunState.DENIED)

    def approved_and_found_out(self) -> tuple[Run, Run]:
        """An old run that was found to have happened once its successor was approved to begin later; and that."""
        parent = self.doubtful("open")
        child = self.again(parent)
        shown = self.shown(child)
        later = Decision(True, shown.digest, OPERATOR.id, not_before=utc(self.clock.seconds() + 60.0))
        self.sync(self.runner.decisions.decide(child.id, later))
        self.sync(self.runner.reconciliation.settle(parent.id, True, "I looked.", OPERATOR))
        return parent, child

    def assert_asked_anew(self, child: Run) -> None:
        """When its minute is over, it waits for a decision, and only the old run's request has been sent."""
        self.clock.pump([1.0] * 62)
        self.assertEqual((self.state(child), len(self.connector.sendings)), (RunState.PENDING, 1))

    def test_found_out_after_the_decision(self) -> None:
        """One that was approved and had not begun by then is asked anew, whatever another program writes.

        What it would do again is part of what was approved.  What the record tells of the old run counts, and not
        its row, however many events were kept since, and though other contents were put into their place.
        """
        unknown = "UPDATE runs SET state = 'unknown' WHERE id = '{parent.id}'"
        altered = "UPDATE audit_payloads SET payload = replace(payload, 'true', 'null')"
        for statements, events in (
            ([], 0),
            (["UPDATE runs SET parent_id = NULL WHERE id = '{child.id}'"], 0),
            ([unknown], 0),
            ([unknown], 1001),
            ([unknown, altered], 0),
        ):
            self.setUp()
            parent, child = self.approved_and_found_out()
            for statement in statements:
                self.sql(statement.format(parent=parent, child=child))
            for type_ in ("execution.attempt", "execution.reconciled"):
                self.append(parent, type_, events)
            self.assert_asked_anew(child)

    def test_contents_deleted(self) -> None:
        """Where the contents of what was found out of the old run are gone, the new one is neither approved nor begun.

        It may have happened; who denies it can have the agent ask anew.
        """
        _, child = self.approved_and_found_out()
        self.sql("DELETE FROM audit_payloads")
        self.assert_asked_anew(child)
        shown = self.shown(child)
        refused = self.fails(
            self.runner.decisions.decide(child.id, Decision(True, shown.digest, OPERATOR.id)), ApprovalStale
        )
        self.assertIn("were deleted or altered", refused.message)
        self.assertIs(self.approve(child, approved=False).run.state, RunState.DENIED)

    def test_nothing_found_out(self) -> None:
        """An old run that was looked for often, and never found, is done again."""
        parent = self.doubtful("open")
        child = self.again(parent)
        self.append(parent, "execution.reconciled", 1001)
        self.approve(child)
        self.assertEqual((self.state(child), len(self.connector.sendings)), (RunState.COMPLETED, 2))

    def append(self, run: Run, type_: str, count: int) -> None:
        """Put events of a run on record that tell of no success."""
        now = utc(self.clock.seconds())
        events = [Event(self.fresh_id(), type_, now, OPERATOR, {"happened": None}, run.id) for _ in range(count)]
        self.sync(self.store.audit.append(*events))

    def test_another_key(self) -> None:
        """The effect key is part of what is approved: a row that has another is not what was shown."""
        child = self.again(self.doubtful("open"))
        shown = self.shown(child)
        self.sql("UPDATE runs SET effect_key = 'another' WHERE id = ?", child.id)
        self.fails(self.runner.decisions.decide(child.id, Decision(True, shown.digest, OPERATOR.id)), ApprovalStale)

    def test_no_grant(self) -> None:
        """A standing grant that allows such a call decides the next one, and not that an old one is done again."""
        first = self.submit("asked")
        shown = self.shown(first)
        wish = NewGrant((), 5, utc(self.clock.seconds() + 3600.0), session=False)
        decision = Decision(True, shown.digest, OPERATOR.id)
        self.sync(self.runner.decisions.approve_and_grant(first.id, decision, wish))
        self.connector.script.append(evolve(Outcome(), classified=False, fault=Fault("external_api_error", "Reset.")))
        parent = self.now(self.submit("asked"))
        self.assertIs(parent.state, RunState.UNKNOWN)
        self.assertIs(self.now(self.again(parent)).state, RunState.PENDING)
