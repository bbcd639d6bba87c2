"""3. What was approved is what runs: bound by one digest, looked at again before the effect, good for one use."""

from __future__ import annotations

from collections.abc import Callable
from datetime import timedelta

from attrs import evolve

from aileron.model.connectors import ConnectorDescription, CredentialNeed
from aileron.model.errors import ApprovalStale, Conflict
from aileron.model.reviews import ReviewedRequest
from aileron.model.runs import Decision, Run
from aileron.testing import ScriptedConnector, new_binding, scripted_description
from tests.runner.kit import manifest, step

from .case import OPERATOR, PromiseCase

_INPUT = """
[[inputs]]
name = "style"
type = "string"
description = "How"
default = "plain"
"""

_FILE = manifest("gated", step("post", inputs='text = "${args.text}", style = "${args.style}"'), top=_INPUT)
_PLACES = "https://one.invalid", "https://two.invalid"


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
        """A decision that does not name what is shown decides nothing, and is told what is."""
        run = self.submit()
        wrong = Decision(True, "sha256:00", OPERATOR.id)
        error = self.fails(self.runner.decisions.decide(run.id, wrong), ApprovalStale)
        self.assertEqual(error.details["digest"], self.shown(run).digest)
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))

    def test_each_call_its_own(self) -> None:
        """Two runs of the same call have two digests: the one's decision is not the other's."""
        one, other = self.submit(), self.submit()
        self.fails(self.runner.decisions.decide(other.id, self.yes(one)), ApprovalStale)
        self.assertEqual(self.sent, 0)

    def test_place_changed(self) -> None:
        """Where its connector, which calls itself the same, leads to another place, the old decision is refused."""
        run = self.submit()
        yes = self.yes(run)
        self.connector.description = evolve(
            self.connector.description, base_url="https://other.invalid", hosts=("other.invalid:443",)
        )
        self.runner.check_changes()
        self.fails(self.runner.decisions.decide(run.id, yes), ApprovalStale)
        self.assertNotEqual(self.yes(run).digest, yes.digest)
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))


class ChangesTests(PromiseCase):
    """A connector that needs a credential and lets a binding say where it is; an argument with a default."""

    def setUp(self) -> None:
        """Bind one account at one place."""
        super().setUp()
        need = CredentialNeed("api_key", "Authorization", "Bearer {key}")
        self.put(evolve(scripted_description(), credential=need, bindable=True))
        self.bind("one", _PLACES[0])
        self.write("gated", _FILE)
        self.runner.check_changes()

    def put(self, description: ConnectorDescription) -> None:
        """Have the connector be as described, and trusted."""
        self.connector = ScriptedConnector(description, clock=self.clock)
        self.connectors.add(self.connector)
        self.believe_connectors()

    def bind(self, identity: str, base_url: str) -> None:
        """Have this account bound, there, and no other."""
        for binding in self.bindings.list():
            self.sync(self.bindings.revoke(binding.name))
        new = new_binding(identity=identity, connector="local://test/scripted")
        scope = self.connector.description.scope(base_url)
        self.bindings.add(evolve(new, base_url=base_url, scope=scope))

    def test_asked_anew(self) -> None:
        """Whatever changes before the decision, or between that and the effect, is asked anew, with the difference."""
        forge = "UPDATE runs SET arguments = replace(arguments, 'hello', 'other')"
        binding, step = "/steps/0/binding", "/steps/0"
        changes: tuple[tuple[Callable[[], object], set[str]], ...] = (
            (lambda: self.sql(forge), {"/fields/1/value", f"{step}/request/body"}),
            (lambda: self.write("gated", _FILE.replace('"plain"', '"bold"')), {"/manifest_digest"}),
            (lambda: self.write("gated", _FILE.replace("Says something.", "Says it.")), {"/manifest_digest"}),
            (lambda: self.put(evolve(self.connector.description, content_hash="other")), {f"{step}/content_hash"}),
            (lambda: self.bind("two", _PLACES[0]), {f"{binding}/name", f"{binding}/revision"}),
            (
                lambda: self.bind("one", _PLACES[1]),
                {f"{step}/base_url", f"{step}/request/url", f"{binding}/base_url", f"{binding}/revision"},
            ),
        )
        for change, paths in changes:
            for decided in (False, True):
                self.setUp()
                run = self.submit()
                yes = self.yes(run)
                if decided:
                    self.sync(self.runner.limits.hold())
                    self.sync(self.runner.decisions.decide(run.id, yes))
                    change()
                    self.restart()
                else:
                    change()
                    self.fails(self.runner.decisions.decide(run.id, yes), ApprovalStale)
                shown = self.shown(run)
                self.assertEqual((self.state(run), self.sent, shown.approved), ("pending_approval", 0, None))
                self.assertNotEqual(shown.digest, yes.digest)
                self.assertIsNotNone(shown.stale)
                self.assertEqual({each.path for each in shown.changes}, paths)


class StillTests(PromiseCase):
    """The decision is taken; it must still be for what is there when the effect begins."""

    def asked_anew(self, run: Run, why: str) -> None:
        """Assert that a new life asks, and says why."""
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 0))
        self.assertIn(why, self.shown(run).stale or "")

    def test_arguments(self) -> None:
        """Arguments that were written into the row are not what was approved, and that is on record."""
        run = self.held()
        self.sql("""UPDATE runs SET arguments = '{"text":"forged"}' WHERE id = ?""", run.id)
        self.asked_anew(run, "not what was approved")
        self.assertIn("tamper.detected", self.events(run))

    def test_digest_and_action(self) -> None:
        """Nor has the digest of another action that was put in its place, true as it is."""
        run = self.held()
        self.offer("gated", step("put"))
        other = self.runner.submission._planner.plan_run(run).digest(run)
        self.sql("UPDATE approvals SET digest = ? WHERE run_id = ?", other, run.id)
        self.forge_record(run, other)
        self.asked_anew(run, "signature")

    def test_mark_binds(self) -> None:
        """Nothing of a decision can be altered: who took it, when, for how long, for which effect; it is tampering."""
        for table, altered in (
            ("approvals", "digest = 'sha256:00'"),
            ("approvals", "decided_by = 'other'"),
            ("approvals", "decided_at = '2027-01-15T08:00:01.000000Z'"),
            ("approvals", "not_after = '2099-01-01T00:00:00.000000Z'"),
            ("approvals", "not_after = NULL"),
            ("approvals", "not_before = decided_at"),
            ("runs", "effect_key = 'other'"),
        ):
            run, key = self.held(), "id" if table == "runs" else "run_id"
            self.sql(f"UPDATE {table} SET {altered} WHERE {key} = ?", run.id)
            self.asked_anew(run, "signature")
            self.assertIn("tamper.detected", self.events(run))

    def test_too_old(self) -> None:
        """A decision that began nothing for a day is asked for once more."""
        run = self.held()
        self.clock.advance(timedelta(hours=24, seconds=1).total_seconds())
        self.asked_anew(run, "24 hours")

    def test_once(self) -> None:
        """A decision is good for one use: its row, put back, begins nothing; another, taken in that moment, does."""
        run = self.submit()
        self.approve(run)
        self.set_state(run)
        self.restart()
        self.assertEqual((self.state(run), self.sent), ("pending_approval", 1))
        (found,) = self.recorded("tamper.detected", run)
        self.assertEqual(found.payload["found"], "The recorded decision was already used.")
        self.approve(run)
        self.assertEqual((self.state(run), self.sent), ("completed", 2))

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
        self.asked_anew(run, "an earlier vault key")
        self.assertNotIn("tamper.detected", self.events(run))

    def test_twice(self) -> None:
        """Deciding twice is a conflict, which tells how the run stands, and one effect."""
        run = self.submit()
        yes = self.yes(run)
        self.sync(self.runner.decisions.decide(run.id, yes))
        late = self.fails(self.runner.decisions.decide(run.id, yes), Conflict)
        self.assertEqual((late.details["state"], self.sent), ("completed", 1))

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
