"""What an approval is headed with: what its connector says of its first write, and only of what was asked for."""

from __future__ import annotations

from attrs import evolve

from aileron.model.connectors import WRITE, Operation, Presentation
from aileron.model.runs import RunState
from aileron.testing import scripted_description

from .kit import OPERATOR, RunnerCase, manifest, step

HINT = Presentation("message", titles=("Post ${in.text} ${in.times} times", "Post ${in.text}"))


class TitlesTests(RunnerCase):
    """The titles of approvals."""

    def setUp(self) -> None:
        """A connector that words what its writes do."""
        super().setUp()
        self.describe(HINT)
        self.believe_connectors()

    def describe(self, hint: Presentation | None) -> None:
        """Have the connector say this of its write."""
        names = [Operation("look", "read", idempotent=True), Operation("put", WRITE, idempotent=True)]
        description = scripted_description(Operation("post", WRITE, idempotent=False, presentation=hint), *names)
        self.connector = evolve(self.connector, description=evolve(description, content_hash="sha256:one"))
        self.connectors.add(self.connector)

    def test_told(self) -> None:
        """It is made of what the operation is given, and stays with the run once that is decided."""
        self.offer("gated", step("post", inputs='text = "Say: ${args.text}", times = "${args.times}"'))
        run = self.submit(arguments={"text": "hi", "times": 3})
        self.assertEqual(self.shown(run).review.title, "Post “Say: hi” 3 times")
        self.assertEqual(self.shown(self.submit(arguments={"text": "hi"})).review.title, "Post Say: hi")
        self.approve(run, approved=False)
        self.assertIs(self.shown(run).run.state, RunState.DENIED)
        self.assertEqual(self.shown(run).review.title, "Post “Say: hi” 3 times")

    def test_of_runs(self) -> None:
        """The row of a run has it, whether or not it is asked about, and after an edit that of the new arguments."""
        said = step("post", inputs='text = "${args.text}"')
        self.write("free", manifest("free", said, gated=False))
        self.offer("gated", said)
        free, gated = self.submit("free", {"text": "hi"}), self.submit(arguments={"text": "hi"})
        self.assertEqual([self.now(each).title for each in (free, gated)], ["Post hi"] * 2)
        self.sync(self.runner.decisions.edit(gated.id, {"text": "ho"}, None, OPERATOR))
        self.assertEqual(self.now(gated).title, "Post ho")

    def test_several(self) -> None:
        """Of several steps the first write is told, and how many more write."""
        self.offer("gated", step("look", "look"), step("post", "first"), step("put", "second"), step("post", "third"))
        self.assertEqual(self.shown(self.submit()).review.title, "Post hello and 2 more steps")

    def test_not_known(self) -> None:
        """A value that is not there yet is left out, and the rest is told."""
        later = step("post", "second", 'text = "${steps.first.done}", times = "${args.times}"')
        self.write("free", manifest("free", step("look", "first"), later, gated=False))
        found = self.runner.submission.dry_run("free", {"text": "hi", "times": 2})
        self.assertEqual(found.approval.review.title, "Post … 2 times")

    def test_silent(self) -> None:
        """A connector that says nothing gives no title."""
        self.describe(None)
        self.offer("gated", step("post", inputs='text = "hi"'))
        self.assertEqual(self.shown(self.submit(arguments={"text": "x"})).review.title, "")

    def test_binds_nothing(self) -> None:
        """Another wording alone is no change of what was asked: the digest stays, and nothing is stale."""
        self.offer("gated", step("post", inputs='text = "${args.text}"'))
        approval = self.shown(self.submit(arguments={"text": "hi"}))
        self.describe(Presentation("message", titles=("Say ${in.text}",)))
        shown = self.shown(approval.run)
        self.assertEqual((shown.digest, shown.stale, shown.changes), (approval.digest, None, ()))
        self.assertEqual((approval.review.title, shown.review.title), ("Post hi", "Say hi"))
