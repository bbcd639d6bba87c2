"""An action that needs approval: asked for, decided, stale, withdrawn, expired."""

from __future__ import annotations

import json

from attrs import evolve

from aileron.model.authority import PendingLimits
from aileron.model.connectors import CredentialNeed, Outcome
from aileron.model.errors import (
    ApprovalStale,
    BindingRequired,
    Conflict,
    LimitExceeded,
    NotFound,
    VaultLocked,
)
from aileron.model.places import UrlTemplate, UrlVariable
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.reviews import Review, ReviewedArgument, ReviewedRequest
from aileron.model.runs import Decision, Run, RunState
from aileron.model.vault import VaultState
from aileron.runner import recovery
from aileron.testing import EFFECT_HEADER, ScriptedConnector, new_binding, scripted_description

from .kit import OPERATOR, RunnerCase, manifest, step


class GatedTests(RunnerCase):
    """From the call to a decision and what follows."""

    def test_shown(self) -> None:
        """The operator is shown every argument and the request that will leave, and how many wait."""
        run = self.submit("gated", {"text": "hello", "times": 2})
        self.assertEqual(self.sync(self.runner.decisions.pending("session-1")), 1)
        shown = self.shown(run)
        self.assertEqual(
            shown.review.arguments, (ReviewedArgument("text", "text", "hello"), ReviewedArgument("times", "times", 2))
        )
        request = self.connector.prepare(
            "post", {"text": "hello", "times": 2}, "https://scripted.invalid", run.effect_key
        )
        asked = evolve(ReviewedRequest.of(request), headers=((EFFECT_HEADER, f"{run.effect_key}.only"),))
        self.assertEqual([step.request for step in shown.review.steps], [asked])

    def test_reason(self) -> None:
        """The run keeps the reason of its decision, and the approval who decided."""
        for approved, state in ((True, RunState.COMPLETED), (False, RunState.DENIED)):
            run = self.submit()
            approval = self.approve(run, approved, reason="fine")
            self.assertEqual((approval.approved, approval.decided_by, approval.reason), (approved, OPERATOR.id, "fine"))
            self.assertEqual((self.state(run), self.now(run).reason), (state, "fine"))

    def test_tool_call(self) -> None:
        """The first event alone has the id of the model's tool call; by the same key another id is the same run."""
        for action, first in (("gated", "approval.requested"), ("open", "execution.started")):
            call = evolve(self.call(action, key="k"), tool_call="toolu_1")
            run = self.sync(self.runner.submission.submit(call))
            again = self.sync(self.runner.submission.submit(evolve(call, tool_call="toolu_2")))
            self.assertEqual(again.id, run.id)
            if action == "gated":
                self.approve(run)
            self.assertIs(self.state(run), RunState.COMPLETED)
            found = self.sync(self.store.audit.list(AuditQuery(run_id=run.id))).items
            named = [each.event for each in found if "tool_call" in each.event.payload]
            self.assertEqual([(each.type, each.payload["tool_call"]) for each in named], [(first, "toolu_1")])
            plain = self.submit(action, {"text": "other"})
            (event,) = self.sync(self.store.audit.list(AuditQuery(run_id=plain.id, type=first))).items
            self.assertNotIn("tool_call", event.event.payload)

    def test_forged_review(self) -> None:
        """A row that tells another story than what would run is not believed."""
        run = self.submit()
        shown = self.shown(run)
        self.sql("UPDATE approvals SET review = replace(review, 'hello', 'harmless')")
        self.assertEqual(self.shown(run).review, shown.review)
        (listed,) = self.sync(self.runner.decisions.approvals(RunQuery())).items
        self.assertEqual(listed.review, shown.review)

    def test_damaged_review(self) -> None:
        """A row whose review is in another form opens: worked out anew while it waits, as it was kept once decided."""
        run, changed = self.submit(), self.submit("gated", {"text": "other"})
        shown = self.shown(run)
        self.sql("UPDATE approvals SET review = json_remove(review, '$.steps[0].version')")
        self.assertEqual(self.shown(run).review, shown.review)
        self.approve(run, approved=False)
        (kept,) = self.sql("SELECT review FROM approvals WHERE run_id = ?", run.id)
        self.assertEqual(self.shown(run).review, Review(unread=json.loads(str(kept[0]))))
        self.write("gated", manifest("gated", step("put")))
        self.assertEqual(self.shown(changed).stale, "What was shown before cannot be read any more.")
        self.approve(changed)
        self.assertEqual([each.request.operation for each in self.connector.sendings], ["put"])

    def test_unknown(self) -> None:
        """There is nothing to decide about a run that is not there or was never gated."""
        ungated = self.submit("open")
        for id_ in ("nothing", ungated.id):
            self.fails(self.runner.decisions.approval(id_), NotFound)
            self.fails(self.runner.decisions.decide(id_, Decision(True, "x", OPERATOR.id)), NotFound)

    def test_limits(self) -> None:
        """So many may wait and not one more; one that is decided makes room."""
        self.limits = PendingLimits(per_session=2, per_home=3)
        self.restart()
        first = self.submit()
        self.submit()
        self.fails(self.runner.submission.submit(self.call()), LimitExceeded)
        self.submit(session="session-2")
        self.fails(self.runner.submission.submit(self.call(session="session-3")), LimitExceeded)
        self.approve(first, approved=False)
        self.submit("gated", {"text": "another"})


class IdempotencyTests(RunnerCase):
    """A key that an agent sends with its call."""

    def test_other_session_or_action(self) -> None:
        """A key means something in one session and one action only."""
        ids = {self.submit(key="k").id, self.submit(key="k", session="session-2").id, self.submit("open", key="k").id}
        self.assertEqual(len(ids), 3)

    def test_together_and_other(self) -> None:
        """Of two calls with one key and other arguments that arrive together one is refused, and has no effect."""
        self.session("session-1")
        calls = [self.call("open", {"text": text}, "k") for text in ("one", "other")]
        self.pool.hold()
        first, second = [self.later(self.runner.submission.submit(call)) for call in calls]
        self.pool.release()
        self.successResultOf(first)
        self.failureResultOf(second, Conflict)
        self.assertEqual(len(self.connector.sendings), 1)

    def test_restart_and_week(self) -> None:
        """A key survives restarts, and is forgotten after a week."""
        run = self.submit("open", key="k")
        self.restart()
        self.clock.advance(7 * 24 * 3600.0 - 1.0)
        self.assertEqual(self.submit("open", key="k").id, run.id)
        self.clock.advance(2.0)
        self.assertNotEqual(self.submit("open", key="k").id, run.id)

    def test_while_locked(self) -> None:
        """A known key is answered also while nothing new could be taken."""
        run = self.submit("open", key="k")
        self.vault.lock()
        self.assertEqual(self.submit("open", key="k").id, run.id)


class StaleTests(RunnerCase):
    """What was shown is no longer what would run."""

    def stale(self, run: Run, digest: str) -> str:
        """Assert that a decision for C{digest} is refused and it is asked anew; the reason that is shown."""
        self.fails(self.runner.decisions.decide(run.id, Decision(True, digest, OPERATOR.id)), ApprovalStale)
        self.assertIs(self.state(run), RunState.PENDING)
        self.assertEqual(self.connector.sendings, [])
        shown = self.shown(run)
        self.assertNotEqual(shown.digest, digest)
        assert shown.stale is not None
        return shown.stale

    def test_manifest(self) -> None:
        """An action file that was edited meanwhile: the decision is refused; asked anew, it runs as it is now.

        It cannot be approved until the operator trusts it.
        """
        changed = manifest("gated", step("put"))
        for trusted, why in ((False, "aileron action trust gated"), (True, "action gated was changed")):
            self.setUp()
            run = self.submit()
            digest = self.shown(run).digest
            self.write("gated", changed, trusted=trusted)
            self.assertIn(why, self.stale(run, digest))
            self.write("gated", changed)
            self.approve(run)
            self.assertEqual([each.request.operation for each in self.connector.sendings], ["put"])
            self.assertIn("approval.stale", self.events(run))

    def test_approval_removed(self) -> None:
        """Removing the approval from the file does not let a waiting run through."""
        run = self.submit()
        digest = self.shown(run).digest
        self.write("gated", manifest("gated", step("post"), gated=False))
        self.stale(run, digest)
        self.restart()
        self.assertIs(self.state(run), RunState.PENDING)

    def test_action_gone(self) -> None:
        """Without the action it cannot be approved, but denied; it can be approved again when the file is back."""
        run = self.submit()
        digest = self.shown(run).digest
        text = (self.directory / "gated.md").read_text()
        (self.directory / "gated.md").unlink()
        self.assertIn("cannot run now", self.stale(run, digest))
        shown = self.shown(run)
        self.fails(self.runner.decisions.decide(run.id, Decision(True, shown.digest, OPERATOR.id)), ApprovalStale)
        self.assertEqual(self.shown(run).digest, shown.digest)
        self.write("gated", text)
        again = self.shown(run)
        self.assertEqual(again.digest, digest)
        self.approve(run)
        self.assertEqual(len(self.connector.sendings), 1)

    def test_denied_while_gone(self) -> None:
        """What cannot run can still be denied."""
        run = self.submit()
        (self.directory / "gated.md").unlink()
        self.approve(run, approved=False)
        self.assertIs(self.state(run), RunState.DENIED)


class ExpiryTests(RunnerCase):
    """A manifest may limit the wait."""

    def setUp(self) -> None:
        """An action whose approval expires after an hour."""
        super().setUp()
        self.offer("gated", step("post"), expires='expires_after = "1h"')

    def test_expires(self) -> None:
        """After its time it is expired and cannot be approved."""
        run = self.submit()
        shown = self.shown(run)
        waiting = self.later(self.runner.submission.wait(run.id, 7200.0))
        self.clock.advance(3599.0)
        self.assertNoResult(waiting)
        self.clock.advance(1.0)
        self.assertIs(self.successResultOf(waiting).state, RunState.EXPIRED)
        self.fails(self.runner.decisions.decide(run.id, Decision(True, shown.digest, OPERATOR.id)), Conflict)

    def test_decided_in_time(self) -> None:
        """A decision in time ends the alarm."""
        run = self.submit()
        self.approve(run)
        self.clock.advance(7200.0)
        self.assertIs(self.state(run), RunState.COMPLETED)

    def test_many_across_a_restart(self) -> None:
        """However many pages of them wait, all are minded again after a restart."""
        self.patch(recovery, "_PENDING", evolve(recovery._PENDING, limit=2))
        runs = [self.submit("gated", {"text": str(number)}) for number in range(5)]
        self.restart()
        self.clock.advance(3600.0)
        self.assertEqual({self.state(run) for run in runs}, {RunState.EXPIRED})

    def test_across_a_restart(self) -> None:
        """Time passes while the daemon is down, too."""
        run = self.submit()
        self.sync(self.runner.stop(1.0))
        self.clock.advance(3601.0)
        self.restart()
        self.clock.advance(0.0)
        self.assertIs(self.state(run), RunState.EXPIRED)


class BoundTests(RunnerCase):
    """A connector that needs a credential."""

    def setUp(self) -> None:
        """One bound credential."""
        super().setUp()
        need = CredentialNeed("api_key", "Authorization", "Bearer {key}")
        description = evolve(scripted_description(), credential=need)
        self.connector = ScriptedConnector(description, clock=self.clock)
        self.connectors.add(self.connector)
        self.runner.check_changes()

    def bind(self, identity: str, secret: bytes) -> None:
        """Bind a secret to the connector."""
        new = new_binding(identity=identity, secret=secret)
        scope = self.connector.description.scope("https://scripted.invalid")
        self.bindings.add(evolve(new, connector="local://test/scripted", scope=scope))

    def test_none_bound(self) -> None:
        """Without a binding the call is refused and says what to do."""
        error = self.fails(self.runner.submission.submit(self.call()), BindingRequired)
        self.assertIn("aileron credential setup local://test/scripted", error.message)

    def test_never_chosen_silently(self) -> None:
        """With two bindings none is chosen."""
        self.bind("one", b"first-secret")
        self.bind("two", b"second-secret")
        error = self.fails(self.runner.submission.submit(self.call()), BindingRequired)
        self.assertEqual(len(error.details["candidates"]), 2)

    def test_goes_to_the_connector_alone(self) -> None:
        """The connector opens the credential; no review, result, row or record has it."""
        self.bind("one", b"canary-secret")
        run = self.submit()
        self.approve(run)
        self.assertEqual([each.secret for each in self.connector.sendings], [b"canary-secret"])
        self.assertNotIn(b"canary-secret", self.database.read_bytes())
        self.assertNotIn("canary-secret", repr(self.shown(run)))

    def test_variable_of_settings(self) -> None:
        """A credential opens with the variable that was sealed into its settings, unless the file forbids the value."""
        need = CredentialNeed("api_key", "Authorization", "Bearer {key}", {"region": "{region}"})
        template = UrlTemplate("https://scripted.invalid", (UrlVariable("region", "Region", "[a-z]+", "here", "here"),))
        self.connector.description = evolve(self.connector.description, credential=need, template=template)
        for region, sent in (("there", [b"one-secret"]), ("1", [])):
            self.connector.sendings.clear()
            scope = self.connector.description.scope("https://scripted.invalid", {"region": region})
            new = new_binding(identity="one", secret=b"one-secret")
            self.bindings.add(evolve(new, connector="local://test/scripted", scope=scope))
            run = self.submit()
            self.approve(run)
            self.assertEqual([each.secret for each in self.connector.sendings], sent)
            self.sync(self.bindings.revoke(self.bindings.list()[0].name))

    def test_revoked_after_approval(self) -> None:
        """A binding that is gone when the effect is due sends the run back to be decided."""
        self.bind("one", b"first-secret")
        run = self.approved_and_locked()
        self.unlock_anew()
        self.bindings = type(self.bindings)(self.vault)
        self.restart()
        self.assertIs(self.state(run), RunState.PENDING)
        self.assertIn("cannot run now", self.shown(run).stale or "")


class LockedTests(RunnerCase):
    """What a locked vault means for gated actions."""

    def test_held(self) -> None:
        """Once the runner is held it starts nothing more, and it is at rest when what was under way has ended."""
        answer = self.unanswered()
        running, waiting = self.submit("open"), self.submit()
        held = self.later(self.runner.limits.hold())
        self.approve(waiting)
        self.fails(self.runner.submission.submit(self.call("open")), VaultLocked)
        self.assertNoResult(held)
        answer.callback(Outcome())
        self.successResultOf(held)
        self.assertEqual((self.state(running), self.state(waiting)), (RunState.COMPLETED, RunState.AWAITING_VAULT))

    def test_offering(self) -> None:
        """Nothing is offered in a life in which the vault was never open; once it was, the list stays."""
        self.assertEqual(set(self.runner.submission.offering().offers), {"gated", "open"})
        offer = self.runner.submission.offering().offers["gated"]
        self.assertEqual((offer.read_only, offer.destructive, offer.open_world), (False, True, True))
        self.assertIsNone(offer.output_schema)
        self.vault.lock()
        self.assertEqual(set(self.runner.submission.offering().offers), {"gated", "open"})
        self.unlock_anew(VaultState.LOCKED)
        self.restart()
        self.assertEqual(self.runner.submission.offering().offers, {})
