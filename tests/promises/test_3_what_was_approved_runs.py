"""3. What was approved is what runs: bound by one digest, looked at again before the effect, good for one use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from attrs import evolve

from aileron.errors import ApprovalStale, Conflict
from aileron.values import Decision, NewBinding, ReviewedRequest, Run
from tests.runner.kit import manifest, step

from .case import OPERATOR, PromiseCase


class ReviewedTests(PromiseCase):
    """Between what was shown and what is sent there is no difference."""

    def test_shown_is_sent(self) -> None:
        """The request that leaves is, byte for byte, the one that the operator was shown."""
        run = self.submit("gated", {"text": "exactly this", "times": 3})
        steps = self.shown(run).review.steps
        self.approve(run)
        sent = ReviewedRequest.of(self.connector.sendings[0].request)
        self.assertEqual([sent], [step.request for step in steps])

    def test_digest(self) -> None:
        """A decision that does not name what is shown decides nothing."""
        run = self.submit()
        self.fails(self.runner.decisions.decide(run.id, Decision(True, "sha256:00", OPERATOR.id)), ApprovalStale)
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))

    def test_each_call_its_own(self) -> None:
        """Two runs of the same call have two digests: the one's decision is not the other's."""
        one, other = self.submit(), self.submit()
        self.fails(self.runner.decisions.decide(other.id, self.yes(one)), ApprovalStale)
        self.assertEqual(self.sent, 0)

    def test_action_changed(self) -> None:
        """Where the action has changed since it was shown, the old decision is refused."""
        self.decided_late(self.change_action)

    def test_words_changed(self) -> None:
        """Likewise where not a request of it is another, but the words in which the agent was told of it."""
        self.decided_late(lambda: self.write("gated", manifest("gated", step("post"), body="Other words.")))

    def test_connector_changed(self) -> None:
        """Likewise where the connector has."""
        self.decided_late(self.change_connector)

    def test_place_changed(self) -> None:
        """Likewise where it leads to another place."""
        self.decided_late(self.change_place)

    def test_binding_changed(self) -> None:
        """Likewise where another credential is bound."""
        self.decided_late(self.change_binding)

    def decided_late(self, change: Callable[[], None]) -> None:
        """Assert that a decision for what was before C{change} is refused, and what is there now is asked."""
        run = self.submit()
        yes = self.yes(run)
        change()
        self.runner.look()
        self.fails(self.runner.decisions.decide(run.id, yes), ApprovalStale)
        self.assertNotEqual(self.yes(run).digest, yes.digest)
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))

    def change_action(self) -> None:
        """Another text of the action, trusted."""
        self.write("gated", manifest("gated", step("put")))

    def change_connector(self) -> None:
        """Another content of the connector, trusted."""
        self.connector.description = evolve(self.connector.description, content_hash="sha256:11")
        self.believe_connectors()

    def change_place(self) -> None:
        """Another place, of a connector that calls itself the same."""
        self.connector.description = evolve(
            self.connector.description, base_url="https://other.invalid", hosts=("other.invalid:443",)
        )

    def change_binding(self) -> None:
        """A credential."""
        fqn = self.connector.description.fqn
        self.bindings.add(NewBinding("api_key", "test", "default", fqn, b"of-no-account"))


class StillTests(PromiseCase):
    """The decision is taken; it must still be for what is there when the effect begins."""

    def asked_anew(self, run: Run, why: str) -> None:
        """Assert that a new life asks, and says why."""
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))
        self.assertIn(why, self.shown(run).stale or "")

    def test_action(self) -> None:
        """An action that changed after the decision is shown anew."""
        run = self.held()
        self.write("gated", manifest("gated", step("put")))
        self.asked_anew(run, "changed")

    def test_connector(self) -> None:
        """So is what its connector would send elsewhere."""
        run = self.held()
        ReviewedTests.change_place(self)  # type: ignore[arg-type]
        self.asked_anew(run, "changed")

    def test_arguments(self) -> None:
        """Arguments that were written into the row are not what was approved, and that is on record."""
        run = self.held()
        self.sql("""UPDATE runs SET arguments = '{"text":"forged"}' WHERE id = ?""", run.id)
        self.asked_anew(run, "not what was approved")
        self.assertIn("tamper.detected", self.events(run))

    def test_digest(self) -> None:
        """A digest that was written into the row has no mark."""
        run = self.held()
        self.sql("UPDATE approvals SET digest = 'sha256:00' WHERE run_id = ?", run.id)
        self.asked_anew(run, "")

    def test_digest_and_action(self) -> None:
        """Nor has the digest of another action that was put in its place, true as it is."""
        run = self.held()
        self.offer("gated", step("put"))
        other = self.runner.decisions._gate.requests.plan(run).digest(run)
        self.sql("UPDATE approvals SET digest = ? WHERE run_id = ?", other, run.id)
        self.forge_record(run, other)
        self.asked_anew(run, "mark")

    def test_mark_binds(self) -> None:
        """Nothing of a decision can be altered: who took it, when, for how long, for which effect."""
        for altered in ("decided_by = 'other'", "not_after = '2099-01-01T00:00:00.000000Z'", "not_before = decided_at"):
            run = self.held()
            self.sql(f"UPDATE approvals SET {altered} WHERE run_id = ?", run.id)
            self.asked_anew(run, "mark")

    def test_too_old(self) -> None:
        """A decision that began nothing for a day is asked for once more."""
        run = self.held()
        self.clock.advance(timedelta(hours=24, seconds=1).total_seconds())
        self.asked_anew(run, "24 hours")

    def test_once(self) -> None:
        """A decision is good for one use: its row, put back, begins nothing."""
        run = self.submit()
        self.approve(run)
        self.assertEqual(self.sent, 1)
        self.set_state(run)
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 1))

    def test_once_unrecorded(self) -> None:
        """Nor does it where the record of that use is hidden: the vault remembers."""
        run = self.submit()
        self.approve(run)
        self.set_state(run)
        self.hide("execution.%")
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 1))

    def test_once_while_it_begins(self) -> None:
        """Nor does it where the row is put back while this very life begins it: the vault knows that it was used."""
        run = self.held()
        (mark,) = self.marks(run)
        head = self.sync(self.store.audit.head())
        assert head is not None
        self.when("before runs.apply executing", lambda: self.control.spend(mark, run.changed_at, head[0], head[1]))
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("failed", 0))
        self.assertIn("tamper.detected", self.events(run))

    def test_key(self) -> None:
        """A decision under the key of an earlier passphrase is asked for once more."""
        run = self.held()
        self.control.change_key(b"another key of thirty-two bytes!")
        self.asked_anew(run, "an earlier key")
        self.assertNotIn("tamper.detected", self.events(run))

    def test_twice(self) -> None:
        """Deciding twice is a conflict, and one effect."""
        run = self.submit()
        yes = self.yes(run)
        self.sync(self.runner.decisions.decide(run.id, yes))
        self.fails(self.runner.decisions.decide(run.id, yes), Conflict)
        self.assertEqual(self.sent, 1)

    def test_changed_while_deciding(self) -> None:
        """What is asked anew between the look and the commit is not decided by the old word."""
        run = self.submit()
        yes = self.yes(run)
        other = "UPDATE approvals SET digest = 'sha256:00' WHERE run_id = ?"
        self.when("before runs.apply approved", lambda: self.sql(other, run.id))
        self.restart()
        self.fails(self.runner.decisions.decide(run.id, yes), ApprovalStale)
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))

    def marks(self, run: Run) -> list[bytes]:
        """The mark under a run's decision."""
        approval = self.sync(self.store.runs.approval(run.id))
        return [approval.mark] if approval is not None and approval.mark is not None else []
