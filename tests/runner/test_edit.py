"""The operator edits what was asked for, and decides about that."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from twisted.internet.defer import Deferred

from aileron.base.json import JSON
from aileron.model.connectors import Outcome
from aileron.model.errors import ApprovalStale, Conflict, InvalidRequest, NotFound
from aileron.model.runs import Approval, Change, Decision, Run, RunState
from aileron.review import edits

from .kit import AGENT, OPERATOR, manifest, step
from .previewed import MAIL, PREVIEW, PreviewedCase


class EditCase(PreviewedCase):
    """One action without a preview (C{plain}), others with one."""

    def setUp(self) -> None:
        """Offer it."""
        super().setUp()
        self.offer("plain", step("post"))

    def edit(self, run: Run, arguments: Mapping[str, JSON], digest: str | None = None) -> Approval:
        """Edit as the page would."""
        return self.sync(self.runner.decisions.edit(run.id, arguments, digest, OPERATOR))

    def refused(self, run: Run, arguments: Mapping[str, JSON], kind: type[Exception], digest: str | None = None) -> Any:
        """An edit that is refused, after which everything is as it was."""
        before = self.sync(self.store.runs.approval(run.id))
        error = self.fails(self.runner.decisions.edit(run.id, arguments, digest, OPERATOR), kind)
        self.assertEqual(self.sync(self.store.runs.approval(run.id)), before)
        return error


class EditTests(EditCase):
    """From the edit to the effect."""

    def test_carried_out(self) -> None:
        """What was edited is what runs, in another life too; what was asked for is kept beside it.

        An idempotency key stands for what was asked.
        """
        run = self.submit("plain", {"text": "hello", "times": 2}, key="k")
        edited = self.edit(run, {"text": "Hello!"}, self.shown(run).digest)
        self.assertEqual((edited.run.arguments, edited.run.asked), ({"text": "Hello!"}, {"text": "hello", "times": 2}))
        self.assertEqual(
            edits(edited.run), (Change("/text", "changed", "hello", "Hello!"), Change("/times", "removed", 2))
        )
        self.assertEqual(self.submit("plain", {"text": "hello", "times": 2}, key="k").id, run.id)
        self.fails(self.runner.submission.submit(self.call("plain", {"text": "Hello!"}, "k")), Conflict)
        self.restart()
        self.assertEqual((self.shown(run).digest, self.shown(run).stale), (edited.digest, None))
        self.decide(run, edited.digest)
        self.assertEqual(self.connector.sendings[-1].request.body, b'{"text":"Hello!"}')
        done = self.now(run)
        self.assertEqual((done.state, done.asked), (RunState.COMPLETED, {"text": "hello", "times": 2}))

    def test_old_digest(self) -> None:
        """The digest of what was asked for approves nothing any more, and edits nothing."""
        run = self.submit("plain")
        digest = self.shown(run).digest
        edited = self.edit(run, {"text": "other"}, digest)
        self.fails(self.runner.decisions.decide(run.id, Decision(True, digest, OPERATOR.id)), ApprovalStale)
        error = self.refused(run, {"text": "third"}, ApprovalStale, digest)
        self.assertEqual(error.details["digest"], edited.digest)
        self.assertIs(self.state(run), RunState.PENDING)

    def test_record(self) -> None:
        """Who edited what is on record, with both digests; an edit to what stands there changes nothing.

        Edited back it is what was asked for, under the first digest, and no difference is told.
        """
        run = self.submit("plain")
        before = self.shown(run).digest
        edited = self.edit(run, {"text": "other"})
        self.assertEqual(self.edit(run, {"text": "other"}), edited)
        (event,) = self.recorded("approval.modified", run)
        digests = (event.payload["before"], event.payload["digest"])
        self.assertEqual((event.actor, *digests), (OPERATOR, before, edited.digest))
        change = {"path": "/text", "kind": "changed", "before": "hello", "after": "other"}
        self.assertEqual(event.payload["changes"], [change])
        back = self.edit(run, {"text": "hello"})
        self.assertEqual((back.digest, edits(back.run), back.run.asked), (before, (), {"text": "hello"}))

    def test_checked(self) -> None:
        """Arguments are checked as the agent's were, every fault told at once, and nothing is kept."""
        run = self.submit("plain")
        error = self.refused(run, {"times": "often", "more": 1}, InvalidRequest)
        told = {problem["pointer"] for problem in error.details["problems"]}
        self.assertEqual(told, {"/args/text", "/args/times", "/args/more"})

    def test_only_what_waits(self) -> None:
        """What is decided or withdrawn cannot be edited, nor what is not there."""
        run = self.submit("plain")
        self.approve(run, approved=False)
        self.refused(run, {"text": "other"}, Conflict)
        other = self.submit("plain", {"text": "what was not denied"})
        self.sync(self.runner.submission.withdraw(other.id, AGENT, None))
        self.refused(other, {"text": "other"}, Conflict)
        self.fails(self.runner.decisions.edit("nobody", {}, None, OPERATOR), NotFound)


class EditedPreviewTests(EditCase):
    """An edit of what has a preview."""

    def test_fetched(self) -> None:
        """The preview of what was edited is fetched before it is asked, in one step."""
        run = self.submit()
        self.show(subject="Another mail")
        edited = self.edit(run, {"text": "other"})
        self.assertEqual(edited.review.shown_preview.fields[0].value, "Another mail")
        self.assertEqual(self.connector.sendings[-1].request.body, b'{"text":"other"}')
        self.assertEqual(self.events(run), ["approval.requested", "approval.previewed", "approval.modified"])
        self.decide(run, edited.digest)
        self.assertEqual(self.effects(), ["post"])

    def test_locked(self) -> None:
        """Where it cannot be fetched it is asked without, and fetched when it can be."""
        run = self.submit()
        self.vault.lock()
        edited = self.edit(run, {"text": "other"})
        self.assertEqual(edited.review.shown_preview.status, "fetching")

    def test_decided_meanwhile(self) -> None:
        """Who decides, or edits, while the edit's preview is fetched wins; the other is told to look again."""
        for decides, refused in ((True, Conflict), (False, ApprovalStale)):
            self.setUp()
            run = self.submit()
            digest = self.shown(run).digest
            late, mail = Deferred[Outcome](), Outcome(MAIL)
            del self.connector.shows["look"]
            self.connector.script = [late, mail, mail]
            editing = self.later(self.runner.decisions.edit(run.id, {"text": "other"}, digest, OPERATOR))
            if decides:
                self.decide(run, digest)
            else:
                self.edit(run, {"text": "second"}, digest)
            late.callback(mail)
            self.failureResultOf(editing, refused)
            self.assertEqual(self.now(run).arguments, {"text": "hello" if decides else "second"})
            if decides:
                self.assertEqual(self.connector.sendings[-1].request.body, b'{"text":"hello"}')

    def test_file_changed_meanwhile(self) -> None:
        """A file that changes while the preview is fetched: the edit is not put in the place of another question."""
        run = self.submit()
        late = Deferred[Outcome]()
        self.answer(late)
        editing = self.later(self.runner.decisions.edit(run.id, {"text": "other"}, None, OPERATOR))
        self.write("gated", manifest("gated", step("put"), expires=PREVIEW))
        self.show()
        self.shown(run)
        late.callback(Outcome(MAIL))
        self.failureResultOf(editing, ApprovalStale)
        self.assertEqual(self.now(run).arguments, {"text": "hello"})
