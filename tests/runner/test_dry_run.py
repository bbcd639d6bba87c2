"""What an action would send, worked out without sending or keeping anything."""

from __future__ import annotations

from aileron.base.json import JSON
from aileron.model.connectors import CredentialNeed
from aileron.model.errors import BindingRequired, InvalidRequest, NotFound
from aileron.model.queries import AuditQuery, RunQuery
from aileron.model.reviews import PreviewStatus, ReviewedRequest, ReviewedStep
from aileron.model.runs import DryRun
from aileron.model.trust import TrustKind
from aileron.testing import ScriptedConnector, scripted_description

from .kit import RunnerCase, manifest, step
from .previewed import PreviewedCase


def built(step_: ReviewedStep) -> ReviewedRequest:
    """The request of a step, which has one."""
    assert step_.request is not None
    return step_.request


class DryRunTests(RunnerCase):
    """An action on a connector that remembers what it was asked."""

    def dry_run(self, name: str = "gated", **arguments: JSON) -> DryRun:
        """The result of a dry run."""
        return self.runner.submission.dry_run(name, arguments)

    def untouched(self) -> None:
        """Nothing was sent, and nothing is kept."""
        self.assertEqual((self.connector.sendings, self.connector.looks), ([], []))
        self.assertEqual(self.sync(self.runner.submission.runs(RunQuery())).items, ())
        self.assertEqual(self.sql("SELECT count(*) FROM approvals"), [(0,)])

    def test_same_as_an_approval(self) -> None:
        """What is shown is what the approval of the same call shows, but for the effect key."""
        before = self.sync(self.store.audit.list(AuditQuery()))
        found = self.dry_run(text="hello", times=2).approval
        self.untouched()
        self.assertEqual(self.sync(self.store.audit.list(AuditQuery())), before)
        shown = self.shown(self.submit("gated", {"text": "hello", "times": 2}))
        self.assertEqual(found.review.arguments, shown.review.arguments)
        (mine,), (theirs,) = found.review.steps, shown.review.steps
        self.assertEqual((built(mine).url, built(mine).body), (built(theirs).url, built(theirs).body))
        self.assertEqual(built(mine).headers, (("Idempotency-Key", "dry-run.only"),))
        self.assertNotEqual(found.digest, shown.digest)

    def test_not_trusted(self) -> None:
        """The file on disk is tried before it is trusted; agents still cannot run it."""
        self.write("fresh", manifest("fresh", step("post", inputs='text = "new: ${args.text}"')), trusted=False)
        (shown,) = self.dry_run("fresh", text="hello").approval.review.steps
        self.assertEqual(built(shown).body, '{"text":"new: hello"}')
        self.fails(self.runner.submission.submit(self.call("fresh")), NotFound)
        self.write("gated", manifest("gated", step("put")), trusted=False)
        (shown,) = self.dry_run(text="hello").approval.review.steps
        self.assertEqual(shown.operation, "put")
        self.untouched()

    def test_connector_not_trusted(self) -> None:
        """An action whose connector is not trusted is not tried, whether it is trusted itself or not."""
        self.trust.remove(TrustKind.CONNECTOR, "local://test/scripted")
        for trusted in (True, False):
            self.write("gated", manifest("gated", step("post")), trusted=trusted)
            error = self.assertRaises(NotFound, self.dry_run, text="hello")
            self.assertIn("needs the connector local://test/scripted, which is new", error.message)

    def test_missing(self) -> None:
        """What is no action, does not load, or pins another version is not found, with the reason."""
        self.write("broken", "+++\n", trusted=False)
        other = manifest("gated", step("post")).replace(
            'version = "1.0.0"\ncapabilities', 'version = "2.0.0"\ncapabilities'
        )
        self.write("gated", other, trusted=False)
        for name, reason in (
            ("none", "There is no action"),
            ("broken", "has errors"),
            ("gated", "version 1.0.0 is there"),
        ):
            self.assertIn(reason, self.assertRaises(NotFound, self.dry_run, name, text="x").message)

    def test_arguments(self) -> None:
        """Every fault of the arguments is told at once."""
        error = self.assertRaises(InvalidRequest, self.dry_run, times="often", more=1)
        problems = error.details["problems"]
        assert isinstance(problems, list)
        self.assertEqual({each["pointer"] for each in problems}, {"/args/text", "/args/times", "/args/more"})
        self.assertRaises(InvalidRequest, self.runner.submission.dry_run, "gated", ["text"])
        self.untouched()

    def test_later(self) -> None:
        """A step that uses an earlier result has no request yet, as in an approval."""
        later = step("post", "second", 'text = "${steps.first.done}"')
        self.write("chain", manifest("chain", step("look", "first"), later, gated=False), trusted=False)
        first, second = self.dry_run("chain", text="hello").approval.review.steps
        self.assertEqual(built(first).method, "GET")
        self.assertIsNone(second.request)
        self.untouched()

    def test_credential(self) -> None:
        """The credential is not opened; where none is bound, that is what is missing."""
        need = CredentialNeed("api_key", "Authorization", "Bearer {key}")
        self.connector = ScriptedConnector(scripted_description(credential=need), clock=self.clock)
        self.connectors.add(self.connector)
        self.assertRaises(BindingRequired, self.dry_run, text="hello")


class DryRunOfPreviewedTests(PreviewedCase):
    """An action with a preview, and one that is tied to it."""

    def test_no_preview(self) -> None:
        """The preview is not read, and a step that is tied to it has no request."""
        for name, requests in (("gated", 1), ("tied", 0)):
            review = self.runner.submission.dry_run(name, {"text": "hello"}).approval.review
            assert review.preview is not None
            self.assertIs(review.preview.shown.status, PreviewStatus.UNAVAILABLE)
            self.assertEqual(len([each for each in review.steps if each.request is not None]), requests)
            self.assertEqual(review.preview.lacking is None, name == "gated")
        self.assertEqual((self.looks(), self.connector.sendings), (0, []))
