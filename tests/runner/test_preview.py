"""What the operator is shown of the service's side, and that nothing rests on an old look."""

from __future__ import annotations

import json

from attrs import evolve
from twisted.internet.defer import Deferred
from twisted.internet.task import Clock

from aileron.base.converter import to_json
from aileron.model.authority import PendingLimits
from aileron.model.connectors import Outcome
from aileron.model.errors import (
    ApprovalStale,
    BindingFailed,
    CapabilityDenied,
    Conflict,
    ExternalApiError,
    NetworkError,
    VaultLocked,
)
from aileron.model.queries import RunQuery
from aileron.model.reviews import PreviewStatus
from aileron.model.runs import Decision, Run, RunState

from .kit import AGENT, OPERATOR, manifest, step
from .previewed import MAIL, PREVIEW, PreviewedCase

YES = Decision(True, "", OPERATOR.id)


class ShownTests(PreviewedCase):
    """From the call to what is on the page."""

    def test_fields(self) -> None:
        """Each label has what its path leads to, in order, a header by its name; nothing was changed by looking."""
        run = self.submit()
        found = self.preview(run)
        self.assertEqual((found["status"], found["operation"], found["fault"]), ("shown", "look", None))
        self.assertEqual(
            [(each["label"], each["value"], each["multiline"]) for each in found["fields"]],
            [("Subject", "Hello", False), ("To", "ann@example.org", False), ("The text", "one\ntwo", True)],
        )
        (sending,) = self.connector.sendings
        self.assertEqual((sending.method, sending.seconds), ("read", 5.0))

    def test_kept_at_once(self) -> None:
        """The call is kept and answered before the service has answered; then the same run shows what came."""
        answer: Deferred[Outcome] = Deferred()
        self.answer(answer)
        run = self.submit()
        self.assertIs(run.state, RunState.PENDING)
        (waiting,) = self.sync(self.runner.decisions.approvals(RunQuery())).items
        self.assertEqual(waiting.review.shown_preview.status, "fetching")
        answer.callback(Outcome({"subject": "Late"}))
        shown = self.shown(run)
        self.assertNotEqual(shown.digest, waiting.digest)
        self.assertEqual((shown.stale, shown.changes, shown.requested_at), (None, (), waiting.requested_at))
        self.assertEqual(self.preview(run)["fields"][0]["value"], "Late")

    def test_record(self) -> None:
        """The record tells that it was fetched, and its digest, and nothing of what it showed."""
        run = self.submit()
        (event,) = self.recorded("approval.previewed", run)
        self.assertEqual((event.payload["status"], event.payload["digest"]), ("shown", self.shown(run).digest))
        told = json.dumps([dict(each.payload) for each in self.recorded("approval.previewed", run)])
        self.assertNotIn("Hello", told)
        self.assertEqual(self.events(run), ["approval.requested", "approval.previewed"])

    def test_missing(self) -> None:
        """What the answer does not hold is said to be missing, and so is null."""
        self.show(subject=None, headers=[])
        fields = self.preview(self.submit())["fields"]
        self.assertEqual([(each["missing"], each["value"]) for each in fields[:2]], [(True, None)] * 2)

    def test_long(self) -> None:
        """A long text is cut and says so; the digest binds all of it."""
        self.show(body="x" * 70_000)
        run = self.submit()
        field = self.preview(run)["fields"][2]
        self.assertEqual((len(field["value"]), field["cut"]["bytes"]), (65_536, 70_000))
        digest = self.shown(run).digest
        self.show(body="x" * 69_999 + "y")
        self.fails(self.runner.decisions.decide(run.id, evolve(YES, digest=digest)), ApprovalStale)

    def test_anything(self) -> None:
        """Whatever JSON the service holds there is shown in words."""
        self.show(subject={"deep": [2**70, "\ud800", True]}, body=7)
        fields = self.preview(self.submit())["fields"]
        self.assertIn(str(2**70), fields[0]["value"])
        self.assertEqual((fields[0]["multiline"], fields[2]["value"]), (True, "7"))

    def test_across_a_restart(self) -> None:
        """What was shown is shown by the next life as well, under the same digest, without another look."""
        run = self.submit()
        before = self.shown(run)
        self.restart()
        after = self.shown(run)
        self.assertEqual((after.digest, after.review.preview), (before.digest, before.review.preview))
        self.assertEqual((after.stale, self.looks()), (None, 1))

    def test_not_the_agents(self) -> None:
        """What the run's own row holds tells nothing of it, before and after the effect."""
        run = self.submit()
        self.approve(run)
        self.assertNotIn("ann@example.org", repr(self.now(run)))

    def test_once_for_one_key(self) -> None:
        """A call that is known by its key has nothing fetched."""
        self.submit(key="k")
        self.submit(key="k")
        self.assertEqual(self.looks(), 1)


class MissedTests(PreviewedCase):
    """A preview that could not be had."""

    def refuse(self) -> None:
        """Have the service refuse to show anything."""
        self.answer(Outcome(fault=ExternalApiError("Not today.").fault()))

    def test_unavailable(self) -> None:
        """A failure is shown with its class, and it can still be approved."""
        self.refuse()
        run = self.submit()
        self.assertEqual(self.preview(run)["fault"], {"class": "external_api_error", "message": "Not today."})
        self.approve(run)
        self.assertEqual(self.effects(), ["post"])

    def test_needs_approval(self) -> None:
        """A preview is fetched before an approval, so an operation that needs one is none."""
        operations = self.connector.description.operations
        needing = {**operations, "look": evolve(operations["look"], needs_approval="it is dangerous")}
        self.connector.description = evolve(self.connector.description, operations=needing)
        self.fails(self.runner.submission.submit(self.call()), CapabilityDenied)
        self.assertEqual(self.connector.sendings, [])

    def test_words_of_a_failure(self) -> None:
        """Another message of the same class of failure is no reason to ask anew; another class is."""
        self.refuse()
        run = self.submit()
        digest = self.shown(run).digest
        self.answer(Outcome(fault=NetworkError("Gone.").fault(), sent=False))
        error = self.fails(self.runner.decisions.decide(run.id, evolve(YES, digest=digest)), ApprovalStale)
        self.answer(Outcome(fault=NetworkError("Gone again.").fault(), sent=False))
        self.decide(run, str(error.details["digest"]))
        self.assertEqual(self.effects(), ["post"])

    def test_looked_at_again(self) -> None:
        """Whoever looks at one has it fetched again, at most every ten seconds; a list fetches nothing."""
        self.refuse()
        run = self.submit()
        self.show()
        self.sync(self.runner.decisions.approvals(RunQuery()))
        self.assertEqual((self.looks(), self.preview(run)["status"]), (1, "unavailable"))
        self.clock.advance(10.0)
        self.sync(self.runner.decisions.approvals(RunQuery()))
        self.assertEqual(self.looks(), 1)
        self.assertEqual((self.preview(run)["status"], self.looks()), ("shown", 2))
        self.clock.advance(60.0)
        self.preview(run)
        self.assertEqual(self.looks(), 2)

    def test_clock_set_back(self) -> None:
        """A clock that was set back keeps nobody from looking again."""
        self.refuse()
        run = self.submit()
        self.show()
        self.clock.rightNow -= 3600.0
        self.assertEqual(self.preview(run)["status"], "shown")

    def test_silent(self) -> None:
        """A service that says nothing is given up after five seconds, whatever its connector thinks of time."""
        self.connector.clock = Clock()
        self.say_nothing()
        run = self.submit()
        looking = self.later(self.runner.decisions.approval(run.id))
        self.clock.advance(4.9)
        self.assertNoResult(looking)
        self.clock.advance(0.2)
        fault = self.successResultOf(looking).review.shown_preview.fault
        self.assertEqual(fault and fault.kind, "resource_limit_exceeded")

    def test_read_meanwhile(self) -> None:
        """A reader that may start nothing waits for the preview that is being fetched, and for no other."""
        late = Deferred[Outcome]()
        self.answer(late)
        run = self.submit()
        reading = Deferred.fromCoroutine(self.runner.decisions.approval(run.id, only_read=True))
        self.assertNoResult(reading)
        late.callback(Outcome(MAIL))
        shown = self.successResultOf(reading).review.shown_preview
        self.assertEqual((shown.status, self.looks()), (PreviewStatus.SHOWN, 1))

    def test_bug(self) -> None:
        """A connector that breaks its contract is told as that."""
        self.answer(RuntimeError("oops"))
        run = self.submit()
        self.assertEqual(self.preview(run)["fault"]["class"], "connector_runtime_error")
        self.assertEqual(len(self.flushLoggedErrors(RuntimeError)), 1)

    def test_credential(self) -> None:
        """A credential that does not open is why there is none."""
        self.answer(BindingFailed("It is for another host."))
        self.assertEqual(self.preview(self.submit())["fault"]["class"], "binding_failed")

    def test_locked(self) -> None:
        """Nothing is fetched while the vault is locked, nor decided; in a life in which it opens it is fetched."""
        self.vault.lock()
        run = self.submit()
        self.assertEqual((self.looks(), self.preview(run)["status"]), (0, "fetching"))
        self.fails(self.runner.decisions.decide(run.id, evolve(YES, digest=self.shown(run).digest)), VaultLocked)
        self.unlock_anew()
        self.restart()
        (listed,) = self.sync(self.runner.decisions.approvals(RunQuery())).items
        self.assertEqual(listed.review.shown_preview.status, "shown")

    def test_damaged(self) -> None:
        """Where the row cannot be read, its preview is fetched all the same, and it can be approved."""
        self.vault.lock()
        run = self.submit()
        self.sql("UPDATE approvals SET review = json_remove(review, '$.steps[0].version')")
        self.unlock_anew()
        self.restart()
        self.assertEqual(self.preview(run)["status"], "shown")
        self.sql("UPDATE approvals SET review = json_remove(review, '$.steps[0].version')")
        self.approve(run)
        self.assertEqual(len(self.effects()), 1)

    def test_locked_meanwhile(self) -> None:
        """A vault that is locked while it is fetched is no reason to call the preview unavailable."""
        self.answer(VaultLocked("Just now."))
        run = self.submit()
        self.assertEqual(self.preview(run)["status"], "fetching")

    def test_vault_back(self) -> None:
        """When the vault's file is there again, what was missed is fetched."""
        self.vault.lock()
        run = self.submit()
        self.runner.check_changes()
        self.unlock_anew()
        self.runner._recovery._effects._vault = self.vault
        self.runner.check_changes()
        (listed,) = self.sync(self.runner.decisions.approvals(RunQuery())).items
        self.assertEqual((listed.run.id, self.looks()), (run.id, 1))
        self.assertEqual(listed.review.shown_preview.status, "shown")


class CrowdTests(PreviewedCase):
    """Many at once, and ends at any moment."""

    def test_flood(self) -> None:
        """Of many calls only a few are fetched at once, the rest in their turn; a decision has turns of its own."""
        self.limits = PendingLimits(per_session=40)
        self.restart()
        self.say_nothing()
        runs = [self.submit() for _ in range(9)]
        self.assertEqual(self.looks(), 6)
        self.show()
        (first, *_) = self.sync(self.runner.decisions.approvals(RunQuery())).items
        self.fails(self.runner.decisions.decide(first.run.id, evolve(YES, digest=first.digest)), ApprovalStale)
        self.assertEqual(self.looks(), 7)
        self.clock.advance(5.1)
        self.assertEqual(self.looks(), 10)
        self.assertEqual(self.preview(runs[-1])["status"], "shown")

    def test_many_missing(self) -> None:
        """After a start all missing ones are fetched, also where they are more than begin at once."""
        self.limits = PendingLimits(100, 100, 100)
        self.restart()
        self.vault.lock()
        runs = [self.submit("gated", {"text": f"t{number}"}) for number in range(70)]
        self.assertEqual(self.looks(), 0)
        self.unlock_anew()
        self.restart()
        self.assertEqual(self.looks(), 70)
        self.assertEqual({self.preview(run)["status"] for run in runs}, {"shown"})

    def test_many_missing_silent(self) -> None:
        """A service that does not answer holds up neither the start nor the stop, and not all begin to wait for it."""
        self.limits = PendingLimits(100, 100, 100)
        self.restart()
        self.vault.lock()
        for number in range(70):
            self.submit("gated", {"text": f"t{number}"})
        self.unlock_anew()
        self.say_nothing()
        self.restart()
        waiting = self.runner._recovery._previews._waiters.list_keys()
        self.assertEqual((self.looks(), len(waiting)), (6, 32))
        self.stop_late(1.0)

    def test_withdrawn_meanwhile(self) -> None:
        """What is withdrawn while it is fetched stays withdrawn."""
        answer: Deferred[Outcome] = Deferred()
        self.answer(answer)
        run = self.submit()
        self.sync(self.runner.submission.withdraw(run.id, AGENT, None))
        answer.callback(Outcome({}))
        self.assertEqual(self.events(run), ["approval.requested", "run.cancelled"])

    def test_changed_meanwhile(self) -> None:
        """A file that changes while it is fetched: what is shown is what the new file asks for."""
        answer: Deferred[Outcome] = Deferred()
        self.answer(answer)
        run = self.submit()
        self.write("gated", manifest("gated", step("put"), expires=PREVIEW.replace("Subject", "About")))
        self.sync(self.runner.decisions.approvals(RunQuery()))
        self.show()
        answer.callback(Outcome({"subject": "Old"}))
        self.assertEqual([self.preview(run)["fields"][0][each] for each in ("label", "value")], ["About", "Hello"])
        self.assertIn("was changed since", self.shown(run).stale or "")

    def test_stopped(self) -> None:
        """A fetch that outlives the daemon's patience is dropped; the next life fetches."""
        self.say_nothing()
        run = self.submit()
        self.stop_late(1.0)
        self.assertEqual(self.events(run), ["approval.requested"])
        self.show()
        self.restart()
        self.assertEqual(self.preview(run)["status"], "shown")

    def test_two_deciders(self) -> None:
        """Of two who decide while both look once more one wins, and it happens once."""
        run = self.submit()
        digest = self.shown(run).digest
        answers: list[Deferred[Outcome]] = [Deferred(), Deferred()]
        del self.connector.shows["look"]
        self.connector.script = [*answers]
        both = [self.later(self.runner.decisions.decide(run.id, evolve(YES, digest=digest))) for _ in answers]
        self.show()
        for answer in answers:
            answer.callback(Outcome(MAIL))
        self.assertTrue(self.successResultOf(both[0]).approved)
        self.failureResultOf(both[1], Conflict)
        self.assertEqual(self.effects(), ["post"])

    def test_held(self) -> None:
        """Once the vault is to be locked nothing more is fetched, and what waits for its turn is let go."""
        self.say_nothing()
        for _ in range(8):
            self.submit()
        held = self.later(self.runner.limits.hold())
        self.clock.advance(5.1)
        self.successResultOf(held)
        self.assertEqual(self.looks(), 6)


class FreshTests(PreviewedCase):
    """Nothing is decided, and nothing begins, on an old look."""

    def test_changed_before_the_decision(self) -> None:
        """What changed since it was shown refuses the decision, and is shown as it is, with the difference."""
        run = self.submit()
        digest = self.shown(run).digest
        self.show(subject="Another")
        error = self.fails(self.runner.decisions.decide(run.id, evolve(YES, digest=digest)), ApprovalStale)
        shown = self.shown(run)
        self.assertEqual((shown.digest, shown.approved), (error.details["digest"], None))
        self.assertEqual(shown.stale, "What the preview shows was changed since.")
        (change,) = shown.changes
        self.assertEqual((change.path, change.before, change.after), ("/preview/fields/0/value", "Hello", "Another"))
        self.assertEqual(error.details["changes"], [to_json(change)])
        self.decide(run, shown.digest)
        self.assertEqual(self.effects(), ["post"])

    def test_changed_before_the_effect(self) -> None:
        """What changes between decision and effect sends it back to be asked, with the difference, and nothing else."""
        run = self.approved_and_waiting()
        self.show(subject="Another")
        self.unlock_anew()
        self.restart()
        shown = self.shown(run)
        self.assertEqual((shown.run.state, self.effects()), (RunState.PENDING, []))
        self.assertEqual([change.after for change in shown.changes], ["Another"])
        self.decide(run, shown.digest)
        self.assertEqual(self.effects(), ["post"])

    def test_gone_before_the_effect(self) -> None:
        """A preview that can no longer be fetched when the effect is due sends it back as well."""
        run = self.approved_and_waiting()
        self.answer(Outcome(fault=NetworkError("Gone.").fault(), sent=False))
        self.unlock_anew()
        self.restart()
        self.assertEqual((self.state(run), self.effects()), (RunState.PENDING, []))
        self.assertIn("cannot be fetched any more", self.shown(run).stale or "")

    def approved_and_waiting(self) -> Run:
        """A run that was approved, and then the vault was locked before it began."""
        run, late = self.between()
        late.errback(VaultLocked("Just now."))
        self.assertIs(self.state(run), RunState.AWAITING_VAULT)
        return run

    def test_locked_before_the_effect(self) -> None:
        """Where the vault is locked while it is fetched the run waits, and goes on when the vault is open."""
        run = self.approved_and_waiting()
        self.assertEqual(self.effects(), [])
        self.unlock_anew()
        self.restart()
        self.assertEqual((self.state(run), self.effects()), (RunState.COMPLETED, ["post"]))

    def test_stopped_before_the_effect(self) -> None:
        """A life that ends while it is fetched before the effect leaves the run approved, for the next one."""
        run, _ = self.between()
        self.stop_late(1.0)
        self.assertIs(self.state(run), RunState.APPROVED)
        self.restart()
        self.assertEqual((self.state(run), self.effects()), (RunState.COMPLETED, ["post"]))

    def test_withdrawn_before_the_effect(self) -> None:
        """A withdrawal that comes while it is fetched before the effect wins."""
        run, late = self.between()
        self.sync(self.runner.submission.withdraw(run.id, AGENT, None))
        late.callback(Outcome(MAIL))
        self.assertEqual((self.state(run), self.effects()), (RunState.CANCELLED, []))

    def test_untrusted_before_the_effect(self) -> None:
        """A file that changes while the preview is fetched before the effect: nothing is sent."""
        run, late = self.between()
        self.write("gated", manifest("gated", step("put"), expires=PREVIEW), trusted=False)
        late.callback(Outcome(MAIL))
        self.assertEqual((self.state(run), self.effects()), (RunState.PENDING, []))

    def test_looked_three_times(self) -> None:
        """It is fetched when it is asked for, when it is decided, and when it begins."""
        run = self.submit()
        self.approve(run)
        self.assertEqual((self.looks(), self.effects()), (3, ["post"]))

    def test_denied(self) -> None:
        """A denial fetches nothing."""
        run = self.submit()
        self.approve(run, approved=False)
        self.assertEqual(self.looks(), 1)

    def test_not_there_yet(self) -> None:
        """What has no preview yet cannot be approved: the one that arrives is another digest."""
        self.say_nothing()
        run = self.submit()
        (waiting,) = self.sync(self.runner.decisions.approvals(RunQuery())).items
        self.show()
        self.fails(self.runner.decisions.decide(run.id, evolve(YES, digest=waiting.digest)), ApprovalStale)
        self.assertEqual((self.effects(), self.shown(run).stale), ([], None))

    def test_forged(self) -> None:
        """A preview that somebody wrote into the row is not shown, in a list either."""
        run = self.submit()
        self.sql("UPDATE approvals SET review = replace(review, 'ann@example.org', 'me@evil.example')")
        (listed,) = self.sync(self.runner.decisions.approvals(RunQuery())).items
        self.assertNotIn("evil", repr(listed.review))
        self.assertIn("ann@example.org", repr(self.shown(run).review))

    def test_forged_whole(self) -> None:
        """Who forges the digest as well is found out when it is decided, and nothing happens."""
        run = self.submit()
        approval = self.shown(run)
        planner = self.runner.submission._planner
        self.show(subject="Harmless")
        other = self.submit()
        forged = evolve(approval, review=evolve(approval.review, preview=self.shown(other).review.preview))
        digest = planner.plan_shown(forged).digest(run)
        row = (json.dumps(to_json(forged.review)), digest, run.id)
        self.sql("UPDATE approvals SET review = ?, digest = ? WHERE run_id = ?", *row)
        self.show()
        self.fails(self.runner.decisions.decide(run.id, evolve(YES, digest=digest)), ApprovalStale)
        self.assertEqual(self.effects(), [])

    def test_account(self) -> None:
        """Another content of the connector that shows it is another thing to decide about."""
        run = self.submit()
        digest = self.shown(run).digest
        changed = evolve(self.connector.description, content_hash="sha256:other")
        self.connectors.add(evolve(self.connector, description=changed))
        self.believe_connectors()
        self.fails(self.runner.decisions.decide(run.id, evolve(YES, digest=digest)), ApprovalStale)


class TiedTests(PreviewedCase):
    """A write that happens only to what was shown."""

    def test_carried(self) -> None:
        """What the preview showed is in the request, shown and bound before it is sent."""
        run = self.submit("tied")
        (planned,) = self.shown(run).review.steps
        self.assertIn('"if_match":"v1"', str(planned.request and planned.request.body))
        self.approve(run)
        self.assertIn(b'"if_match":"v1"', self.connector.sendings[-1].request.body or b"")

    def test_changed(self) -> None:
        """Another version of it is another request, which nobody approved."""
        run = self.submit("tied")
        digest = self.shown(run).digest
        self.show(etag="v2")
        self.fails(self.runner.decisions.decide(run.id, evolve(YES, digest=digest)), ApprovalStale)
        self.assertIn("/steps/0/request/body", [change.path for change in self.shown(run).changes])
        self.assertEqual(self.effects(), [])

    def test_not_without(self) -> None:
        """Without a preview, or without what it is tied to, it cannot be approved, and says why."""
        for outcome, why in (
            (Outcome(fault=ExternalApiError("No.").fault()), "without its preview"),
            (Outcome({"subject": "Hello"}), "`etag`, which the preview does not show"),
            (Outcome({"etag": ""}), "`etag`"),
            (Outcome({"etag": {"deep": 1}}), "`etag`"),
        ):
            self.answer(outcome)
            run = self.submit("tied")
            shown = self.shown(run)
            self.assertIn(why, self.preview(run)["lacking"])
            error = self.fails(self.runner.decisions.decide(run.id, evolve(YES, digest=shown.digest)), ApprovalStale)
            self.assertIn(why, error.message)
            self.approve(run, approved=False)
            self.sync(self.runner.limits.forgive(run.id, OPERATOR))
        self.assertEqual(self.effects(), [])

    def test_only_preconditions(self) -> None:
        """An action that would fill anything else from the preview is not offered, nor one whose preview may write."""
        for text, why in (
            (manifest("other", step("post", inputs='text = "${preview.subject}"'), expires=PREVIEW), "precondition"),
            (manifest("other", step("post"), expires=PREVIEW.replace('"look"', '"put"')), "idempotent read"),
        ):
            self.write("other", text)
            self.runner.check_changes()
            (error,) = self.runner.submission.offering().load_errors
            self.assertEqual(error.kind, "connector")
            self.assertIn(why, error.message)


class ScreenedTests(PreviewedCase):
    """A preview whose answer holds the credential."""

    def test_echo(self) -> None:
        """That the credential came back is on record."""
        self.answer(Outcome({"subject": "[redacted]"}, notes={"echoed": ["plain"]}))
        run = self.submit()
        self.assertEqual(self.events(run), ["approval.requested", "secret.echoed", "approval.previewed"])
        self.approve(run)
        self.assertEqual(self.events(run).count("secret.echoed"), 3)
